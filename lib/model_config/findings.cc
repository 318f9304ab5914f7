#include "lib/model_config/findings.h"

#include <array>
#include <utility>

namespace posenc {
namespace {

constexpr v1::Severity kNote = v1::SEVERITY_NOTE;
constexpr v1::Severity kWarning = v1::SEVERITY_WARNING;
constexpr v1::Severity kError = v1::SEVERITY_ERROR;

constexpr std::array kRuleTable = {
    RuleInfo{Rule::kAttentionFactorInteger, "attention-factor-integer", kNote,
             "transformers warns of an attention_factor without a point, and uses it."},
    RuleInfo{Rule::kAttnFactor, "attn-factor", kWarning,
             "attn_factor multiplies the computed factor; transformers ignores it."},
    RuleInfo{Rule::kBandsWithoutRamp, "bands-without-ramp", kNote,
             "low_freq_factor equals high_freq_factor: nothing lies between the two bands."},
    RuleInfo{Rule::kBetasSwapped, "betas-swapped", kWarning,
             "beta_fast is below beta_slow: the ramp runs the other way; some codes have the two "
             "names swapped."},
    RuleInfo{Rule::kCompatDiffers, "compat-differs", kNote,
             "Versions of transformers read this differently; `compat` chooses."},
    RuleInfo{Rule::kFactorBelowOne, "factor-below-one", kWarning,
             "A scaling factor below 1 shortens the context."},
    RuleInfo{Rule::kFactorMismatch, "factor-mismatch", kWarning,
             "factor is not max_position_embeddings / original_max_position_embeddings; the "
             "finding says which is used."},
    RuleInfo{Rule::kLayerTypeUnknown, "layer-type-unknown", kWarning,
             "A layer type of a family that is not known, beside others that say attention: it is "
             "taken to have none."},
    RuleInfo{Rule::kLongropeFactorImplied, "longrope-factor-implied", kNote,
             "LongRoPE without a factor: the ratio of the lengths is used."},
    RuleInfo{Rule::kModelTypeMissing, "model-type-missing", kWarning,
             "transformers refuses a file without model_type; its class says the family."},
    RuleInfo{Rule::kModelTypeUnknown, "model-type-unknown", kWarning,
             "The family is not known; its class or the standard RoPE keys are read instead."},
    RuleInfo{Rule::kNopeListInverted, "nope-list-inverted", kWarning,
             "no_rope_layers has a 0 for most layers: in it 1 means RoPE."},
    RuleInfo{Rule::kOriginalLengthFloat, "original-length-float", kNote,
             "transformers warns of a llama3 training length with a point, and uses it."},
    RuleInfo{Rule::kOriginalLengthMismatch, "original-length-mismatch", kWarning,
             "The training length stands inside and beside the map with different values."},
    RuleInfo{Rule::kOriginalLengthMissing, "original-length-missing", kWarning,
             "The scaling does not say the training length; max_position_embeddings stands in, "
             "which is wrong when it was already multiplied."},
    RuleInfo{Rule::kOriginalLengthTooLong, "original-length-too-long", kWarning,
             "The training length is not below max_position_embeddings."},
    RuleInfo{Rule::kPartialMismatch, "partial-mismatch", kWarning,
             "partial_rotary_factor stands inside and beside the map with different values."},
    RuleInfo{Rule::kPartialMissing, "partial-missing", kNote,
             "rope_type proportional without partial_rotary_factor rotates the whole head."},
    RuleInfo{Rule::kPositionTypeIgnored, "position-type-ignored", kNote,
             "position_embedding_type is a leftover: the family has RoPE."},
    RuleInfo{Rule::kProportionalFactor, "proportional-factor", kWarning,
             "rope_type proportional with a factor: transformers divides by it, vLLM and SGLang do "
             "not."},
    RuleInfo{Rule::kRopeKeyIgnored, "rope-key-ignored", kWarning,
             "A key that changes positions stands where nobody reads it."},
    RuleInfo{Rule::kRopeKeyUnknown, "rope-key-unknown", kNote,
             "A key that this rope_type does not use."},
    RuleInfo{Rule::kRopeTypeForeign, "rope-type-foreign", kError,
             "transformers refuses this rope_type in this family."},
    RuleInfo{Rule::kRowsWithoutOffset, "rows-without-offset", kWarning,
             "A learned table without room for the rows before its first token."},
    RuleInfo{Rule::kScalingLost, "scaling-lost", kWarning,
             "The base and length of a Llama 3.1, 3.2 or 3.3 without its scaling: the block was "
             "lost on the way."},
    RuleInfo{Rule::kScalingOnlyNewForm, "scaling-only-new-form", kWarning,
             "A reader of the old form takes no scaling at all."},
    RuleInfo{Rule::kSizeDefaulted, "size-defaulted", kNote,
             "A size is not in the file; the default of the model's class is used."},
    RuleInfo{Rule::kThetaDefaulted, "theta-defaulted", kNote,
             "The base is not in the file; the family's default is used."},
    RuleInfo{Rule::kThetaMismatch, "theta-mismatch", kError,
             "The old and the new place of the base hold different values: readers disagree."},
    RuleInfo{Rule::kThetaNull, "theta-null", kWarning,
             "The base is null; transformers 5 fails on it, the family's default is used."},
    RuleInfo{Rule::kThetaOnlyNewForm, "theta-only-new-form", kWarning,
             "A reader of the old form takes its default base, most often 10000."},
    RuleInfo{Rule::kTowerUnknown, "tower-unknown", kNote,
             "A nested config of a family that is not known here is left out."},
    RuleInfo{Rule::kTruncateNull, "truncate-null", kNote,
             "YaRN with a truncate of null: readers take it for false."},
    RuleInfo{Rule::kTwoRopeMaps, "two-rope-maps", kError,
             "rope_scaling replaces rope_parameters whole: what only the latter says is lost."},
    RuleInfo{Rule::kYarnFactorImplied, "yarn-factor-implied", kNote,
             "YaRN with a factor of null: the ratio of the lengths is used."},
};

// Enough for any author; it bounds the work on a hostile file.
constexpr size_t kMaxFindings = 256;

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
  if (all_.size() >= kMaxFindings) return;
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
