#include "client/cli/names.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_code.h"
#include "client/cli/flag_names.h"
#include "google/protobuf/descriptor.h"
#include "lib/model_config/profile.h"

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

// All of the proto's, as this flag takes them.
std::string LayoutNames() {
  std::string names;
  const google::protobuf::EnumDescriptor& layouts = *v1::Layout_descriptor();
  for (int i = 1; i < layouts.value_count(); ++i) {  // the first is UNSPECIFIED
    absl::StrAppend(&names, i == 1 ? "" : ", ",
                    absl::AsciiStrToLower(absl::StripPrefix(layouts.value(i)->name(), "LAYOUT_")));
  }
  return names;
}

// vllm of vllm-1.
absl::string_view WithoutVersion(absl::string_view versioned) {
  return versioned.substr(0, versioned.rfind('-'));
}

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
  return UsageError(absl::StrCat("--layout: must be one of ", LayoutNames(), ", got ", name));
}

absl::StatusOr<v1::Arithmetic> ParseArithmetic(absl::string_view name) {
  if (name.empty()) return v1::ARITHMETIC_UNSPECIFIED;
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "float32") return v1::ARITHMETIC_FLOAT32;
  if (lower == "exact") return v1::ARITHMETIC_EXACT;
  return UsageError(absl::StrCat("--arithmetic: must be float32 or exact, got ", name));
}

absl::StatusOr<v1::Compat> ParseCompat(absl::string_view name) {
  if (name.empty()) return v1::COMPAT_UNSPECIFIED;
  if (absl::EqualsIgnoreCase(name, "latest")) return v1::COMPAT_LATEST;
  if (name == "5" || name == "5.16") return v1::COMPAT_V5_16;
  if (name == "4" || name == "4.57") return v1::COMPAT_V4_57;
  return UsageError(absl::StrCat("--compat: must be 4.57, 5.16 or latest, got ", name));
}

absl::StatusOr<std::string> ParseProfile(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower.empty()) return lower;
  for (const absl::string_view versioned : ProfileNames()) {
    if (lower == versioned || lower == WithoutVersion(versioned)) return lower;
  }
  return UsageError(absl::StrCat("--profile: must be one of ", ProfileList(), ", got ", name));
}

std::string ProfileList() {
  return absl::StrJoin(ProfileNames(), ", ", [](std::string* out, absl::string_view versioned) {
    absl::StrAppend(out, WithoutVersion(versioned));
  });
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

bool HasAttentionFactor(const v1::EncodingSpec& spec) {
  return spec.has_rope() || spec.has_mrope();
}

std::string FindingLine(const v1::Finding& finding) {
  const std::string severity =
      absl::AsciiStrToLower(absl::StripPrefix(v1::Severity_Name(finding.severity()), "SEVERITY_"));
  return absl::StrCat(severity, ": ", finding.pointer(), finding.pointer().empty() ? "" : ": ",
                      finding.message(), FlagsOf(finding.message()));
}

}  // namespace posenc::cli
