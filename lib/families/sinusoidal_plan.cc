#include "lib/families/sinusoidal_plan.h"

#include <algorithm>

#include "lib/families/selection.h"
#include "lib/families/sinusoidal_frequencies.h"
#include "lib/families/sinusoidal_spec.h"
#include "lib/families/store.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

std::optional<Rotation> MakeRotation(const v1::SinusoidalSpec& spec,
                                     const std::vector<float>& frequencies32,
                                     const std::vector<WideFloat>& exact) {
  if (spec.phases_size() > 0 || HasLinearColumn(spec)) return std::nullopt;
  if (spec.arithmetic() == v1::ARITHMETIC_FLOAT32) {
    if (PositionScaleOf(spec) != 1 || ComputeDTypeOf(spec) != v1::COMPUTE_DTYPE_F32) {
      return std::nullopt;
    }
    return Rotation::Float32(frequencies32, OutScaleOf(spec));
  }
  const WideFloat limit = WideFloat::From(kMaxInvFreq);
  for (const WideFloat& frequency : exact) {
    if (frequency.Abs() > limit) return std::nullopt;
  }
  return Rotation::Exact(exact, OutScaleOf(spec));
}

// x of a row address: what the row order and the selection make of it.
double PositionOf(const v1::SinusoidalSpec& spec, const v1::Selection& selection, int64_t row) {
  if (selection.has_points()) return selection.points().coordinates(static_cast<int>(row));
  const bool ascending = RowOrderOf(spec) == v1::ROW_ORDER_ASCENDING;
  const int64_t x = (ascending ? PositionAt(selection, row) : -row) + spec.position_offset();
  return static_cast<double>(x);
}

double Clamp(const v1::SinusoidalSpec& spec, double x) {
  if (spec.has_clamp_min()) x = std::max(x, static_cast<double>(spec.clamp_min()));
  if (spec.has_clamp_max()) x = std::min(x, static_cast<double>(spec.clamp_max()));
  return x;
}

}  // namespace

SinusoidalPlan::SinusoidalPlan(const v1::SinusoidalSpec& spec) : spec_(spec) {
  if (spec.arithmetic() == v1::ARITHMETIC_FLOAT32) {
    frequencies32_ = SinusoidalFrequencies32(spec);
  } else {
    exact_ = SinusoidalFrequencies(spec);
    const WideFloat scale = WideFloat::From(PositionScaleOf(spec));
    for (WideFloat& frequency : exact_) frequency = frequency * scale;
  }
  rotation_ = MakeRotation(spec, frequencies32_, exact_);
}

size_t SinusoidalPlan::bytes() const {
  return spec_.ByteSizeLong() + frequencies32_.capacity() * sizeof(float) +
         exact_.capacity() * sizeof(WideFloat) + (rotation_ ? rotation_->bytes() : 0);
}

void SinusoidalPlan::Describe(v1::DescribeTableResponse* response) const {
  for (const float frequency : frequencies32_) response->add_inv_freq(frequency);
  if (spec_.arithmetic() == v1::ARITHMETIC_FLOAT32) return;
  for (const WideFloat& frequency : SinusoidalFrequencies(spec_)) {
    response->add_inv_freq(frequency.ToDouble());
  }
}

void SinusoidalPlan::Fill(const TableShape& shape, size_t tensor, int64_t begin,
                          std::span<std::byte> out) const {
  FillPart(shape, {tensor, begin, out}, /*cold=*/false);
}

void SinusoidalPlan::FillCold(const TableShape& shape, std::span<const TensorPart> parts) const {
  for (const TensorPart& part : parts) FillPart(shape, part, /*cold=*/true);
}

void SinusoidalPlan::FillPart(const TableShape& shape, const TensorPart& part, bool cold) const {
  switch (shape.tensors[part.tensor].dtype) {
    case v1::DTYPE_F64:
      return FillRows<double>(shape.selection, part.begin, part.out, cold);
    case v1::DTYPE_F16:
      return FillRows<F16>(shape.selection, part.begin, part.out, cold);
    case v1::DTYPE_BF16:
      return FillRows<Bf16>(shape.selection, part.begin, part.out, cold);
    default:
      return FillRows<float>(shape.selection, part.begin, part.out, cold);
  }
}

