#include "lib/model_config/findings.h"

#include <array>
#include <utility>

namespace posenc {
namespace {

constexpr v1::Severity kNote = v1::SEVERITY_NOTE;
constexpr v1::Severity kWarning = v1::SEVERITY_WARNING;
constexpr v1::Severity kError = v1::SEVERITY_ERROR;

constexpr std::array kRuleTable = {
    RuleInfo{Rule::kFactorBelowOne, "factor-below-one", kWarning,
             "A scaling factor below 1 shortens the context."},
    RuleInfo{Rule::kFactorMismatch, "factor-mismatch", kWarning,
             "factor is not max_position_embeddings / original_max_position_embeddings; the "
             "explicit factor is used."},
    RuleInfo{Rule::kOriginalLengthMissing, "original-length-missing", kWarning,
             "The scaling does not say the training length; max_position_embeddings stands in, "
             "which is wrong when it was already multiplied."},
    RuleInfo{Rule::kRopeKeyIgnored, "rope-key-ignored", kWarning,
             "A key that scales positions stands where nobody reads it."},
    RuleInfo{Rule::kRopeKeyUnknown, "rope-key-unknown", kNote,
             "A key that this rope_type does not use."},
    RuleInfo{Rule::kThetaDefaulted, "theta-defaulted", kNote,
             "The base is not in the file; the family's default is used."},
    RuleInfo{Rule::kThetaMismatch, "theta-mismatch", kError,
             "The old and the new place of the base hold different values: readers disagree."},
    RuleInfo{Rule::kThetaNull, "theta-null", kWarning,
             "The base is null; transformers 5 fails on it, the family's default is used."},
};

}  // namespace

std::span<const RuleInfo> RuleTable() { return kRuleTable; }

void Findings::Add(Rule rule, const JsonValue& value, FindingText text) {
  if (text.found.empty()) text.found = value.Text();
  Append(rule, value.pointer(), value, std::move(text));
}

void Findings::AddMissing(Rule rule, const JsonValue& object, absl::string_view key,
                          FindingText text) {
  Append(rule, object.PointerOf(key), object, std::move(text));
}

void Findings::Append(Rule rule, std::string pointer, const JsonValue& place, FindingText text) {
  const RuleInfo& info = kRuleTable[static_cast<size_t>(rule)];
  for (const v1::Finding& old : all_) {
    if (old.rule() == info.id && old.pointer() == pointer) return;
  }
  v1::Finding& finding = all_.emplace_back();
  finding.set_severity(info.severity);
  finding.set_rule(std::string(info.id));
  finding.set_pointer(std::move(pointer));
  finding.set_line(place.line());
  finding.set_column(place.column());
  finding.set_message(std::move(text.message));
  finding.set_found(std::move(text.found));
  finding.set_expected(std::move(text.expected));
  finding.set_fix(std::move(text.fix));
}

}  // namespace posenc
