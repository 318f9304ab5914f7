#include "lib/families/sinusoidal_plan.h"

#include <algorithm>

#include "lib/families/selection.h"
#include "lib/families/sinusoidal_frequencies.h"
#include "lib/families/sinusoidal_spec.h"
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
  switch (shape.tensors[tensor].dtype) {
    case v1::DTYPE_F64:
      return FillRows<double>(shape.selection, begin, out);
    case v1::DTYPE_F16:
      return FillRows<F16>(shape.selection, begin, out);
    case v1::DTYPE_BF16:
      return FillRows<Bf16>(shape.selection, begin, out);
    default:
      return FillRows<float>(shape.selection, begin, out);
  }
}

template <typename Element>
void SinusoidalPlan::FillRows(const v1::Selection& selection, int64_t begin,
                              std::span<std::byte> out) const {
  const int64_t width = spec_.d_model();
  const auto pairs = static_cast<size_t>(SinusoidalPairs(spec_));
  Pairs<Element> values{std::vector<Element>(pairs), std::vector<Element>(pairs)};
  const bool rotates = rotation_.has_value() && !selection.has_points();
  std::vector<ExactFrequency> frequencies;
  if (!rotates) {
    for (const WideFloat& frequency : exact_) frequencies.emplace_back(frequency);
  }

  auto* row = reinterpret_cast<Element*>(out.data());
  const int64_t first = begin / width;
  const int64_t rows = static_cast<int64_t>(out.size() / sizeof(Element)) / width;
  for (int64_t i = 0; i < rows; ++i, row += width) {
    double x = PositionOf(spec_, selection, first + i);
    if (spec_.has_padding_row() && x == static_cast<double>(spec_.padding_row())) {
      std::fill(row, row + width, Element{});
      continue;
    }
    x = Clamp(spec_, x);
    if (rotates) {
      rotation_->Fill<Element>(
          static_cast<int64_t>(x),
          {.count = 1, .stride = 0, .cos = values.cos.data(), .sin = values.sin.data()});
    } else if (spec_.arithmetic() == v1::ARITHMETIC_FLOAT32) {
      FillFloat32(x, &values);
    } else {
      FillExact(x, frequencies, &values);
    }
    Assemble(values, row);
  }
}

bool SinusoidalPlan::IsLinear(size_t k) const {
  return (spec_.linear_column() == v1::LINEAR_COLUMN_FIRST && k == 0) ||
         (spec_.linear_column() == v1::LINEAR_COLUMN_LAST && k + 1 == frequencies32_.size()) ||
         (spec_.linear_column() == v1::LINEAR_COLUMN_LAST && k + 1 == exact_.size());
}

template <typename Element>
void SinusoidalPlan::FillFloat32(double x, Pairs<Element>* pairs) const {
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
    pairs->sin[k] = RoundTo<Element>(round(round(value.sin) * out_scale));
    pairs->cos[k] = RoundTo<Element>(round(round(value.cos) * out_scale));
  }
}

template <typename Element>
void SinusoidalPlan::FillExact(double x, const std::vector<ExactFrequency>& frequencies,
                               Pairs<Element>* pairs) const {
  const WideFloat out_scale = WideFloat::From(OutScaleOf(spec_));
  const bool is_plain = spec_.phases_size() == 0 && OutScaleOf(spec_) == 1;
  for (size_t k = 0; k < frequencies.size(); ++k) {
    if (is_plain && !IsLinear(k)) {
      frequencies[k].SinCos(x, &pairs->sin[k], &pairs->cos[k]);
      continue;
    }
    WideFloat angle = WideFloat::From(x) * exact_[k];
    if (spec_.phases_size() > 0) {
      angle = angle + WideFloat::From(spec_.phases(static_cast<int>(k)));
    }
    const WideSinCos value = IsLinear(k) ? WideSinCos{angle, angle} : SinCos(angle);
    pairs->sin[k] = RoundWideTo<Element>(out_scale * value.sin);
    pairs->cos[k] = RoundWideTo<Element>(out_scale * value.cos);
  }
}

template <typename Element>
void SinusoidalPlan::Assemble(const Pairs<Element>& pairs, Element* row) const {
  const int64_t width = spec_.d_model();
  const auto sines = static_cast<int64_t>(pairs.sin.size());
  const int64_t cosines = width / 2;  // an odd width has one fewer, or a zero column
  switch (spec_.layout()) {
    case v1::SINUSOIDAL_LAYOUT_COS_ONLY:
      std::copy(pairs.cos.begin(), pairs.cos.end(), row);
      return;
    case v1::SINUSOIDAL_LAYOUT_SIN_ONLY:
      std::copy(pairs.sin.begin(), pairs.sin.end(), row);
      return;
    case v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS:
      std::copy_n(pairs.cos.begin(), cosines, std::copy(pairs.sin.begin(), pairs.sin.end(), row));
      break;
    case v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN:
      std::copy(pairs.sin.begin(), pairs.sin.end(), std::copy_n(pairs.cos.begin(), cosines, row));
      break;
    default:  // INTERLEAVED
      for (size_t k = 0; k < static_cast<size_t>(cosines); ++k) {
        row[2 * k] = pairs.sin[k];
        row[2 * k + 1] = pairs.cos[k];
      }
      if (width % 2 != 0) row[width - 1] = pairs.sin.back();
  }
  if (sines + cosines < width) row[width - 1] = Element{};
}

}  // namespace posenc
