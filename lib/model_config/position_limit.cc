#include "lib/model_config/position_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"

namespace posenc {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t Times(int64_t length, double factor) {
  const double product = std::ceil(static_cast<double>(length) * std::max(factor, 1.0));
  return product >= 0x1p62 ? kNoLimit : static_cast<int64_t>(product);
}

int64_t LimitOf(const v1::ResolvedEncoding& encoding) {
  const int64_t length = encoding.max_position_embeddings();
  const v1::RopeSpec& rope = encoding.spec().rope();
  if (length == 0) return kNoLimit;
  switch (rope.scaling_case()) {
    case v1::RopeSpec::kLinear:
      return Times(length, rope.linear().factor());
    case v1::RopeSpec::kYarn:
      return std::max(length,
                      Times(rope.yarn().original_max_position_embeddings(), rope.yarn().factor()));
    case v1::RopeSpec::kDynamic:
      return std::max(Times(length, rope.dynamic().factor()), rope.dynamic().sequence_length());
    case v1::RopeSpec::kNtk:
      return rope.ntk().has_factor() ? Times(length, rope.ntk().factor()) : kNoLimit;
    case v1::RopeSpec::kLlama3:
    case v1::RopeSpec::kLongrope:
      return length;
    case v1::RopeSpec::SCALING_NOT_SET:
    case v1::RopeSpec::kProportional:
    case v1::RopeSpec::kFrequencies:
      return kNoLimit;
  }
  return kNoLimit;
}

template <typename Ids>
int64_t OneMoreThanLargest(const Ids& ids) {
  const auto largest = std::max_element(ids.begin(), ids.end());
  return largest == ids.end() || *largest == kNoLimit ? 0 : *largest + 1;
}

}  // namespace

absl::Status CheckPositionLimit(const v1::ResolvedEncoding& encoding, absl::string_view field,
                                int64_t positions) {
  const int64_t limit = LimitOf(encoding);
  if (positions <= limit) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat("must stay within the ", limit, " positions that this model's ",
                                 encoding.rope_type(), " scaling is made for, got ", positions,
                                 "; override max_position_embeddings to ask for more"));
}

absl::Status CheckSelection(const v1::ResolvedEncoding& encoding, const v1::Selection& selection) {
  if (selection.has_position_range()) {
    return CheckPositionLimit(encoding, "selection.position_range.end",
                              selection.position_range().end());
  }
  if (selection.has_position_ids()) {
    return CheckPositionLimit(encoding, "selection.position_ids",
                              OneMoreThanLargest(selection.position_ids().ids()));
  }
  for (const v1::AxisPositionIds::Axis& axis : selection.axis_position_ids().axes()) {
    RETURN_IF_ERROR(CheckPositionLimit(encoding, "selection.axis_position_ids",
                                       OneMoreThanLargest(axis.ids())));
  }
  return absl::OkStatus();
}

}  // namespace posenc
