#include "lib/model_config/position_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"

namespace posenc {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr absl::string_view kRaiseLength = "override max_position_embeddings to ask for more";
constexpr absl::string_view kNameLength =
    "pass sequence_length, which its frequencies follow, to ask for more";

int64_t Times(int64_t length, double factor) {
  const double product = std::ceil(static_cast<double>(length) * std::max(factor, 1.0));
  return product >= 0x1p62 ? kNoLimit : static_cast<int64_t>(product);
}

// How many positions a table is right for, and what asks for one of more.
struct Limit {
  int64_t positions = kNoLimit;
  absl::string_view advice = kRaiseLength;
};

// A table by the short list is for a sequence of no more than the original length.
Limit LimitOfLongRope(const v1::LongRopeScaling& longrope, int64_t length) {
  const int64_t original = longrope.original_max_position_embeddings();
  const bool is_short = !longrope.short_then_long() && longrope.sequence_length() <= original;
  return is_short && original < length ? Limit{original, kNameLength} : Limit{length};
}

Limit LimitOf(const v1::RopeSpec& rope, int64_t max_position_embeddings) {
  const int64_t length = max_position_embeddings == 0 ? kNoLimit : max_position_embeddings;
  switch (rope.scaling_case()) {
    case v1::RopeSpec::kLinear:
      return {Times(length, rope.linear().factor())};
    case v1::RopeSpec::kYarn:
      return {std::max(
          length, Times(rope.yarn().original_max_position_embeddings(), rope.yarn().factor()))};
    case v1::RopeSpec::kDynamic:
      return {std::max({rope.dynamic().sequence_length(), rope.dynamic().max_position_embeddings(),
                        rope.dynamic().trained_length()}),
              kNameLength};
    case v1::RopeSpec::kNtk:
      return {rope.ntk().has_factor() ? Times(length, rope.ntk().factor()) : kNoLimit};
    case v1::RopeSpec::kLlama3:
      return {length};
    case v1::RopeSpec::kLongrope:
      return LimitOfLongRope(rope.longrope(), length);
    case v1::RopeSpec::SCALING_NOT_SET:
    case v1::RopeSpec::kProportional:
    case v1::RopeSpec::kFrequencies:
      return {};
  }
  return {};
}

template <typename Ids>
int64_t OneMoreThanLargest(const Ids& ids) {
  const auto largest = std::max_element(ids.begin(), ids.end());
  return largest == ids.end() || *largest == kNoLimit ? 0 : *largest + 1;
}

}  // namespace

absl::Status CheckPositionLimit(const v1::ResolvedEncoding& encoding, const v1::EncodingSpec& spec,
                                absl::string_view field, int64_t positions) {
  const Limit limit = LimitOf(spec.rope(), encoding.max_position_embeddings());
  if (positions <= limit.positions) return absl::OkStatus();
  return FieldError(
      field, absl::StrCat("must stay within the ", limit.positions, " positions that this model's ",
                          encoding.rope_type(), " scaling is made for, got ", positions, "; ",
                          limit.advice));
}

int64_t DefaultPositions(const v1::ResolvedEncoding& encoding) {
  return std::min(encoding.max_position_embeddings(),
                  LimitOf(encoding.spec().rope(), encoding.max_position_embeddings()).positions);
}

absl::Status CheckSelection(const v1::ResolvedEncoding& encoding, const v1::Selection& selection) {
  if (selection.has_position_range()) {
    return CheckPositionLimit(encoding, encoding.spec(), "selection.position_range.end",
                              selection.position_range().end());
  }
  if (selection.has_position_ids()) {
    return CheckPositionLimit(encoding, encoding.spec(), "selection.position_ids",
                              OneMoreThanLargest(selection.position_ids().ids()));
  }
  for (const v1::AxisPositionIds::Axis& axis : selection.axis_position_ids().axes()) {
    RETURN_IF_ERROR(CheckPositionLimit(encoding, encoding.spec(), "selection.axis_position_ids",
                                       OneMoreThanLargest(axis.ids())));
  }
  return absl::OkStatus();
}

}  // namespace posenc
