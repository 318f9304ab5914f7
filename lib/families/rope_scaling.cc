#include "lib/families/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/rope_scaling_checks.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

// A ramp narrower than this (relative to its ends) would be lost in float32.
constexpr double kNarrowestRamp = 0x1p-16;

// ln(rope_theta) divides YaRN's ramp, whose ends must stay far below 2^62 in number.
constexpr double kMinYarnTheta = 1 + 0x1p-20;

absl::Status CanonicalizeLinear(const v1::RopeSpec& rope, v1::LinearScaling* linear) {
  RETURN_IF_ERROR(CheckNumber("rope.linear.factor", linear->has_factor(), linear->factor()));
  if (!DividesPositions(rope, linear->divide_positions())) linear->clear_divide_positions();
  return CheckAngles("rope.linear.factor", rope.rope_theta(), linear->factor());
}

// 0 is where a reader of configs takes the default, as transformers does with Python's `or`; a
// spec leaves the field unset for that.
absl::Status CheckBeta(absl::string_view field, double value) {
  if (value != 0) return CheckNumber(field, true, value);
  return FieldError(field, "must be positive; leave it unset for the default, got 0");
}

double DefaultAttentionFactor(const v1::YarnScaling& yarn) {
  const double multiplier = yarn.has_attn_factor() ? yarn.attn_factor() : 1.0;
  if (yarn.mscale() != 0 && yarn.mscale_all_dim() != 0) {
    return Magnitude(yarn.factor(), yarn.mscale()) /
           Magnitude(yarn.factor(), yarn.mscale_all_dim()) * multiplier;
  }
  return Magnitude(yarn.factor(), 1.0) * multiplier;
}

