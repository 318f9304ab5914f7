#include "lib/model_config/profile_dtype.h"

#include <array>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/model_config/fact_place.h"

namespace posenc {
namespace {

// A stack's own choice for a config that says float32, or nothing.
struct DTypeRule {
  absl::string_view profile;
  v1::DType of_float32 = v1::DTYPE_F32;
  v1::DType of_float32_encoder = v1::DTYPE_F32;  // a model that only reads: a pooling model
  v1::DType of_float32_gemma = v1::DTYPE_F32;
  absl::string_view float32 = "";  // a clause about the stack; empty: it is kept
  absl::string_view missing;
};

// vLLM: _resolve_auto_dtype and get_torch_dtype, SGLang: _get_and_verify_dtype, with dtype auto.
constexpr std::array kDTypeRules = {
    DTypeRule{.profile = "vllm",
              .of_float32 = v1::DTYPE_BF16,
              .of_float32_encoder = v1::DTYPE_F16,
              .of_float32_gemma = v1::DTYPE_BF16,
              .float32 = "vllm takes float32 down to bfloat16, or to float16 for pooling models "
                         "and on GPUs before compute capability 8.0",
              .missing = "vllm takes that of the safetensors' headers; float32, or what has none, "
                         "becomes bfloat16, or float16 for pooling models and on GPUs before "
                         "compute capability 8.0"},
    DTypeRule{.profile = "sglang",
              .of_float32 = v1::DTYPE_F16,
              .of_float32_encoder = v1::DTYPE_F16,
              .of_float32_gemma = v1::DTYPE_BF16,
              .float32 = "sglang takes float32 down to float16, or to bfloat16 for Gemma",
              .missing = "sglang takes that for float32, which becomes float16, or bfloat16 for "
                         "Gemma"},
    DTypeRule{.profile = "hf",
              .missing = "transformers takes that of the weights where it is asked for auto, else "
                         "float32"},
    DTypeRule{.profile = "onnx", .missing = "the exporter takes the one that it is asked for"},
};

v1::DType OfFloat32(const DTypeRule& rule, const v1::ResolvedEncoding& encoding) {
  if (absl::StartsWith(encoding.model_type(), "gemma")) return rule.of_float32_gemma;
  return encoding.tower() == "encoder" ? rule.of_float32_encoder : rule.of_float32;
}

absl::string_view NameOf(v1::DType dtype) {
  if (dtype == v1::DTYPE_BF16) return "bfloat16";
  return dtype == v1::DTYPE_F16 ? "float16" : "float32";
}

void Note(absl::string_view says, absl::string_view rule, v1::DType dtype,
          const v1::ResolvedEncoding& encoding,
          google::protobuf::RepeatedPtrField<v1::Finding>* findings) {
  v1::Finding* finding = findings->Add();
  finding->set_severity(v1::SEVERITY_NOTE);
  finding->set_rule("profile-dtype");
  finding->set_message(absl::StrCat("The config says ", says, ": ", rule, ". This table is ",
                                    NameOf(dtype), "; name the dtype for another."));
  if (const v1::FactPlace* place = FindPlace(encoding, "dtype")) {
    PointAt(*place, finding);
    finding->set_found(place->found());
  }
}

}  // namespace

v1::DType DTypeOfCheckpoint(absl::string_view profile, const v1::ResolvedEncoding& encoding,
                            google::protobuf::RepeatedPtrField<v1::Finding>* findings) {
  if (encoding.dtype() == "bf16") return v1::DTYPE_BF16;
  if (encoding.dtype() == "f16") return v1::DTYPE_F16;
  const auto* const rule =
      absl::c_find_if(kDTypeRules, [&](const DTypeRule& row) { return row.profile == profile; });
  if (rule == kDTypeRules.end()) return v1::DTYPE_F32;
  const v1::DType dtype = OfFloat32(*rule, encoding);
  if (encoding.dtype().empty()) {
    Note("no dtype that a table has", rule->missing, dtype, encoding, findings);
  } else if (!rule->float32.empty()) {
    Note("float32", rule->float32, dtype, encoding, findings);
  }
  return dtype;
}

}  // namespace posenc
