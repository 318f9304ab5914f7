// What the author of a config should know, beside what it means.
//
// A config that cannot be read is refused (a Status); one that can, but says
// something odd, gives findings. Rule ids are contract: scripts filter by them.
#ifndef POSENC_LIB_MODEL_CONFIG_FINDINGS_H_
#define POSENC_LIB_MODEL_CONFIG_FINDINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// In the order of their ids; RuleTable() says what each means.
enum class Rule : uint8_t {
  kAttentionFactorInteger,
  kAttnFactor,
  kBandsWithoutRamp,
  kBetasSwapped,
  kCompatDiffers,
  kFactorBelowOne,
  kFactorMismatch,
  kHiddenSizeUneven,
  kKeyMisspelt,
  kLayerTypeUnknown,
  kLengthsSwapped,
  kLongropeFactorImplied,
  kModelTypeMissing,
  kModelTypeUnknown,
  kMropeMissing,
  kNopeListInverted,
  kOriginalLengthFloat,
  kOriginalLengthMismatch,
  kOriginalLengthMissing,
  kOriginalLengthTooLong,
  kPartialMismatch,
  kPartialMissing,
  kPositionTypeIgnored,
  kProportionalFactor,
  kRopeKeyIgnored,
  kRopeKeyUnknown,
  kRopeTypeForeign,
  kRowsWithoutOffset,
  kScalingLost,
  kScalingOnlyNewForm,
  kSizeDefaulted,
  kThetaDefaulted,
  kThetaDefaultedScaled,
  kThetaMismatch,
  kThetaNull,
  kThetaOnlyNewForm,
  kThetaUnlikeModel,
  kTowerUnknown,
  kTruncateNull,
  kTwoRopeMaps,
  kYarnFactorImplied,
};

struct RuleInfo {
  Rule rule;
  absl::string_view id;
  v1::Severity severity;
  absl::string_view meaning;
  absl::string_view fix;  // what there is to paste, or "None: " and why there is nothing
};

// The documented list, a row a rule.
std::span<const RuleInfo> RuleTable();

// The rest of a finding, beside its rule and place. `found` is the value's text
// where it is left empty.
struct FindingText {
  std::string message = "";
  std::string found = "";
  std::string expected = "";
  // Members of an object ("key": value, ...), that take the place of those of their names.
  std::string fix = "";
  // The object that the fix goes into; absent: the one that holds the finding's value.
  JsonValue fix_object = JsonValue();
};

// A member as a fix has it. Empty, which is no fix, for the element of a list.
std::string MemberText(absl::string_view key, absl::string_view value);

// A map as it stands in the file but for one key: `{"a": 1, "b": 2}`. Empty where lists or odd keys
// make it nothing to paste.
std::string MapText(const JsonValue& map, absl::string_view without = "");

// The pointer to what holds the value that `pointer` leads to.
std::string ObjectOf(absl::string_view pointer);

// Collects the findings of one config, in the order in which they are made; the
// same rule speaks once about a place. Not thread-safe.
class Findings {
 public:
  // About a value that is there.
  void Add(Rule rule, const JsonValue& value, FindingText text);
  // About a member of `object` that is not there: it points to where it would
  // stand, on the line of the object.
  void AddMissing(Rule rule, const JsonValue& object, absl::string_view key, FindingText text);

  const std::vector<v1::Finding>& all() const { return all_; }

 private:
  void Append(Rule rule, std::string pointer, const JsonValue& place, FindingText text);

  std::vector<v1::Finding> all_;
};

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_FINDINGS_H_