absl::Status CanonicalizeYarn(double rope_theta, v1::YarnScaling* yarn) {
  if (rope_theta < kMinYarnTheta) {
    return FieldError(
        "rope.rope_theta",
        absl::StrCat("must be above 1 (by 2^-20) with yarn, whose ramp divides by its "
                     "logarithm, got ",
                     rope_theta));
  }
  RETURN_IF_ERROR(CheckNumber("rope.yarn.factor", yarn->has_factor(), yarn->factor()));
  RETURN_IF_ERROR(CheckAngles("rope.yarn.factor", rope_theta, yarn->factor()));
  RETURN_IF_ERROR(CheckContext("rope.yarn.original_max_position_embeddings",
                               yarn->has_original_max_position_embeddings(),
                               yarn->original_max_position_embeddings()));
  if (!yarn->has_beta_fast()) yarn->set_beta_fast(32);
  if (!yarn->has_beta_slow()) yarn->set_beta_slow(1);
  RETURN_IF_ERROR(CheckBeta("rope.yarn.beta_fast", yarn->beta_fast()));
  RETURN_IF_ERROR(CheckBeta("rope.yarn.beta_slow", yarn->beta_slow()));
  if (!yarn->has_truncate()) yarn->set_truncate(true);

  if (yarn->has_attn_factor()) {
    RETURN_IF_ERROR(CheckNumber("rope.yarn.attn_factor", true, yarn->attn_factor()));
    if (yarn->has_attention_factor()) {
      return FieldError("rope.yarn.attn_factor",
                        "multiplies the default of attention_factor, which is set");
    }
  }
  if (!yarn->has_attention_factor()) {
    const double attention_factor = DefaultAttentionFactor(*yarn);
    if (!IsRopeNumber(attention_factor)) {
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
  yarn->clear_attn_factor();
  return CheckAttentionFactor("rope.yarn.attention_factor", yarn->attention_factor());
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
  return CheckContext("rope.llama3.original_max_position_embeddings",
                      llama3->has_original_max_position_embeddings(),
                      llama3->original_max_position_embeddings());
}

absl::Status CanonicalizeProportional(v1::RopeSpec* rope) {
  v1::ProportionalScaling* proportional = rope->mutable_proportional();
  constexpr absl::string_view kFraction = "rope.proportional.partial_rotary_factor";
  constexpr absl::string_view kPairs = "rope.proportional.rotating_pairs";
  if (!proportional->has_factor()) proportional->set_factor(1.0);
  RETURN_IF_ERROR(CheckNumber("rope.proportional.factor", true, proportional->factor()));
  RETURN_IF_ERROR(
      CheckAngles("rope.proportional.factor", rope->rope_theta(), proportional->factor()));
  const int64_t all = rope->rotary_dim() / 2;
  if (proportional->has_partial_rotary_factor()) {
    const double fraction = proportional->partial_rotary_factor();
    if (!(fraction >= 0 && fraction <= 1)) {
      return FieldError(kFraction, absl::StrCat("must be in [0, 1], got ", fraction));
    }
    const auto pairs =
        static_cast<int64_t>(std::floor(fraction * static_cast<double>(rope->rotary_dim()) / 2));
    if (proportional->has_rotating_pairs() && proportional->rotating_pairs() != pairs) {
      return FieldError(kFraction,
                        absl::StrCat("gives ", pairs, " rotating_pairs, got rotating_pairs ",
                                     proportional->rotating_pairs()));
    }
    proportional->set_rotating_pairs(pairs);
    proportional->clear_partial_rotary_factor();
  }
  if (!proportional->has_rotating_pairs()) proportional->set_rotating_pairs(all);
  return CheckInRange(kPairs, proportional->rotating_pairs(), 0, all);
}

absl::Status CanonicalizeFrequencies(v1::RopeSpec* rope) {
  v1::ExplicitFrequencies* frequencies = rope->mutable_frequencies();
  constexpr absl::string_view kField = "rope.frequencies.inv_freq";
  RETURN_IF_ERROR(CheckList(kField, *rope, frequencies->inv_freq()));
  for (int i = 0; i < frequencies->inv_freq_size(); ++i) {
    const double frequency = frequencies->inv_freq(i);
    if (!(frequency >= 0 && frequency <= kMaxInvFreq)) {
      return FieldError(absl::StrCat(kField, "[", i, "]"),
                        absl::StrCat("must be in [0, ", kMaxInvFreq, "], got ", frequency));
    }
    if (frequency == 0) frequencies->set_inv_freq(i, 0.0);  // not -0
  }
  if (!frequencies->has_attention_factor()) frequencies->set_attention_factor(1.0);
  return CheckAttentionFactor("rope.frequencies.attention_factor", frequencies->attention_factor());
}

}  // namespace

double Magnitude(double factor, double k) {
  return factor <= 1 ? 1.0 : 0.1 * k * Log(factor) + 1.0;
}

absl::Status CanonicalizeRopeScaling(v1::RopeSpec* rope) {
  const double rope_theta = rope->rope_theta();
  if (!rope->has_frequencies()) {
    RETURN_IF_ERROR(CheckNumber("rope.rope_theta", true, rope_theta));
    RETURN_IF_ERROR(CheckAngles("rope.rope_theta", rope_theta, 1.0));
  }
  switch (rope->scaling_case()) {
    case v1::RopeSpec::SCALING_NOT_SET:
      return absl::OkStatus();
    case v1::RopeSpec::kLinear:
      return CanonicalizeLinear(*rope, rope->mutable_linear());
    case v1::RopeSpec::kYarn:
      return CanonicalizeYarn(rope_theta, rope->mutable_yarn());
    case v1::RopeSpec::kLlama3:
      return CanonicalizeLlama3(rope_theta, rope->mutable_llama3());
    case v1::RopeSpec::kDynamic:
      return CanonicalizeDynamic(rope);
    case v1::RopeSpec::kNtk:
      return CanonicalizeNtk(rope);
    case v1::RopeSpec::kLongrope:
      return CanonicalizeLongRope(rope);
    case v1::RopeSpec::kProportional:
      return CanonicalizeProportional(rope);
    case v1::RopeSpec::kFrequencies:
      return CanonicalizeFrequencies(rope);
  }
  return absl::OkStatus();
}

double RopeAttentionFactor(const v1::RopeSpec& rope) {
  switch (rope.scaling_case()) {
    case v1::RopeSpec::kYarn:
      return rope.yarn().attention_factor();
    case v1::RopeSpec::kLongrope:
      return rope.longrope().attention_factor();
    case v1::RopeSpec::kFrequencies:
      return rope.frequencies().attention_factor();
    case v1::RopeSpec::kDynamic:
      return rope.dynamic().has_attention_factor() ? rope.dynamic().attention_factor() : 1.0;
    case v1::RopeSpec::SCALING_NOT_SET:
    case v1::RopeSpec::kLinear:
    case v1::RopeSpec::kLlama3:
    case v1::RopeSpec::kNtk:
    case v1::RopeSpec::kProportional:
      return 1.0;
  }
  return 1.0;
}

}  // namespace posenc