template <typename Element>
void SinusoidalPlan::FillRows(const v1::Selection& selection, int64_t begin,
                              std::span<std::byte> out, bool cold) const {
  const int64_t width = spec_.d_model();
  auto* elements = reinterpret_cast<Element*>(out.data());
  const int64_t first = begin / width;
  const int64_t rows = static_cast<int64_t>(out.size() / sizeof(Element)) / width;
  if (rotation_.has_value() && !selection.has_points()) {
    FillRotated(selection, first, rows, elements, cold);
  } else {
    FillOneByOne(selection, first, rows, elements);
  }
  if (!spec_.has_padding_row()) return;
  const auto padding = static_cast<double>(spec_.padding_row());
  for (int64_t i = 0; i < rows; ++i) {
    if (PositionOf(spec_, selection, first + i) == padding) {
      std::fill_n(elements + i * width, width, Element{});
    }
  }
}

// The kernel is fast on runs of consecutive positions, in either direction.
template <typename Element>
void SinusoidalPlan::FillRotated(const v1::Selection& selection, int64_t first, int64_t rows,
                                 Element* out, bool cold) const {
  const auto x = [&](int64_t i) {
    return static_cast<int64_t>(Clamp(spec_, PositionOf(spec_, selection, first + i)));
  };
  for (int64_t i = 0; i < rows;) {
    const int64_t start = x(i);
    const int64_t step = i + 1 < rows && x(i + 1) == start - 1 ? -1 : 1;
    int64_t count = 1;
    while (i + count < rows && x(i + count) == start + count * step) ++count;
    FillRun(start, step, count, out + i * spec_.d_model(), cold);
    i += count;
  }
}

template <typename Element>
std::optional<RotationRows<Element>> SinusoidalPlan::KernelRows(Element* out) const {
  const int64_t width = spec_.d_model();
  const int64_t pairs = rotation_->pairs();
  RotationRows<Element> rows{.stride = width};
  switch (spec_.layout()) {
    case v1::SINUSOIDAL_LAYOUT_COS_ONLY:
      rows.cos = out;
      return pairs == width ? std::optional(rows) : std::nullopt;
    case v1::SINUSOIDAL_LAYOUT_SIN_ONLY:
      rows.sin = out;
      return pairs == width ? std::optional(rows) : std::nullopt;
    case v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS:
      rows.cos = out + pairs;
      rows.sin = out;
      break;
    case v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN:
      rows.cos = out;
      rows.sin = out + pairs;
      break;
    default:  // INTERLEAVED
      rows.cos = out + 1;
      rows.sin = out;
      rows.layout = RotationLayout::kAlternating;
  }
  return 2 * pairs == width ? std::optional(rows) : std::nullopt;
}

template <typename Element>
void SinusoidalPlan::FillRun(int64_t x, int64_t step, int64_t count, Element* out,
                             bool cold) const {
  const int64_t width = spec_.d_model();
  const int64_t pairs = rotation_->pairs();
  if (std::optional<RotationRows<Element>> rows = KernelRows(out); rows && step > 0) {
    rows->count = count;
    rows->cold = cold;
    return rotation_->Fill(x, *rows);
  }
  // Other rows by way of a block that stays in the first-level cache.
  constexpr int64_t kBlockElements = 4096;
  const int64_t block_rows = std::clamp<int64_t>(kBlockElements / (2 * pairs), 1, count);
  std::vector<Element> block(static_cast<size_t>(block_rows * 2 * pairs));
  for (int64_t done = 0; done < count; done += block_rows) {
    const int64_t rows = std::min(block_rows, count - done);
    const int64_t lowest = step > 0 ? x + done : x - done - (rows - 1);
    rotation_->Fill<Element>(
        lowest,
        {.count = rows, .stride = 2 * pairs, .cos = block.data() + pairs, .sin = block.data()});
    for (int64_t row = 0; row < rows; ++row) {
      const Element* sin = block.data() + (step > 0 ? row : rows - 1 - row) * 2 * pairs;
      Assemble(sin, sin + pairs, out + (done + row) * width);
    }
  }
}

