// The differences of one encoding from its like in the base, as they are found.
#ifndef POSENC_CLIENT_CLI_COMPARE_DIFFERENCE_H_
#define POSENC_CLIENT_CLI_COMPARE_DIFFERENCE_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/compare_places.h"
#include "client/cli/json.h"
#include "google/protobuf/message.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// A finding, and what a fix of it is made of. Pointers into the two responses.
struct Difference {
  v1::Finding finding;             // its message without the parts
  std::vector<std::string> parts;  // text/full_attention: where it speaks; empty: of no part
  const v1::ResolvedEncoding* base = nullptr;
  const v1::ResolvedEncoding* model = nullptr;
  // What differs (FactPlace); a fix gives the keys of these the base's values.
  std::vector<std::string> facts;
};

// Where a finding speaks: "text/full_attention".
std::string PartOf(const v1::ResolvedEncoding& encoding);

// The finding with its parts before the message.
v1::Finding FindingOf(const Difference& difference);

// A field in which two messages of one type differ: "factor 8 (base 32)".
struct FieldDifference {
  std::string name;
  std::string text;
};
std::vector<FieldDifference> DifferingFields(const google::protobuf::Message& base,
                                             const google::protobuf::Message& model);
std::string TextOf(const std::vector<FieldDifference>& differences);
// The names of their places (FactPlace): "yarn.", for the fields of a YaRN.
std::vector<std::string> FactsOf(absl::string_view prefix,
                                 const std::vector<FieldDifference>& differences);

// The field that is set of a oneof of messages; null: none.
const google::protobuf::FieldDescriptor* SetFieldOf(const google::protobuf::Message& message,
                                                    const char* oneof);

// A value as a finding shows it.
inline std::string ValueText(double value) { return ExactDouble(value); }
template <typename Value>
std::string ValueText(const Value& value) {
  return absl::StrCat(value);
}

// Collects the differences of one pair.
class Differences {
 public:
  Differences(const v1::ResolvedEncoding& base, const v1::ResolvedEncoding& model)
      : base_(base), model_(model) {}

  // "rope_theta is 10000, in the base 500000 (35 of 64 ...)", at the place of `fact`. False where
  // the two values are equal.
  template <typename Value>
  bool Differ(absl::string_view rule, absl::string_view fact, absl::string_view what,
              const Value& model, const Value& base, absl::string_view effect = "") {
    if (model == base) return false;
    const std::string found = ValueText(model);
    const std::string expected = ValueText(base);
    v1::Finding& finding = Add(rule,
                               absl::StrCat(what, " is ", found, ", in the base ", expected,
                                            effect.empty() ? "" : absl::StrCat(" (", effect, ")")),
                               {std::string(fact)});
    finding.set_found(found);
    finding.set_expected(expected);
    return true;
  }

  // An error at the first of `facts` that has a place, else at that of `otherwise`.
  v1::Finding& Add(absl::string_view rule, std::string message, std::vector<std::string> facts,
                   absl::string_view otherwise = "");

  // Whether a difference was found of what the key at `pointer` gives.
  bool Has(absl::string_view pointer) const;

  std::vector<Difference>& all() { return all_; }

 private:
  const v1::ResolvedEncoding& base_;
  const v1::ResolvedEncoding& model_;
  std::vector<Difference> all_;
};

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_DIFFERENCE_H_
