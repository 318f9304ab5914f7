#include "lib/model_config/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/position_limit.h"
#include "lib/model_config/profile_dtype.h"
#include "lib/model_config/profile_findings.h"

namespace posenc {

using Names = std::array<absl::string_view, 4>;  // unused ones are empty

// The length that a dynamic table is made for, where the request names none.
enum class Dynamic : uint8_t {
  kOfRows,       // its rows: as transformers has it for a sequence of so many
  kTimesFactor,  // max_position_embeddings * factor, whatever max_model_len
  kUnscaled,     // max_position_embeddings
};

// Which list a LongRoPE table is made of, where the request names no length.
enum class LongRope : uint8_t {
  kOfRows,         // the one for a sequence of as many as its rows
  kShortThenLong,  // the trained length's rows of the short list, then all rows of the long one
  kLong,           // the long one, unless max_model_len fits the trained length
};

// Rows are max_position_embeddings but for what these say.
struct RowRule {
  bool linear_times_factor = false;         // ceil(max_position_embeddings * factor)
  Dynamic dynamic = Dynamic::kOfRows;       // kTimesFactor: ceil(max_position_embeddings * factor)
  bool yarn_original_times_factor = false;  // ceil(original_max_position_embeddings * factor)
  int64_t mrope_multiple = 1;  // several axes, unscaled or YaRN: of so many times the length
  LongRope longrope = LongRope::kOfRows;
};

struct Profile {
  absl::string_view name;
  absl::string_view versioned;
  absl::string_view source;  // the stack's code that it follows
  v1::Layout layout;
  bool checkpoint_dtype;                       // else float32
  absl::string_view float32_model_types = "";  // exceptions of checkpoint_dtype, as in family rows
  Names tensor_names = {};
  RowRule rows = {};
  // Of multi-head latent attention, where it is another.
  v1::Layout latent_layout = v1::LAYOUT_UNSPECIFIED;
  Names latent_names = {};
  Names short_then_long_names = {};
  // Families whose cosines and sines are half as wide, and their tensors.
  absl::string_view half_width_types = "";
  Names half_width_names = {};
  // Families that rotate adjacent channels by a table of repeated halves, which they spread out
  // only then.
  absl::string_view repeated_halves_types = "";
  bool longrope_checkpoint_dtype = false;
  // A config with this makes tables of another kind, which the profile does not have.
  absl::string_view refused_fact = "";
  // rope_types and variants of them that the stack refuses, separated by spaces.
  absl::string_view unknown_types = "";
  // Families whose cosines and sines are computed in each call: there is no table.
  absl::string_view tableless_types = "";
};

namespace {

// Qwen2.5-1M and kin: five tables of plain rows, whose positions are cut into chunks.
constexpr absl::string_view kDualChunk = "dual_chunk_attention_config";

// The code that was read: a commit where all of it is of one, and its day.
constexpr absl::string_view kTensorRtLlm =
    "NVIDIA/TensorRT-LLM functional.py at 0071496dc625, and the PyTorch backend's RopeParams";

// FlashInfer takes a table and makes none: its rows are the model's. TensorRT-LLM has three
// tables: what its attention plugin reads (latent attention: each row's pairs twice), the same
// with interleave off, and that of models without the plugin, sines first.
constexpr std::array kProfiles = {
    Profile{.name = "flashinfer",
            .versioned = "flashinfer-1",
            .source = "flashinfer-ai/flashinfer at fb28d7242b35 (2026-08-22)",
            .layout = v1::LAYOUT_COS_SIN,
            .checkpoint_dtype = false},
    Profile{.name = "hf",
            .versioned = "hf-1",
            .source = "huggingface/transformers main (5.16) of 2026-08-19",
            .layout = v1::LAYOUT_COS_AND_SIN_FULL,
            .checkpoint_dtype = true,
            .float32_model_types = "olmo olmo2 olmo3 flex_olmo ernie4_5 ernie4_5_moe "
                                   "ernie4_5_vl_moe ernie4_5_vl_moe_text",
            .half_width_types = "gpt_oss deepseek_v4",
            .half_width_names = {"cos", "sin"},
            .repeated_halves_types =
                "glm glm4 glm4v glm4v_text glm_ocr glm_ocr_text helium ernie4_5 "
                "ernie4_5_moe moonshine moonshine_streaming",
            .unknown_types = "ntk"},
    Profile{.name = "onnx",
            .versioned = "onnx-1",
            .source = "microsoft/onnxruntime-genai at a0c04eb1313b (2026-08)",
            .layout = v1::LAYOUT_COS_AND_SIN_HALF,
            .checkpoint_dtype = true},
    Profile{.name = "sglang",
            .versioned = "sglang-1",
            .source = "sgl-project/sglang of 2026-08 and 2026-09, files of several commits",
            .layout = v1::LAYOUT_COS_SIN,
            .checkpoint_dtype = false,
            .rows = {.linear_times_factor = true,
                     .dynamic = Dynamic::kTimesFactor,
                     .yarn_original_times_factor = true,
                     .longrope = LongRope::kShortThenLong},
            .short_then_long_names = {"long_short_cos_sin_cache"},
            .longrope_checkpoint_dtype = true,
            .refused_fact = kDualChunk,
            .unknown_types = "ntk yarn_telechat3",
            .tableless_types = "gemma3 gemma3_text"},
    Profile{.name = "trtllm",
            .versioned = "trtllm-1",
            .source = kTensorRtLlm,
            .layout = v1::LAYOUT_PAIRS,
            .checkpoint_dtype = false,
            .tensor_names = {"embed_positions_for_gpt_attention"},
            .rows = {.dynamic = Dynamic::kUnscaled, .longrope = LongRope::kLong},
            .latent_layout = v1::LAYOUT_PAIRS_FULL,
            .latent_names = {"rotary_cos_sin"}},
    Profile{.name = "trtllm_cos_sin",
            .versioned = "trtllm_cos_sin-1",
            .source = kTensorRtLlm,
            .layout = v1::LAYOUT_COS_SIN,
            .checkpoint_dtype = false,
            .tensor_names = {"rotary_cos_sin"},
            .rows = {.dynamic = Dynamic::kUnscaled, .longrope = LongRope::kLong}},
    Profile{.name = "trtllm_sin_cos",
            .versioned = "trtllm_sin_cos-1",
            .source = kTensorRtLlm,
            .layout = v1::LAYOUT_SIN_COS,
            .checkpoint_dtype = false,
            .tensor_names = {"embed_positions"},
            .rows = {.dynamic = Dynamic::kUnscaled, .longrope = LongRope::kLong}},
    Profile{.name = "vllm",
            .versioned = "vllm-1",
            .source = "vllm-project/vllm main at 017e9f4448b7 (2026-08-17)",
            .layout = v1::LAYOUT_COS_SIN,
            .checkpoint_dtype = true,
            .float32_model_types = "deepseek_v4 gpt_oss kimi_k3",
            .rows = {.linear_times_factor = true,
                     .dynamic = Dynamic::kUnscaled,
                     .yarn_original_times_factor = true,
                     .mrope_multiple = 4,
                     .longrope = LongRope::kShortThenLong},
            .short_then_long_names = {"long_short_cos_sin_cache"},
            .refused_fact = kDualChunk},
};

constexpr auto kVersionedNames = [] {
  std::array<absl::string_view, kProfiles.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kProfiles[i].versioned;
  return names;
}();

// Far beyond what a selection may hold, where it is refused by its own rule.
int64_t CeilOfProduct(int64_t rows, double factor) {
  const double product = std::ceil(static_cast<double>(rows) * factor);
  return product >= 0x1p40 ? int64_t{1} << 40 : static_cast<int64_t>(product);
}

int64_t Rows(const RowRule& rule, const v1::ResolvedEncoding& encoding) {
  const v1::RopeSpec& rope = encoding.spec().rope();
  // Of the other types vLLM makes the table of one axis, and XD-RoPE's has as many rows.
  const bool by_axes = encoding.has_mrope() &&
                       (rope.has_yarn() || rope.scaling_case() == v1::RopeSpec::SCALING_NOT_SET);
  const int64_t multiple = by_axes ? rule.mrope_multiple : 1;
  const int64_t length = multiple * encoding.max_position_embeddings();
  if (rope.has_yarn() && rule.yarn_original_times_factor) {
    return CeilOfProduct(multiple * rope.yarn().original_max_position_embeddings(),
                         rope.yarn().factor());
  }
  if (rope.has_linear() && rule.linear_times_factor) {
    return CeilOfProduct(length, rope.linear().factor());
  }
  if (rope.dynamic().has_factor() && rule.dynamic == Dynamic::kTimesFactor) {
    return CeilOfProduct(length, rope.dynamic().factor());
  }
  return length;
}

// A model that keeps its rotation complex is never cast below complex64.
bool IsComplex(const Profile& profile, const ProfiledRequest& request) {
  return profile.name == "hf" && request.encoding != nullptr &&
         request.encoding->rotation() == "complex";
}

// Whether the doubled row of a table of adjacent channels is [c0 c1 … c0 c1 …] all the same: where
// the rotation leaves the channels in halves, or spreads the table out itself.
bool RepeatsHalves(const Profile& profile, const v1::ResolvedEncoding& encoding) {
  if (profile.layout != v1::LAYOUT_COS_AND_SIN_FULL) return false;
  return encoding.rotation() == "interleaved_to_half" ||
         HasName(profile.repeated_halves_types, encoding.model_type());
}

v1::Layout LayoutOf(const Profile& profile, const ProfiledRequest& request) {
  if (IsComplex(profile, request)) return v1::LAYOUT_PAIRS;
  if (request.encoding != nullptr &&
      HasName(profile.half_width_types, request.encoding->model_type())) {
    return v1::LAYOUT_COS_AND_SIN_HALF;
  }
  if (request.encoding != nullptr && RepeatsHalves(profile, *request.encoding)) {
    return v1::LAYOUT_COS_AND_SIN_REPEATED;
  }
  const bool latent = request.encoding != nullptr && request.encoding->rotary_channels_last();
  return latent && profile.latent_layout != v1::LAYOUT_UNSPECIFIED ? profile.latent_layout
                                                                   : profile.layout;
}

v1::DType DTypeOf(const Profile& profile, const ProfiledRequest& request) {
  const bool of_checkpoint = profile.checkpoint_dtype || (profile.longrope_checkpoint_dtype &&
                                                          request.spec->rope().has_longrope());
  const bool float32 = IsComplex(profile, request) || !of_checkpoint ||
                       (request.encoding != nullptr &&
                        HasName(profile.float32_model_types, request.encoding->model_type()));
  if (float32 || request.encoding == nullptr) return v1::DTYPE_F32;
  return DTypeOfCheckpoint(profile.name, *request.encoding, request.findings);
}

// A table that depends on the length is for the stack's, unless the request has named one.
void SetDynamicLength(const RowRule& rule, const v1::ResolvedEncoding& encoding, int64_t rows,
                      v1::DynamicScaling* dynamic) {
  if (dynamic->has_sequence_length()) return;
  if (rule.dynamic == Dynamic::kOfRows) dynamic->set_sequence_length(rows);
  if (rule.dynamic == Dynamic::kTimesFactor && dynamic->has_factor()) {
    dynamic->set_sequence_length(Rows(rule, encoding));
  }
}

void SetLongRopeList(const RowRule& rule, int64_t max_model_len, int64_t* rows,
                     v1::LongRopeScaling* longrope) {
  if (longrope->has_sequence_length()) return;
  const int64_t original = longrope->original_max_position_embeddings();
  switch (rule.longrope) {
    case LongRope::kOfRows:
      return longrope->set_sequence_length(*rows);
    case LongRope::kShortThenLong:
      longrope->set_short_then_long(true);
      *rows += original;
      return;
    case LongRope::kLong:
      return longrope->set_sequence_length(max_model_len > 0 ? max_model_len : original + 1);
  }
}

// The rows of a model's table, all positions from 0 on.
void SetRows(const Profile& profile, const ProfiledRequest& request, int64_t max_model_len) {
  int64_t rows = max_model_len;
  if (rows == 0 && request.encoding != nullptr) rows = Rows(profile.rows, *request.encoding);
  if (rows == 0) return;
  v1::RopeSpec& rope = *request.spec->mutable_rope();
  if (request.encoding != nullptr && rope.has_dynamic()) {
    SetDynamicLength(profile.rows, *request.encoding, rows, rope.mutable_dynamic());
  }
  if (request.encoding != nullptr && rope.has_longrope()) {
    SetLongRopeList(profile.rows, max_model_len, &rows, rope.mutable_longrope());
  }
  request.selection->mutable_position_range()->set_begin(0);
  request.selection->mutable_position_range()->set_end(rows);
}

// The field of EncodingSpec that is set.
std::string FamilyName(const v1::EncodingSpec& spec) {
  const auto* const fields = v1::EncodingSpec::descriptor()->FindOneofByName("family");
  const auto* const field = spec.GetReflection()->GetOneofFieldDescriptor(spec, fields);
  return field == nullptr ? "no encoding" : field->name();
}

// A profile makes the table of a text tower's RoPE: rows of positions.
absl::Status CheckKind(const ProfiledRequest& request) {
  if (request.spec->has_rope()) return absl::OkStatus();
  if (request.encoding == nullptr) {
    return FieldError("format.profile",
                      absl::StrCat("applies to rope only, got ", FamilyName(*request.spec)));
  }
  const std::string of_tower =
      absl::StrCat(" of the ", request.encoding->tower(), " tower (rope_type ",
                   request.encoding->rope_type(), " of ", request.encoding->model_type(), ")");
  if (request.spec->has_mrope()) {
    return FieldError(
        "format.profile",
        absl::StrCat("has no rows by axis", of_tower,
                     ": the stack's table has a row a position, in which it looks up each axis; "
                     "ask for that by position_range or position_ids, or for rows by axis without "
                     "a profile"));
  }
  if (request.spec->has_axial_rope()) {
    return FieldError(
        "format.profile",
        absl::StrCat("has no table", of_tower,
                     ": its rows are patches of a grid that the stack takes from each image; ask "
                     "for them by grid without a profile"));
  }
  return FieldError("format.profile",
                    absl::StrCat("applies to rope only, the ", request.encoding->tower(),
                                 " tower has ", FamilyName(*request.spec)));
}

absl::Status CheckTables(const Profile& profile, const v1::ResolvedEncoding& encoding) {
  if (HasName(profile.tableless_types, encoding.model_type())) {
    return FieldError(
        "format.profile",
        absl::StrCat(profile.name, " has no table for ", encoding.model_type(),
                     ": on GPUs it computes cos and sin in each call, as transformers does, and "
                     "the one that it keeps for CPUs is without the scaling; profile hf has what "
                     "it computes"));
  }
  for (const std::string& type : {encoding.rope_type(), encoding.variant()}) {
    if (!HasName(profile.unknown_types, type)) continue;
    return FieldError("format.profile", absl::StrCat(profile.name, " does not know rope_type ",
                                                     type, " and refuses this config"));
  }
  for (const v1::FactPlace& place : encoding.places()) {
    if (profile.refused_fact.empty() || place.fact() != profile.refused_fact) continue;
    return FieldError(
        "format.profile",
        absl::StrCat("has no table for ", place.pointer(), " of this config: ", profile.name,
                     " builds five, for queries and keys inside and across chunks; their rows "
                     "are those of position_ids without a profile"));
  }
  return absl::OkStatus();
}

std::span<const absl::string_view> Used(const Names& names) {
  return {names.begin(), std::find(names.begin(), names.end(), "")};
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

absl::string_view ProfileSource(absl::string_view versioned) {
  for (const Profile& profile : kProfiles) {
    if (versioned == profile.versioned) return profile.source;
  }
  return "";
}

absl::StatusOr<const Profile*> ApplyProfile(const ProfiledRequest& request) {
  v1::TensorFormat& format = *request.format;
  if (format.profile().empty()) {
    if (!format.has_max_model_len()) return nullptr;
    return FieldError("format.max_model_len", "needs a profile");
  }
  ASSIGN_OR_RETURN(const Profile* profile, FindProfile(format.profile()));
  RETURN_IF_ERROR(CheckKind(request));
  if (format.has_max_model_len() && format.max_model_len() < 1) {
    return FieldError("format.max_model_len",
                      absl::StrCat("must be at least 1, got ", format.max_model_len()));
  }
  if (request.encoding != nullptr) RETURN_IF_ERROR(CheckTables(*profile, *request.encoding));
  format.set_profile(std::string(profile->versioned));
  if (format.layout() == v1::LAYOUT_UNSPECIFIED) format.set_layout(LayoutOf(*profile, request));
  if (format.dtype() == v1::DTYPE_UNSPECIFIED) format.set_dtype(DTypeOf(*profile, request));
  if (request.selection->coordinates_case() == v1::Selection::COORDINATES_NOT_SET) {
    SetRows(*profile, request, format.max_model_len());
  }
  if (request.encoding != nullptr) {
    // By what the profile has made of the spec.
    RETURN_IF_ERROR(CheckPositionLimit(*request.encoding, *request.spec, "format.max_model_len",
                                       format.max_model_len()));
    AddProfileFindings(profile->name, *request.encoding, request.spec->rope(), request.findings);
  }
  format.clear_max_model_len();
  return profile;
}

std::span<const absl::string_view> TensorNames(const Profile& profile, const v1::EncodingSpec& spec,
                                               v1::Layout layout) {
  if (layout == profile.layout) {
    return Used(spec.rope().longrope().short_then_long() ? profile.short_then_long_names
                                                         : profile.tensor_names);
  }
  if (layout == profile.latent_layout) return Used(profile.latent_names);
  if (layout == v1::LAYOUT_COS_AND_SIN_HALF) return Used(profile.half_width_names);
  return {};
}

}  // namespace posenc
