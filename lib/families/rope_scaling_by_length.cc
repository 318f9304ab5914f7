// RoPEs whose frequencies depend on how long the sequences are: by a base that
// grows (dynamic, ntk), or by one of two lists (longrope).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/rope_frequencies.h"
#include "lib/families/rope_scaling_checks.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

// alpha = factor·r - (factor - 1) is a difference of numbers of this size, which
// must leave a float32 something of the 1 that it is when nothing has grown.
constexpr double kMaxDynamicFactor = 65536;

// (d/2)^mixed_b, by which a logarithm is divided, stays far inside float32.
constexpr double kMaxMixedB = 4;

// base' of a changed base must stay a float32 too; it is never below rope_theta.
absl::Status CheckBase(absl::string_view field, const v1::RopeSpec& rope) {
  const double base = RopeBase(rope);
  if (base <= kMaxRopeNumber / 2) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat("raises rope_theta beyond the range of float32, to ", base));
}

// The exponent of a changed base is d / (d - 2).
absl::Status CheckBaseExponent(const v1::RopeSpec& rope, absl::string_view rope_type) {
  if (rope.rotary_dim() > 2) return absl::OkStatus();
  return FieldError("rope.rotary_dim",
                    absl::StrCat("must be at least 4 with ", rope_type, ", got 2"));
}

// TeleChat's code: no table is shorter than what the model was trained on, and a longer one is
// multiplied (reference/hf-rope.md, section 5.3).
absl::Status CanonicalizeTrainedLength(v1::DynamicScaling* dynamic) {
  if (dynamic->has_trained_length()) {
    const int64_t trained = dynamic->trained_length();
    RETURN_IF_ERROR(CheckContext("rope.dynamic.trained_length", true, trained));
    dynamic->set_sequence_length(std::max(dynamic->sequence_length(), trained));
    if (!dynamic->has_attention_factor()) {
      dynamic->set_attention_factor(Magnitude(
          static_cast<double>(dynamic->sequence_length()) / static_cast<double>(trained), 1.0));
    }
    dynamic->clear_trained_length();
  }
  if (!dynamic->has_attention_factor()) return absl::OkStatus();
  RETURN_IF_ERROR(
      CheckAttentionFactor("rope.dynamic.attention_factor", dynamic->attention_factor()));
  if (dynamic->attention_factor() == 1) dynamic->clear_attention_factor();
  return absl::OkStatus();
}

}  // namespace

absl::Status CanonicalizeDynamic(v1::RopeSpec* rope) {
  v1::DynamicScaling* dynamic = rope->mutable_dynamic();
  RETURN_IF_ERROR(CheckBaseExponent(*rope, "dynamic"));
  RETURN_IF_ERROR(CheckEnum("rope.dynamic.growth", v1::DynamicGrowth_IsValid(dynamic->growth()),
                            dynamic->growth()));
  if (dynamic->growth() == v1::DYNAMIC_GROWTH_UNSPECIFIED ||
      (dynamic->growth() == v1::DYNAMIC_GROWTH_LINEAR_FLOAT64 &&
       rope->arithmetic() == v1::ARITHMETIC_EXACT)) {
    dynamic->set_growth(v1::DYNAMIC_GROWTH_LINEAR);
  }
  if (dynamic->growth() != v1::DYNAMIC_GROWTH_POWER_OF_TWO) {
    RETURN_IF_ERROR(CheckNumber("rope.dynamic.factor", dynamic->has_factor(), dynamic->factor()));
    RETURN_IF_ERROR(CheckPositive("rope.dynamic.factor", dynamic->factor(), kMaxDynamicFactor));
  } else if (dynamic->has_factor()) {
    return FieldError(
        "rope.dynamic.factor",
        absl::StrCat("must be unset with power_of_two growth, got ", dynamic->factor()));
  }
  RETURN_IF_ERROR(CheckContext("rope.dynamic.max_position_embeddings",
                               dynamic->has_max_position_embeddings(),
                               dynamic->max_position_embeddings()));
  if (!dynamic->has_sequence_length()) {
    dynamic->set_sequence_length(dynamic->max_position_embeddings());
  }
  RETURN_IF_ERROR(CheckContext("rope.dynamic.sequence_length", true, dynamic->sequence_length()));
  dynamic->set_sequence_length(
      std::max(dynamic->sequence_length(), dynamic->max_position_embeddings()));
  RETURN_IF_ERROR(CanonicalizeTrainedLength(dynamic));
  return CheckBase("rope.dynamic.sequence_length", *rope);
}

absl::Status CanonicalizeNtk(v1::RopeSpec* rope) {
  const v1::NtkScaling& ntk = rope->ntk();
  RETURN_IF_ERROR(CheckBaseExponent(*rope, "ntk"));
  if (ntk.has_alpha() == ntk.has_factor()) {
    return FieldError("rope.ntk", "needs either alpha or factor");
  }
  const absl::string_view field = ntk.has_alpha() ? "rope.ntk.alpha" : "rope.ntk.factor";
  const double value = ntk.has_alpha() ? ntk.alpha() : ntk.factor();
  if (!(value >= 1 && value <= kMaxRopeNumber)) {
    return FieldError(
        field, absl::StrCat("must be at least 1 and within the range of float32, got ", value));
  }
  if (ntk.has_mixed_b()) {
    if (!ntk.has_factor()) return FieldError("rope.ntk.mixed_b", "needs factor");
    RETURN_IF_ERROR(CheckPositive("rope.ntk.mixed_b", ntk.mixed_b(), kMaxMixedB));
  }
  return CheckBase(field, *rope);
}

