#include "client/cli/names.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_code.h"

namespace posenc::cli {
namespace {

struct DTypeName {
  absl::string_view name;
  v1::DType dtype;
};

// What frameworks, safetensors and numpy call them, in lower case.
constexpr std::array kDTypeNames = std::to_array<DTypeName>({
    {"auto", v1::DTYPE_UNSPECIFIED}, {"f32", v1::DTYPE_F32},     {"float32", v1::DTYPE_F32},
    {"float", v1::DTYPE_F32},        {"fp32", v1::DTYPE_F32},    {"f64", v1::DTYPE_F64},
    {"float64", v1::DTYPE_F64},      {"double", v1::DTYPE_F64},  {"fp64", v1::DTYPE_F64},
    {"f16", v1::DTYPE_F16},          {"float16", v1::DTYPE_F16}, {"half", v1::DTYPE_F16},
    {"fp16", v1::DTYPE_F16},         {"bf16", v1::DTYPE_BF16},   {"bfloat16", v1::DTYPE_BF16},
    {"i32", v1::DTYPE_I32},          {"int32", v1::DTYPE_I32},   {"int", v1::DTYPE_I32},
    {"bool", v1::DTYPE_BOOL},
});

}  // namespace

absl::StatusOr<v1::DType> ParseDType(absl::string_view name) {
  if (name.empty()) return v1::DTYPE_UNSPECIFIED;
  const std::string lower = absl::AsciiStrToLower(name);
  const absl::string_view plain = absl::StripPrefix(lower, "torch.");
  for (const DTypeName& known : kDTypeNames) {
    if (known.name == plain) return known.dtype;
  }
  return UsageError(
      absl::StrCat("--dtype: must be f32, f64, f16, bf16, i32, bool or auto, got ", name));
}

absl::StatusOr<v1::Layout> ParseLayout(absl::string_view name) {
  v1::Layout layout = v1::LAYOUT_UNSPECIFIED;
  if (name.empty() ||
      (v1::Layout_Parse(absl::StrCat("LAYOUT_", absl::AsciiStrToUpper(name)), &layout) &&
       layout != v1::LAYOUT_UNSPECIFIED)) {
    return layout;
  }
  return UsageError(absl::StrCat(
      "--layout: must be cos_sin, cos_and_sin_half, cos_and_sin_full, pairs, inv_freq, table, "
      "slopes, bias, bias_vector, buckets or bucket_vector, got ",
      name));
}

absl::StatusOr<v1::Arithmetic> ParseArithmetic(absl::string_view name) {
  if (name.empty()) return v1::ARITHMETIC_UNSPECIFIED;
  if (name == "float32") return v1::ARITHMETIC_FLOAT32;
  if (name == "exact") return v1::ARITHMETIC_EXACT;
  return UsageError(absl::StrCat("--arithmetic: must be float32 or exact, got ", name));
}

absl::StatusOr<v1::Compat> ParseCompat(absl::string_view name) {
  if (name.empty()) return v1::COMPAT_UNSPECIFIED;
  if (name == "latest") return v1::COMPAT_LATEST;
  if (name == "5" || name == "5.16") return v1::COMPAT_V5_16;
  if (name == "4" || name == "4.57") return v1::COMPAT_V4_57;
  return UsageError(absl::StrCat("--compat: must be 4.57, 5.16 or latest, got ", name));
}

absl::string_view SafetensorsName(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F32:
      return "F32";
    case v1::DTYPE_F64:
      return "F64";
    case v1::DTYPE_F16:
      return "F16";
    case v1::DTYPE_BF16:
      return "BF16";
    case v1::DTYPE_I32:
      return "I32";
    case v1::DTYPE_BOOL:
      return "BOOL";
    default:
      return "";
  }
}

std::string PairingName(const v1::EncodingSpec& spec) {
  if (!spec.has_rope()) return "";
  return absl::AsciiStrToLower(
      absl::StripPrefix(v1::Pairing_Name(spec.rope().pairing()), "PAIRING_"));
}

}  // namespace posenc::cli
