#include "lib/families/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/status.h"
#include "lib/families/family.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/rotation.h"

namespace posenc {
namespace {

// Numbers stay normal float32s, so that no step of either arithmetic leaves its range.
constexpr double kMinNumber = std::numeric_limits<float>::min();
constexpr double kMaxNumber = std::numeric_limits<float>::max();

// A ramp narrower than this (relative to its ends) would be lost in float32.
constexpr double kNarrowestRamp = 0x1p-16;

// ln(rope_theta) divides YaRN's ramp.
constexpr double kMinYarnTheta = 1.001;

bool IsNumber(double value) { return value >= kMinNumber && value <= kMaxNumber; }  // not NaN

absl::Status CheckNumber(absl::string_view field, bool is_set, double value) {
  if (!is_set) return FieldError(field, "is required");
  if (IsNumber(value)) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat("must be positive and within the range of float32, got ", value));
}

absl::Status CheckOriginalContext(absl::string_view field, bool is_set, int64_t value) {
  if (!is_set) return FieldError(field, "is required");
  if (value >= 1 && value <= kMaxPosition) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be in [1, ", kMaxPosition, "], got ", value));
}

// Frequencies are at most 1, or 1/rope_theta below 1; a factor below 1 raises them.
absl::Status CheckAngles(absl::string_view field, double rope_theta, double factor) {
  const double largest = 1 / (std::min(rope_theta, 1.0) * std::min(factor, 1.0));
  if (largest <= kMaxInvFreq) return absl::OkStatus();
  return FieldError(field, absl::StrCat("makes angles too large: frequencies up to ", largest,
                                        " exceed ", kMaxInvFreq, " radians per position"));
}

absl::Status CanonicalizeLinear(double rope_theta, v1::LinearScaling* linear) {
  RETURN_IF_ERROR(CheckNumber("rope.linear.factor", linear->has_factor(), linear->factor()));
  return CheckAngles("rope.linear.factor", rope_theta, linear->factor());
}

// YaRN's m(factor, k): how much logits are sharpened in a context that is
// `factor` times as long. Float64 in Python's order.
double Magnitude(double factor, double k) {
  return factor <= 1 ? 1.0 : 0.1 * k * Log(factor) + 1.0;
}

double DefaultAttentionFactor(const v1::YarnScaling& yarn) {
  if (yarn.mscale() != 0 && yarn.mscale_all_dim() != 0) {
    return Magnitude(yarn.factor(), yarn.mscale()) /
           Magnitude(yarn.factor(), yarn.mscale_all_dim());
  }
  return Magnitude(yarn.factor(), 1.0);
}

absl::Status CanonicalizeYarn(double rope_theta, v1::YarnScaling* yarn) {
  if (rope_theta < kMinYarnTheta) {
    return FieldError("rope.rope_theta", absl::StrCat("must be at least ", kMinYarnTheta,
                                                      " with yarn, got ", rope_theta));
  }
  RETURN_IF_ERROR(CheckNumber("rope.yarn.factor", yarn->has_factor(), yarn->factor()));
  RETURN_IF_ERROR(CheckAngles("rope.yarn.factor", rope_theta, yarn->factor()));
  RETURN_IF_ERROR(CheckOriginalContext("rope.yarn.original_max_position_embeddings",
                                       yarn->has_original_max_position_embeddings(),
                                       yarn->original_max_position_embeddings()));
  if (!yarn->has_beta_fast()) yarn->set_beta_fast(32);
  if (!yarn->has_beta_slow()) yarn->set_beta_slow(1);
  RETURN_IF_ERROR(CheckNumber("rope.yarn.beta_fast", true, yarn->beta_fast()));
  RETURN_IF_ERROR(CheckNumber("rope.yarn.beta_slow", true, yarn->beta_slow()));
  if (yarn->beta_fast() < yarn->beta_slow()) {
    return FieldError("rope.yarn.beta_fast",
                      absl::StrCat("must be at least beta_slow (", yarn->beta_slow(), "), got ",
                                   yarn->beta_fast()));
  }
  if (!yarn->has_truncate()) yarn->set_truncate(true);

  if (!yarn->has_attention_factor()) {
    const double attention_factor = DefaultAttentionFactor(*yarn);
    if (!IsNumber(attention_factor)) {
      return FieldError(
          "rope.yarn.mscale",
          absl::StrCat("must give, with mscale_all_dim, a positive attention_factor; ",
                       yarn->mscale(), " and ", yarn->mscale_all_dim(), " give ",
                       attention_factor));
    }
    yarn->set_attention_factor(attention_factor);
  }
  yarn->clear_mscale();
  yarn->clear_mscale_all_dim();
  return CheckNumber("rope.yarn.attention_factor", true, yarn->attention_factor());
}

absl::Status CanonicalizeLlama3(double rope_theta, v1::Llama3Scaling* llama3) {
  RETURN_IF_ERROR(CheckNumber("rope.llama3.factor", llama3->has_factor(), llama3->factor()));
  RETURN_IF_ERROR(CheckAngles("rope.llama3.factor", rope_theta, llama3->factor()));
  RETURN_IF_ERROR(CheckNumber("rope.llama3.low_freq_factor", llama3->has_low_freq_factor(),
                              llama3->low_freq_factor()));
  RETURN_IF_ERROR(CheckNumber("rope.llama3.high_freq_factor", llama3->has_high_freq_factor(),
                              llama3->high_freq_factor()));
  const double low = llama3->low_freq_factor();
  const double high = llama3->high_freq_factor();
  if (high != low && !(high >= low * (1 + kNarrowestRamp))) {
    return FieldError("rope.llama3.high_freq_factor",
                      absl::StrCat("must equal low_freq_factor (", low,
                                   ") or exceed it by 1/65536 of it, got ", high));
  }
  return CheckOriginalContext("rope.llama3.original_max_position_embeddings",
                              llama3->has_original_max_position_embeddings(),
                              llama3->original_max_position_embeddings());
}

}  // namespace

absl::Status CanonicalizeRopeScaling(v1::RopeSpec* rope) {
  const double rope_theta = rope->rope_theta();
  RETURN_IF_ERROR(CheckNumber("rope.rope_theta", true, rope_theta));
  RETURN_IF_ERROR(CheckAngles("rope.rope_theta", rope_theta, 1.0));
  switch (rope->scaling_case()) {
    case v1::RopeSpec::SCALING_NOT_SET:
      return absl::OkStatus();
    case v1::RopeSpec::kLinear:
      return CanonicalizeLinear(rope_theta, rope->mutable_linear());
    case v1::RopeSpec::kYarn:
      return CanonicalizeYarn(rope_theta, rope->mutable_yarn());
    case v1::RopeSpec::kLlama3:
      return CanonicalizeLlama3(rope_theta, rope->mutable_llama3());
  }
  return absl::OkStatus();
}

double RopeAttentionFactor(const v1::RopeSpec& rope) {
  switch (rope.scaling_case()) {
    case v1::RopeSpec::kYarn:
      return rope.yarn().attention_factor();
    case v1::RopeSpec::SCALING_NOT_SET:
    case v1::RopeSpec::kLinear:
    case v1::RopeSpec::kLlama3:
      return 1.0;
  }
  return 1.0;
}

}  // namespace posenc
