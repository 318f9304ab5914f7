#include "lib/model_config/findings.h"

#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace posenc {
namespace {

constexpr v1::Severity kNote = v1::SEVERITY_NOTE;
constexpr v1::Severity kWarning = v1::SEVERITY_WARNING;
constexpr v1::Severity kError = v1::SEVERITY_ERROR;

constexpr std::array kRuleTable = {
    RuleInfo{Rule::kAttentionFactorInteger, "attention-factor-integer", kNote,
             "transformers warns of an attention_factor without a point, and uses it.",
             "The same with a point."},
    RuleInfo{Rule::kAttnFactor, "attn-factor", kWarning,
             "attn_factor multiplies the computed factor; transformers ignores it.",
             "The map without it, where attention_factor is given; else the value is that of the "
             "whole table."},
    RuleInfo{Rule::kBandsWithoutRamp, "bands-without-ramp", kNote,
             "low_freq_factor equals high_freq_factor: nothing lies between the two bands.",
             "None: which of the two is wrong is not said."},
    RuleInfo{Rule::kBetasSwapped, "betas-swapped", kWarning,
             "beta_fast is below beta_slow: the ramp runs the other way; some codes have the two "
             "names swapped.",
             "The two exchanged."},
    RuleInfo{Rule::kCompatDiffers, "compat-differs", kNote,
             "Versions of transformers read this differently; `compat` chooses.",
             "The latest reading, where the file can say it outright: a training length, a type."},
    RuleInfo{Rule::kFactorBelowOne, "factor-below-one", kWarning,
             "A scaling factor below 1 shortens the context.",
             "None: which factor was meant is not known."},
    RuleInfo{Rule::kFactorMismatch, "factor-mismatch", kWarning,
             "factor is not max_position_embeddings / original_max_position_embeddings; the "
             "finding says which is used.",
             "None: the factor may be wrong, or either length."},
    RuleInfo{Rule::kHiddenSizeUneven, "hidden-size-uneven", kError,
             "hidden_size is no multiple of num_attention_heads, which transformers 5 refuses in "
             "this family.",
             "None: which of the two is wrong is not said."},
    RuleInfo{Rule::kKeyMisspelt, "key-misspelt", kWarning,
             "A key that nobody reads, but for a letter the one of the positions that is missing.",
             "The right key with its value; none where another name says the same, or in "
             "--hf-overrides."},
    RuleInfo{Rule::kLayerTypeUnknown, "layer-type-unknown", kWarning,
             "A layer type of a family that is not known, beside others that say attention: it is "
             "taken to have none.",
             "None: the type is misspelt, or new."},
    RuleInfo{Rule::kLengthsSwapped, "lengths-swapped", kError,
             "The training length is above max_position_embeddings, and the factor that follows "
             "from the two is below 1: transformers and vLLM take it, and multiply by 1. Where the "
             "file gives a factor, transformers uses it, and it is a warning "
             "(original-length-too-long, factor-mismatch).",
             "None: the two may be exchanged, or one of them is wrong."},
    RuleInfo{Rule::kLongropeFactorImplied, "longrope-factor-implied", kNote,
             "LongRoPE without a factor: the ratio of the lengths is used.",
             "The ratio, but below 1, and in Phi-3, whose class refuses a factor."},
    RuleInfo{Rule::kModelTypeMissing, "model-type-missing", kWarning,
             "transformers refuses a file without model_type; its class says the family.",
             "None: a class has several model types."},
    RuleInfo{Rule::kModelTypeUnknown, "model-type-unknown", kWarning,
             "The family is not known; its class or the standard RoPE keys are read instead.",
             "None: the family is not known."},
    RuleInfo{Rule::kMropeMissing, "mrope-missing", kWarning,
             "A family of several axes whose file does not say their sections, or that they "
             "interleave: transformers has the class's, vLLM one axis, or sections in a row.",
             "The mrope_interleaved of the class; none for the sections."},
    RuleInfo{Rule::kNopeListInverted, "nope-list-inverted", kWarning,
             "no_rope_layers has a 0 for most layers: in it 1 means RoPE.",
             "None: the list may be meant so."},
    RuleInfo{Rule::kOriginalLengthFloat, "original-length-float", kNote,
             "transformers warns of a llama3 training length with a point, and uses it.",
             "The whole number."},
    RuleInfo{Rule::kOriginalLengthMismatch, "original-length-mismatch", kWarning,
             "The training length stands inside and beside the map with different values.",
             "The one of the map, in both places."},
    RuleInfo{Rule::kOriginalLengthMissing, "original-length-missing", kWarning,
             "The scaling does not say the training length; max_position_embeddings stands in, "
             "which is wrong when it was already multiplied.",
             "The length that is used, but in LongRoPE, which would extend nothing."},
    RuleInfo{Rule::kOriginalLengthTooLong, "original-length-too-long", kWarning,
             "The training length is not below max_position_embeddings.",
             "None: either length may be wrong."},
    RuleInfo{Rule::kPartialMismatch, "partial-mismatch", kWarning,
             "partial_rotary_factor stands inside and beside the map with different values.",
             "The one of the map, in both places."},
    RuleInfo{Rule::kPartialMissing, "partial-missing", kNote,
             "rope_type proportional without partial_rotary_factor rotates the whole head.",
             "The 1 that is used."},
    RuleInfo{Rule::kPositionTypeIgnored, "position-type-ignored", kNote,
             "position_embedding_type is a leftover: the family has RoPE.",
             "None: the key is to be taken out."},
    RuleInfo{
        Rule::kProportionalFactor, "proportional-factor", kWarning,
        "rope_type proportional with a factor: transformers divides by it, vLLM and SGLang do not.",
        "None: which of the two readings is meant is not known."},
    RuleInfo{Rule::kRopeKeyIgnored, "rope-key-ignored", kWarning,
             "A key that changes positions stands where nobody reads it.",
             "The class's own value, where it has one; else the key is to be moved or taken out."},
    RuleInfo{Rule::kRopeKeyUnknown, "rope-key-unknown", kNote,
             "A key that this rope_type does not use.",
             "None: the key is misspelt, or to be taken out."},
    RuleInfo{Rule::kRopeTypeForeign, "rope-type-foreign", kError,
             "transformers refuses this rope_type in this family.",
             "None: the family has no such scaling."},
    RuleInfo{Rule::kRowsWithoutOffset, "rows-without-offset", kWarning,
             "A learned table without room for the rows before its first token.",
             "The rows of the file with those before the first token."},
    RuleInfo{Rule::kScalingLost, "scaling-lost", kWarning,
             "The base and length of a Llama 3.1, 3.2 or 3.3 without its scaling: the block was "
             "lost on the way.",
             "The scaling of that size."},
    RuleInfo{Rule::kScalingOnlyNewForm, "scaling-only-new-form", kWarning,
             "A reader of the old form takes no scaling at all.",
             "The same as rope_scaling, but for maps by layer type."},
    RuleInfo{Rule::kSizeDefaulted, "size-defaulted", kNote,
             "A size is not in the file; the default of the model's class is used.",
             "The default."},
    RuleInfo{Rule::kThetaDefaulted, "theta-defaulted", kNote,
             "The base is not in the file; the family's default is used.",
             "None: whether the model has the default is not said."},
    RuleInfo{Rule::kThetaDefaultedScaled, "theta-defaulted-scaled", kWarning,
             "The base is not in the file, and the default of 10000 stands beside a llama3, "
             "LongRoPE or YaRN scaling (YaRN: of a model trained for more than Llama 2's 4096 "
             "positions): few such models have it.",
             "None: whether the model has the default is not said."},
    RuleInfo{Rule::kThetaMismatch, "theta-mismatch", kError,
             "The old and the new place of the base hold different values: readers disagree.",
             "The one of the map, in both places; none where layer types have maps of their own."},
    RuleInfo{Rule::kThetaNull, "theta-null", kWarning,
             "The base is null; transformers 5 fails on it, the family's default is used.",
             "None: whether the model has the default is not said."},
    RuleInfo{Rule::kThetaOnlyNewForm, "theta-only-new-form", kWarning,
             "A reader of the old form takes its default base, most often 10000.",
             "The same beside the map, where one key holds for all layers that have it."},
    RuleInfo{Rule::kThetaUnlikeModel, "theta-unlike-model", kWarning,
             "The sizes and the scaling of a Llama 3.1, 3.2 or 3.3 with another base.",
             "The base of that model; none where two places hold one."},
    RuleInfo{Rule::kTowerUnknown, "tower-unknown", kNote,
             "A nested config of a family that is not known here is left out.",
             "None: nothing is wrong with the file."},
    RuleInfo{Rule::kTruncateNull, "truncate-null", kNote,
             "YaRN with a truncate of null: readers take it for false.", "The false that is used."},
    RuleInfo{Rule::kTwoRopeMaps, "two-rope-maps", kError,
             "rope_scaling replaces rope_parameters whole: what only the latter says is lost.",
             "What is lost, in rope_scaling, a base beside it; none where types differ."},
    RuleInfo{Rule::kYarnFactorImplied, "yarn-factor-implied", kNote,
             "YaRN with a factor of null: the ratio of the lengths is used.", "The ratio."},
};

// Enough for any author; it bounds the work on a hostile file.
constexpr size_t kMaxFindings = 256;

// A name that needs no escape in JSON. No reader has another.
bool IsPlainKey(absl::string_view key) {
  return !key.empty() && absl::c_all_of(key, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace

std::span<const RuleInfo> RuleTable() { return kRuleTable; }

std::string MemberText(absl::string_view key, absl::string_view value) {
  return IsPlainKey(key) ? absl::StrCat("\"", key, "\": ", value) : "";
}

std::string MapText(const JsonValue& map, absl::string_view without) {
  std::vector<std::string> members;
  for (const JsonValue& value : map.children()) {
    if (value.key() == without) continue;
    if (value.is_array() || value.is_object() || value.is_shortened()) return "";
    members.push_back(MemberText(value.key(), value.Text()));
    if (members.back().empty()) return "";
  }
  return absl::StrCat("{", absl::StrJoin(members, ", "), "}");
}

std::string ObjectOf(absl::string_view pointer) {
  return std::string(pointer.substr(0, pointer.rfind('/')));
}

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
  finding.set_in_overrides(place.in_overrides());
  if (text.fix.empty()) return;
  const JsonValue& object = text.fix_object;
  finding.set_fix_pointer(object.present() ? object.pointer() : ObjectOf(finding.pointer()));
  finding.set_fix(std::move(text.fix));
}

}  // namespace posenc