template <typename Element>
void SinusoidalPlan::FillOneByOne(const v1::Selection& selection, int64_t first, int64_t rows,
                                  Element* out) const {
  const auto pairs = static_cast<size_t>(SinusoidalPairs(spec_));
  std::vector<Element> sin(pairs);
  std::vector<Element> cos(pairs);
  std::vector<ExactFrequency> frequencies;
  for (const WideFloat& frequency : exact_) frequencies.emplace_back(frequency);
  for (int64_t i = 0; i < rows; ++i) {
    const double x = Clamp(spec_, PositionOf(spec_, selection, first + i));
    if (spec_.arithmetic() == v1::ARITHMETIC_FLOAT32) {
      FillFloat32(x, sin.data(), cos.data());
    } else {
      FillExact(x, frequencies, sin.data(), cos.data());
    }
    Assemble(sin.data(), cos.data(), out + i * spec_.d_model());
  }
}

bool SinusoidalPlan::IsLinear(size_t k) const {
  return (spec_.linear_column() == v1::LINEAR_COLUMN_FIRST && k == 0) ||
         (spec_.linear_column() == v1::LINEAR_COLUMN_LAST && k + 1 == frequencies32_.size()) ||
         (spec_.linear_column() == v1::LINEAR_COLUMN_LAST && k + 1 == exact_.size());
}

template <typename Element>
void SinusoidalPlan::FillFloat32(double x, Element* sin, Element* cos) const {
  const v1::ComputeDType dtype = ComputeDTypeOf(spec_);
  const auto round = [dtype](float value) { return RoundToComputeDType(dtype, value); };
  const auto position_scale = static_cast<float>(PositionScaleOf(spec_));
  const auto out_scale = static_cast<float>(OutScaleOf(spec_));
  const float position = round(static_cast<float>(x));
  for (size_t k = 0; k < frequencies32_.size(); ++k) {
    float angle = round(position * frequencies32_[k]);
    if (position_scale != 1) angle = round(position_scale * angle);
    if (spec_.phases_size() > 0) {
      angle = round(angle + round(static_cast<float>(spec_.phases(static_cast<int>(k)))));
    }
    const FloatSinCos value = IsLinear(k) ? FloatSinCos{angle, angle} : SinCosF(angle);
    sin[k] = RoundTo<Element>(round(round(value.sin) * out_scale));
    cos[k] = RoundTo<Element>(round(round(value.cos) * out_scale));
  }
}

template <typename Element>
void SinusoidalPlan::FillExact(double x, const std::vector<ExactFrequency>& frequencies,
                               Element* sin, Element* cos) const {
  const WideFloat out_scale = WideFloat::From(OutScaleOf(spec_));
  const bool is_plain = spec_.phases_size() == 0 && OutScaleOf(spec_) == 1;
  for (size_t k = 0; k < frequencies.size(); ++k) {
    if (is_plain && !IsLinear(k)) {
      frequencies[k].SinCos(x, &sin[k], &cos[k]);
      continue;
    }
    WideFloat angle = WideFloat::From(x) * exact_[k];
    if (spec_.phases_size() > 0) {
      angle = angle + WideFloat::From(spec_.phases(static_cast<int>(k)));
    }
    const WideSinCos value = IsLinear(k) ? WideSinCos{angle, angle} : SinCos(angle);
    sin[k] = RoundWideTo<Element>(out_scale * value.sin);
    cos[k] = RoundWideTo<Element>(out_scale * value.cos);
  }
}

template <typename Element>
void SinusoidalPlan::Assemble(const Element* sin, const Element* cos, Element* row) const {
  const int64_t width = spec_.d_model();
  const int64_t sines = SinusoidalPairs(spec_);
  const int64_t cosines = width / 2;  // an odd width has one fewer, or a zero column
  switch (spec_.layout()) {
    case v1::SINUSOIDAL_LAYOUT_COS_ONLY:
      std::copy_n(cos, width, row);
      return;
    case v1::SINUSOIDAL_LAYOUT_SIN_ONLY:
      std::copy_n(sin, width, row);
      return;
    case v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS:
      std::copy_n(cos, cosines, std::copy_n(sin, sines, row));
      break;
    case v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN:
      std::copy_n(sin, sines, std::copy_n(cos, cosines, row));
      break;
    default:  // INTERLEAVED
      for (int64_t k = 0; k < cosines; ++k) {
        row[2 * k] = sin[k];
        row[2 * k + 1] = cos[k];
      }
      if (width % 2 != 0) row[width - 1] = sin[sines - 1];
  }
  if (sines + cosines < width) row[width - 1] = Element{};
}

}  // namespace posenc
