#include "lib/model_config/profile_findings.h"

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {
namespace {

// Where a row holds.
enum class When : uint8_t {
  kAlways,
  kLatent,     // DeepSeek and kin: a code path of their own
  kNotLatent,  // anything else
  kSeveralAxes,
  kAlone,  // mscale without mscale_all_dim
  kUnset,  // the file has no such key
};

// A key of the scaling that a stack does not heed, or takes for something else.
struct UnheededKey {
  absl::string_view profile;
  absl::string_view scaling;  // the field of RopeSpec
  absl::string_view key;      // the field of the scaling
  When when;
  absl::string_view effect;
};

constexpr absl::string_view kFormula = "multiplies by 0.1 ln(factor) + 1 instead";
constexpr absl::string_view kByLengths =
    "takes max_position_embeddings / original_max_position_embeddings instead";
constexpr absl::string_view kMultiplierByLengths = "computes it from the lengths instead";
constexpr absl::string_view kDividesPositions =
    "divides positions by it, not frequencies: other roundings unless it is a power of two";
constexpr absl::string_view kUndivided = "does not divide the frequencies";
constexpr absl::string_view kUnscaled = "builds the unscaled table at every length";
constexpr absl::string_view kAlwaysTruncates = "always rounds the correction range";
constexpr absl::string_view kUnread = "does not read it";
constexpr absl::string_view kGrownWithout =
    "appends rows at load, for its context length and a margin, that are computed without it";

// Of the dates in profile.cc.
constexpr UnheededKey kUnheededKeys[] = {
    {"vllm", "linear", "factor", When::kAlways, kDividesPositions},
    {"vllm", "yarn", "attention_factor", When::kAlways, kFormula},
    {"vllm", "yarn", "mscale", When::kNotLatent, kFormula},
    {"vllm", "yarn", "mscale_all_dim", When::kNotLatent, kFormula},
    {"vllm", "yarn", "truncate", When::kLatent, kAlwaysTruncates},
    {"vllm", "yarn", "original_max_position_embeddings", When::kSeveralAxes,
     "takes four times as much in the correction range"},
    {"vllm", "dynamic", "factor", When::kAlways, kUnscaled},
    {"vllm", "longrope", "factor", When::kAlways, kByLengths},
    {"vllm", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},
    {"vllm", "longrope", "original_max_position_embeddings", When::kAlways,
     "takes the long rows for all positions once max_model_len exceeds it, else the short ones"},
    {"vllm", "proportional", "factor", When::kAlways, kUndivided},

    {"sglang", "linear", "factor", When::kAlways, kDividesPositions},
    {"sglang", "linear", "factor", When::kAlways, kGrownWithout},
    {"sglang", "yarn", "factor", When::kAlways, kGrownWithout},
    {"sglang", "dynamic", "factor", When::kAlways, kGrownWithout},
    {"sglang", "yarn", "attention_factor", When::kAlways, kFormula},
    {"sglang", "yarn", "mscale", When::kNotLatent, kFormula},
    {"sglang", "yarn", "mscale_all_dim", When::kNotLatent, kFormula},
    {"sglang", "yarn", "truncate", When::kLatent, kAlwaysTruncates},
    {"sglang", "dynamic", "factor", When::kAlways,
     "scales for factor times the trained length, whatever the sequence"},
    {"sglang", "longrope", "factor", When::kAlways, kByLengths},
    {"sglang", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},
    {"sglang", "longrope", "original_max_position_embeddings", When::kAlways,
     "takes the long rows for a batch once a position exceeds it, one later than transformers"},
    {"sglang", "proportional", "factor", When::kAlways, kUndivided},

    {"trtllm", "yarn", "attention_factor", When::kAlways, "uses the mscale formula instead"},
    {"trtllm", "yarn", "attn_factor", When::kAlways, kUnread},
    {"trtllm", "yarn", "mscale", When::kAlone,
     "multiplies by 0.1 mscale ln(factor) + 1 without mscale_all_dim"},
    {"trtllm", "yarn", "truncate", When::kAlways, kAlwaysTruncates},
    {"trtllm", "dynamic", "factor", When::kAlways, kUnscaled},
    {"trtllm", "longrope", "factor", When::kAlways, kByLengths},
    {"trtllm", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},
    {"trtllm", "longrope", "short_factor", When::kAlways,
     "builds the whole table by the long list unless max_seq_len fits the original length"},

    {"onnx", "yarn", "attention_factor", When::kAlways, "uses the mscale formula instead"},
    {"onnx", "yarn", "attn_factor", When::kAlways, kUnread},
    {"onnx", "yarn", "mscale", When::kAlone, "multiplies by mscale itself"},
    {"onnx", "yarn", "truncate", When::kAlways, "never rounds the correction range"},
    {"onnx", "yarn", "beta_fast", When::kUnset, "exports no YaRN where it is missing"},
    {"onnx", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},

    {"hf", "yarn", "attn_factor", When::kAlways, kUnread},
};

// The scaling of `rope` when it is the field `name`, else null.
const google::protobuf::Message* ScalingOf(const v1::RopeSpec& rope, absl::string_view name) {
  const auto* field = v1::RopeSpec::descriptor()->FindFieldByName(std::string(name));
  const auto* reflection = v1::RopeSpec::GetReflection();
  if (field == nullptr || !reflection->HasField(rope, field)) return nullptr;
  return &reflection->GetMessage(rope, field);
}

bool IsSet(const google::protobuf::Message& message, absl::string_view key) {
  const auto* field = message.GetDescriptor()->FindFieldByName(std::string(key));
  if (field == nullptr) return false;
  const auto* reflection = message.GetReflection();
  return field->is_repeated() ? reflection->FieldSize(message, field) > 0
                              : reflection->HasField(message, field);
}

bool Holds(const UnheededKey& row, const v1::ResolvedEncoding& encoding) {
  const google::protobuf::Message* scaling = ScalingOf(encoding.spec().rope(), row.scaling);
  if (scaling == nullptr) return false;
  const bool is_set = IsSet(*scaling, row.key);
  switch (row.when) {
    case When::kAlways:
      return is_set;
    case When::kLatent:
      return is_set && encoding.rotary_channels_last();
    case When::kNotLatent:
      return is_set && !encoding.rotary_channels_last();
    case When::kSeveralAxes:
      return is_set && encoding.has_mrope();
    case When::kAlone:
      return is_set && !IsSet(*scaling, "mscale_all_dim");
    case When::kUnset:
      return !is_set;
  }
  return false;
}

// trtllm_cos_sin is trtllm in another layout.
bool IsOf(absl::string_view stack, absl::string_view profile) {
  return profile == stack || absl::StartsWith(profile, absl::StrCat(stack, "_"));
}

// On the line of the map, which is most often one line.
void SetPlace(const v1::ResolvedEncoding& encoding, absl::string_view key, v1::Finding* finding) {
  for (const v1::FactPlace& place : encoding.places()) {
    if (place.fact() != "scaling") continue;
    finding->set_pointer(absl::StrCat(place.pointer(), "/", key));
    finding->set_line(place.line());
    finding->set_column(place.column());
  }
}

}  // namespace

void AddProfileFindings(absl::string_view profile, const v1::ResolvedEncoding& encoding,
                        google::protobuf::RepeatedPtrField<v1::Finding>* findings) {
  for (const UnheededKey& row : kUnheededKeys) {
    if (!IsOf(row.profile, profile) || !Holds(row, encoding)) continue;
    v1::Finding* finding = findings->Add();
    finding->set_severity(v1::SEVERITY_NOTE);
    finding->set_rule("profile-ignores-key");
    SetPlace(encoding, row.key, finding);
    finding->set_message(absl::StrCat(row.profile, " does not heed ", row.key, " of rope_type ",
                                      row.scaling, ": it ", row.effect, ". This table heeds it."));
  }
}

}  // namespace posenc