namespace {

absl::Status CheckFactors(absl::string_view field, const v1::RopeSpec& rope,
                          const google::protobuf::RepeatedField<double>& list) {
  RETURN_IF_ERROR(CheckList(field, rope, list));
  for (int i = 0; i < list.size(); ++i) {
    const std::string element = absl::StrCat(field, "[", i, "]");
    RETURN_IF_ERROR(CheckNumber(element, true, list[i]));
    RETURN_IF_ERROR(CheckAngles(element, rope.rope_theta(), list[i]));
  }
  return absl::OkStatus();
}

// Float64 in Python's order.
absl::StatusOr<double> DefaultAttentionFactor(const v1::LongRopeScaling& longrope, bool is_long) {
  if (is_long && longrope.has_long_mscale()) return longrope.long_mscale();
  if (!is_long && longrope.has_short_mscale()) return longrope.short_mscale();
  constexpr absl::string_view kField = "rope.longrope.factor";
  if (!longrope.has_factor()) return FieldError(kField, "is required, or attention_factor");
  RETURN_IF_ERROR(CheckNumber(kField, true, longrope.factor()));
  if (longrope.factor() <= 1) return 1.0;
  if (longrope.original_max_position_embeddings() == 1) {
    return FieldError("rope.longrope.original_max_position_embeddings",
                      "must be at least 2, whose logarithm the attention_factor needs, got 1");
  }
  const auto original = static_cast<double>(longrope.original_max_position_embeddings());
  return std::sqrt(1 + Log(longrope.factor()) / Log(original));
}

// The list in use, by the length.
absl::Status CanonicalizeOneList(v1::LongRopeScaling* longrope) {
  longrope->clear_short_then_long();
  if (longrope->has_long_attention_factor()) {
    return FieldError("rope.longrope.long_attention_factor", "needs short_then_long");
  }
  const int64_t original = longrope->original_max_position_embeddings();
  if (!longrope->has_sequence_length()) longrope->set_sequence_length(original);
  RETURN_IF_ERROR(CheckContext("rope.longrope.sequence_length", true, longrope->sequence_length()));
  const bool is_long = longrope->sequence_length() > original;
  longrope->set_sequence_length(is_long ? original + 1 : original);
  if (!longrope->has_attention_factor()) {
    ASSIGN_OR_RETURN(const double attention_factor, DefaultAttentionFactor(*longrope, is_long));
    longrope->set_attention_factor(attention_factor);
  }
  return absl::OkStatus();
}

// Both lists: what multiplies is that of the short one, unless the other differs.
absl::Status CanonicalizeShortThenLong(v1::LongRopeScaling* longrope) {
  if (longrope->has_sequence_length()) {
    return FieldError("rope.longrope.sequence_length",
                      absl::StrCat("must be unset with short_then_long, which has both lists, got ",
                                   longrope->sequence_length()));
  }
  if (!longrope->has_attention_factor()) {
    ASSIGN_OR_RETURN(const double of_short, DefaultAttentionFactor(*longrope, false));
    if (!longrope->has_long_attention_factor()) {
      ASSIGN_OR_RETURN(const double of_long, DefaultAttentionFactor(*longrope, true));
      longrope->set_long_attention_factor(of_long);
    }
    longrope->set_attention_factor(of_short);
  }
  if (!longrope->has_long_attention_factor()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckAttentionFactor("rope.longrope.long_attention_factor",
                                       longrope->long_attention_factor()));
  if (longrope->long_attention_factor() == longrope->attention_factor()) {
    longrope->clear_long_attention_factor();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CanonicalizeLongRope(v1::RopeSpec* rope) {
  v1::LongRopeScaling* longrope = rope->mutable_longrope();
  RETURN_IF_ERROR(CheckFactors("rope.longrope.short_factor", *rope, longrope->short_factor()));
  RETURN_IF_ERROR(CheckFactors("rope.longrope.long_factor", *rope, longrope->long_factor()));
  RETURN_IF_ERROR(CheckContext("rope.longrope.original_max_position_embeddings",
                               longrope->has_original_max_position_embeddings(),
                               longrope->original_max_position_embeddings()));
  RETURN_IF_ERROR(longrope->short_then_long() ? CanonicalizeShortThenLong(longrope)
                                              : CanonicalizeOneList(longrope));
  longrope->clear_factor();
  longrope->clear_short_mscale();
  longrope->clear_long_mscale();
  if (!DividesPositions(*rope, longrope->divide_positions())) longrope->clear_divide_positions();
  return CheckAttentionFactor("rope.longrope.attention_factor", longrope->attention_factor());
}

}  // namespace posenc
