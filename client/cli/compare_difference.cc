#include "client/cli/compare_difference.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace posenc::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The value of a field as JSON writes it, integers without quotes, "unset" when it is not there.
std::string FieldText(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  const bool is_set = field->is_repeated() ? reflection->FieldSize(message, field) > 0
                                           : reflection->HasField(message, field);
  if (!is_set) return "unset";
  std::unique_ptr<Message> only(message.New());
  // A copy with this field alone: its JSON is {"name":value}.
  only->CopyFrom(message);
  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(message, &set);
  for (const FieldDescriptor* other : set) {
    if (other != field) reflection->ClearField(only.get(), other);
  }
  const std::string json = CompactJson(*only);
  const size_t begin = json.find(':') + 1;
  const std::string text = json.substr(begin, json.rfind('}') - begin);
  const bool number = field->cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  return number ? absl::StrReplaceAll(text, {{"\"", ""}}) : text;
}

}  // namespace

std::string PartOf(const v1::ResolvedEncoding& encoding) {
  return absl::StrCat(encoding.tower(), "/", encoding.layer_type());
}

v1::Finding FindingOf(const Difference& difference) {
  v1::Finding finding = difference.finding;
  if (difference.parts.empty()) return finding;
  finding.set_message(absl::StrCat(absl::StrJoin(difference.parts, ", "), ": ", finding.message()));
  return finding;
}

std::vector<FieldDifference> DifferingFields(const Message& base, const Message& model) {
  std::vector<FieldDifference> differences;
  const auto* descriptor = base.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string of_base = FieldText(base, field);
    const std::string of_model = FieldText(model, field);
    if (of_base == of_model) continue;
    constexpr size_t kMaxShown = 80;  // longer ones are lists of factors
    const bool shown = of_base.size() + of_model.size() <= kMaxShown;
    differences.push_back(
        {field->name(), shown ? absl::StrCat(field->name(), " ", of_model, " (base ", of_base, ")")
                              : absl::StrCat(field->name(), " differs")});
  }
  return differences;
}

std::string TextOf(const std::vector<FieldDifference>& differences) {
  return absl::StrJoin(differences, ", ", [](std::string* text, const FieldDifference& difference) {
    absl::StrAppend(text, difference.text);
  });
}

std::vector<std::string> FactsOf(absl::string_view prefix,
                                 const std::vector<FieldDifference>& differences) {
  std::vector<std::string> facts;
  facts.reserve(differences.size());
  for (const FieldDifference& difference : differences) {
    facts.push_back(absl::StrCat(prefix, difference.name));
  }
  return facts;
}

const FieldDescriptor* SetFieldOf(const Message& message, const char* oneof) {
  return message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName(oneof));
}

v1::Finding& Differences::Add(absl::string_view rule, std::string message,
                              std::vector<std::string> facts, absl::string_view otherwise) {
  Difference& difference = all_.emplace_back();
  difference.parts = {PartOf(model_)};
  difference.base = &base_;
  difference.model = &model_;
  v1::Finding& finding = difference.finding;
  finding.set_severity(v1::SEVERITY_ERROR);
  finding.set_rule(std::string(rule));
  finding.set_message(std::move(message));
  const bool placed = std::any_of(facts.begin(), facts.end(), [&](const std::string& fact) {
    return SetPlace(model_, fact, &finding);
  });
  if (!placed) SetPlace(model_, otherwise, &finding);
  difference.facts = std::move(facts);
  return finding;
}

bool Differences::Has(absl::string_view pointer) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Difference& difference) {
    return std::any_of(difference.facts.begin(), difference.facts.end(),
                       [&](const std::string& fact) {
                         const v1::FactPlace* place = FindPlace(model_, fact);
                         return place != nullptr && place->pointer() == pointer;
                       });
  });
}

}  // namespace posenc::cli
