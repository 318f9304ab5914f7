#include "lib/model_config/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/message.h"
#include "lib/base/status.h"

namespace posenc {

using Names = std::array<absl::string_view, 4>;  // unused ones are empty

// Rows are max_position_embeddings but for what these say.
struct RowRule {
  bool linear_times_factor = false;         // ceil(max_position_embeddings * factor)
  bool dynamic_times_factor = false;        // the same
  bool yarn_original_times_factor = false;  // ceil(original_max_position_embeddings * factor)
  int64_t mrope_multiple = 1;               // several axes: so many times as many
};

struct Profile {
  absl::string_view name;
  absl::string_view versioned;
  v1::Layout layout;
  bool checkpoint_dtype;      // else float32
  Names float32_model_types;  // exceptions of checkpoint_dtype
  Names tensor_names;
  RowRule rows;
};

namespace {

// vLLM 2026-08-17, SGLang 2026-08/09, FlashInfer 2026-08-22, TensorRT-LLM
// (functional.py, older), ONNX Runtime GenAI's exporter 2026-08, transformers
// 2026-08-19. FlashInfer takes a table and makes none: its rows are the model's.
constexpr std::array<Profile, 6> kProfiles = {{
    {"flashinfer", "flashinfer-1", v1::LAYOUT_COS_SIN, false, {}, {}, {}},
    {"hf",
     "hf-1",
     v1::LAYOUT_COS_AND_SIN_FULL,
     true,
     {"olmo", "olmo2", "olmo3", "flex_olmo"},
     {},
     {}},
    {"onnx", "onnx-1", v1::LAYOUT_COS_AND_SIN_HALF, true, {}, {}, {}},
    {"sglang",
     "sglang-1",
     v1::LAYOUT_COS_SIN,
     false,
     {},
     {},
     {.linear_times_factor = true,
      .dynamic_times_factor = true,
      .yarn_original_times_factor = true}},
    {"trtllm", "trtllm-1", v1::LAYOUT_PAIRS, false, {}, {"embed_positions_for_gpt_attention"}, {}},
    {"vllm",
     "vllm-1",
     v1::LAYOUT_COS_SIN,
     true,
     {"deepseek_v4", "gpt_oss", "kimi_k3"},
     {},
     {.linear_times_factor = true, .yarn_original_times_factor = true, .mrope_multiple = 4}},
}};

// A key of the scaling that a stack does not heed.
struct IgnoredKey {
  absl::string_view profile;
  absl::string_view scaling;  // the field of RopeSpec
  absl::string_view key;      // the field of the scaling
  bool but_not_mla;           // DeepSeek and kin have a code path that heeds it
  absl::string_view effect;
};

constexpr IgnoredKey kIgnoredKeys[] = {
    {"vllm", "yarn", "attention_factor", false, "multiplies by 0.1 ln(factor) + 1 instead"},
    {"vllm", "yarn", "mscale", true, "multiplies by 0.1 ln(factor) + 1"},
    {"vllm", "yarn", "mscale_all_dim", true, "multiplies by 0.1 ln(factor) + 1"},
    {"vllm", "dynamic", "factor", false, "builds the unscaled table at every length"},
    {"vllm", "longrope", "factor", false, "takes max_position_embeddings / original instead"},
    {"vllm", "longrope", "attention_factor", false, "computes it from the lengths instead"},
    {"vllm", "proportional", "factor", false, "does not divide the frequencies"},
    {"sglang", "yarn", "attention_factor", false, "multiplies by 0.1 ln(factor) + 1 instead"},
    {"sglang", "yarn", "mscale", true, "multiplies by 0.1 ln(factor) + 1"},
    {"sglang", "yarn", "mscale_all_dim", true, "multiplies by 0.1 ln(factor) + 1"},
    {"sglang", "dynamic", "sequence_length", false, "scales for factor times the trained length"},
    {"sglang", "longrope", "attention_factor", false, "computes it from the lengths instead"},
    {"sglang", "proportional", "factor", false, "does not divide the frequencies"},
    {"trtllm", "yarn", "attention_factor", false, "uses the mscale formula instead"},
    {"trtllm", "yarn", "truncate", false, "always rounds the correction range"},
    {"trtllm", "dynamic", "factor", false, "builds the unscaled table at every length"},
    {"onnx", "yarn", "attention_factor", false, "uses the mscale formula instead"},
    {"onnx", "yarn", "truncate", false, "never rounds the correction range"},
};

constexpr auto kVersionedNames = [] {
  std::array<absl::string_view, kProfiles.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kProfiles[i].versioned;
  return names;
}();

bool Contains(const Names& names, absl::string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

// Far beyond what a selection may hold, where it is refused by its own rule.
int64_t CeilOfProduct(int64_t rows, double factor) {
  const double product = std::ceil(static_cast<double>(rows) * factor);
  return product >= 0x1p40 ? int64_t{1} << 40 : static_cast<int64_t>(product);
}

int64_t Rows(const RowRule& rule, const v1::ResolvedEncoding& encoding) {
  const v1::RopeSpec& rope = encoding.spec().rope();
  int64_t rows = encoding.max_position_embeddings();
  if (rope.has_yarn() && rule.yarn_original_times_factor) {
    rows = CeilOfProduct(rope.yarn().original_max_position_embeddings(), rope.yarn().factor());
  } else if (rope.has_linear() && rule.linear_times_factor) {
    rows = CeilOfProduct(rows, rope.linear().factor());
  } else if (rope.has_dynamic() && rule.dynamic_times_factor) {
    rows = CeilOfProduct(rows, rope.dynamic().factor());
  }
  return encoding.has_mrope() ? rows * rule.mrope_multiple : rows;
}

v1::DType CheckpointDType(const v1::ResolvedEncoding* encoding) {
  if (encoding == nullptr) return v1::DTYPE_F32;
  if (encoding->dtype() == "bf16") return v1::DTYPE_BF16;
  return encoding->dtype() == "f16" ? v1::DTYPE_F16 : v1::DTYPE_F32;
}

// The scaling of `rope` when it is the field `name`, else null.
const google::protobuf::Message* ScalingOf(const v1::RopeSpec& rope, absl::string_view name) {
  const auto* field = v1::RopeSpec::descriptor()->FindFieldByName(std::string(name));
  const auto* reflection = v1::RopeSpec::GetReflection();
  if (field == nullptr || !reflection->HasField(rope, field)) return nullptr;
  return &reflection->GetMessage(rope, field);
}

bool IsSet(const google::protobuf::Message& message, absl::string_view key) {
  const auto* field = message.GetDescriptor()->FindFieldByName(std::string(key));
  return field != nullptr && message.GetReflection()->HasField(message, field);
}

}  // namespace

absl::StatusOr<const Profile*> FindProfile(absl::string_view name) {
  for (const Profile& profile : kProfiles) {
    if (name == profile.name || name == profile.versioned) return &profile;
  }
  return FieldError("format.profile",
                    absl::StrCat("must be one of ", absl::StrJoin(kVersionedNames, ", "), ", got ",
                                 name.substr(0, 64)));
}

std::span<const absl::string_view> ProfileNames() { return kVersionedNames; }

void FillFromProfile(const Profile& profile, const v1::ResolvedEncoding* encoding,
                     absl::string_view model_type, v1::Selection* selection,
                     v1::TensorFormat* format) {
  format->set_profile(std::string(profile.versioned));
  // A model that keeps its rotation complex is never cast below complex64.
  const bool complex =
      profile.name == "hf" && encoding != nullptr && encoding->rotation() == "complex";
  if (format->layout() == v1::LAYOUT_UNSPECIFIED) {
    format->set_layout(complex ? v1::LAYOUT_PAIRS : profile.layout);
  }
  if (format->dtype() == v1::DTYPE_UNSPECIFIED) {
    const bool float32 =
        complex || !profile.checkpoint_dtype || Contains(profile.float32_model_types, model_type);
    format->set_dtype(float32 ? v1::DTYPE_F32 : CheckpointDType(encoding));
  }
  if (selection->coordinates_case() != v1::Selection::COORDINATES_NOT_SET) return;
  const int64_t rows = format->has_max_model_len() ? format->max_model_len()
                       : encoding != nullptr       ? Rows(profile.rows, *encoding)
                                                   : 0;
  if (rows == 0) return;
  selection->mutable_position_range()->set_begin(0);
  selection->mutable_position_range()->set_end(rows);
}

std::span<const absl::string_view> TensorNames(const Profile& profile, v1::Layout layout) {
  if (layout != profile.layout) return {};
  const auto end = std::find(profile.tensor_names.begin(), profile.tensor_names.end(), "");
  return {profile.tensor_names.begin(), end};
}

void AddProfileFindings(const Profile& profile, const v1::ResolvedEncoding& encoding,
                        google::protobuf::RepeatedPtrField<v1::Finding>* findings) {
  for (const IgnoredKey& row : kIgnoredKeys) {
    if (row.profile != profile.name) continue;
    if (row.but_not_mla && encoding.rotary_channels_last()) continue;
    const google::protobuf::Message* scaling = ScalingOf(encoding.spec().rope(), row.scaling);
    if (scaling == nullptr || !IsSet(*scaling, row.key)) continue;
    v1::Finding* finding = findings->Add();
    finding->set_severity(v1::SEVERITY_NOTE);
    finding->set_rule("profile-ignores-key");
    finding->set_message(absl::StrCat(profile.name, " does not heed ", row.key, " of rope_type ",
                                      row.scaling, ": it ", row.effect, ". This table heeds it."));
  }
}

}  // namespace posenc
