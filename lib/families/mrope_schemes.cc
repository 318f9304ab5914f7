#include "lib/families/mrope_schemes.h"

#include <array>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/mrope_positions.h"

namespace posenc {
namespace {

constexpr int kMaxXdropeAxes = 8;

// The section that `index` falls in, of sections `width` times as wide as they are.
size_t SectionOf(const v1::MropeSpec& spec, int64_t index, int64_t width) {
  size_t section = 0;
  for (const int64_t size : spec.mrope_section()) {
    if (index < size * width) break;
    index -= size * width;
    ++section;
  }
  return section;
}

using Counts = std::array<int64_t, kMropeAxes>;

Counts CountsOf(const v1::MropeSpec& spec) {
  return {spec.mrope_section(0), spec.mrope_section(1), spec.mrope_section(2)};
}

// GLM: axis j % 3, or the next one that has frequencies left.
std::vector<size_t> AxesInTurn(const v1::MropeSpec& spec, int64_t pairs) {
  Counts left = CountsOf(spec);
  std::vector<size_t> axes;
  for (int64_t j = 0; j < pairs; ++j) {
    auto axis = static_cast<size_t>(j % kMropeAxes);
    while (left[axis] == 0) axis = (axis + 1) % kMropeAxes;
    --left[axis];
    axes.push_back(axis);
  }
  return axes;
}

// The axis with the least share placed, the first of several; `last` only where no other has
// frequencies left. Shares are compared as fractions, exactly.
size_t LeastPlaced(const Counts& placed, const Counts& counts, std::optional<size_t> last) {
  std::optional<size_t> best;
  for (size_t axis = 0; axis < counts.size(); ++axis) {
    if (axis == last || placed[axis] == counts[axis]) continue;
    if (!best.has_value() || placed[axis] * counts[*best] < placed[*best] * counts[axis]) {
      best = axis;
    }
  }
  return best.value_or(last.value_or(0));
}

// openPangu: spread evenly, but for a last frequency of time.
std::vector<size_t> AxesSpread(const v1::MropeSpec& spec, int64_t pairs) {
  Counts counts = CountsOf(spec);
  --counts[0];
  Counts placed = {};
  std::vector<size_t> axes;
  std::optional<size_t> last;
  while (static_cast<int64_t>(axes.size()) < pairs - 1) {
    last = LeastPlaced(placed, counts, last);
    ++placed[*last];
    axes.push_back(*last);
  }
  axes.push_back(0);
  return axes;
}

// The axis (0 t, 1 h, 2 w) of frequency j, where j alone decides it.
size_t AxisOfFrequency(const v1::MropeSpec& spec, int64_t j) {
  constexpr size_t kTime = 0;
  const auto& section = spec.mrope_section();
  switch (spec.scheme()) {
    case v1::MROPE_SCHEME_INTERLEAVED: {
      const auto axis = static_cast<int>(j % kMropeAxes);
      return axis != 0 && j < kMropeAxes * section[axis] ? static_cast<size_t>(axis) : kTime;
    }
    case v1::MROPE_SCHEME_ERNIE:  // sections are of h, w, t
      return j < section[0] + section[1] ? static_cast<size_t>(1 + j % 2) : kTime;
    default:  // CONTIGUOUS
      return SectionOf(spec, j, 1);
  }
}

}  // namespace

absl::Status CheckMropeSections(const v1::MropeSpec& spec) {
  constexpr absl::string_view kField = "mrope.mrope_section";
  const bool xdrope = spec.scheme() == v1::MROPE_SCHEME_XDROPE;
  const int most = xdrope ? kMaxXdropeAxes : static_cast<int>(kMropeAxes);
  const int least = xdrope ? 1 : static_cast<int>(kMropeAxes);
  if (spec.mrope_section_size() < least || spec.mrope_section_size() > most) {
    return FieldError(kField, absl::StrCat("must have ", least == most ? "" : "1 to ", most,
                                           " sections, got ", spec.mrope_section_size()));
  }
  const int64_t pairs = spec.rope().rotary_dim() / 2;
  int64_t sum = 0;
  for (int i = 0; i < spec.mrope_section_size(); ++i) {
    RETURN_IF_ERROR(
        CheckInRange(absl::StrCat(kField, "[", i, "]"), spec.mrope_section(i), int64_t{0}, pairs));
    sum += spec.mrope_section(i);
  }
  if (sum != pairs) {
    return FieldError(kField,
                      absl::StrCat("must sum to rotary_dim / 2 (", pairs, "), sums to ", sum));
  }
  if (spec.scheme() == v1::MROPE_SCHEME_OPENPANGU && spec.mrope_section(0) == 0) {
    return FieldError(absl::StrCat(kField, "[0]"),
                      "must be at least 1 for openpangu, whose last frequency is t's, got 0");
  }
  return absl::OkStatus();
}

std::vector<MropeSlot> MropeSlots(const v1::MropeSpec& spec) {
  const int64_t pairs = spec.rope().rotary_dim() / 2;
  std::vector<MropeSlot> slots;
  if (spec.scheme() == v1::MROPE_SCHEME_XDROPE) {
    for (int64_t c = 0; c < 2 * pairs; ++c) {
      slots.push_back({SectionOf(spec, c, 2), static_cast<size_t>(c % pairs)});
    }
    return slots;
  }
  std::vector<size_t> axes;
  if (spec.scheme() == v1::MROPE_SCHEME_GLM) axes = AxesInTurn(spec, pairs);
  if (spec.scheme() == v1::MROPE_SCHEME_OPENPANGU) axes = AxesSpread(spec, pairs);
  for (int64_t j = 0; j < pairs; ++j) {
    const size_t axis = axes.empty() ? AxisOfFrequency(spec, j) : axes[static_cast<size_t>(j)];
    slots.push_back({axis, static_cast<size_t>(j)});
  }
  return slots;
}

RotaryLayout MropeLayout(const v1::MropeSpec& spec) {
  const int64_t pairs = spec.rope().rotary_dim() / 2;
  if (spec.scheme() == v1::MROPE_SCHEME_XDROPE) {
    RotaryLayout channels{.pairs = 2 * pairs,
                          .channel_pairs = std::vector<uint32_t>(static_cast<size_t>(2 * pairs))};
    std::iota(channels.channel_pairs.begin(), channels.channel_pairs.end(), 0U);
    return channels;
  }
  return spec.rope().pairing() == v1::PAIRING_INTERLEAVED ? RotaryLayout::Interleaved(pairs)
                                                          : RotaryLayout::Half(pairs);
}

}  // namespace posenc
