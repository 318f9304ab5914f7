#include "lib/families/rope_rows.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "lib/families/rope_scaling.h"
#include "lib/numeric/angle.h"
#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

RopeFrequencies FrequenciesOf(const v1::RopeSpec& rope) {
  if (rope.arithmetic() == v1::ARITHMETIC_EXACT) return RopeInvFreqExact(rope);
  return RopeInvFreqFloat32(rope);
}

size_t BytesOf(const RopeFrequencies& frequencies) {
  return std::visit([](const auto& f) { return f.capacity() * sizeof(f[0]); }, frequencies);
}

Rotation MakeRotation(const RopeFrequencies& frequencies, double scale) {
  if (const auto* exact = std::get_if<std::vector<WideFloat>>(&frequencies)) {
    return Rotation::Exact(*exact, scale);
  }
  return Rotation::Float32(std::get<std::vector<float>>(frequencies), scale);
}

DividedPositions MakeDivided(const v1::RopeSpec& rope, double scale) {
  v1::RopeSpec unscaled = rope;
  unscaled.clear_scaling();
  DividedPositions divided;
  divided.inv_freq = RopeInvFreqFloat32(unscaled);
  divided.scale = static_cast<float>(scale);
  if (rope.has_linear()) {
    divided.divisor = static_cast<float>(rope.linear().factor());
  } else {
    for (const double factor : LongRopeFactors(rope.longrope())) {
      divided.inverse_factors.push_back(1.0f / static_cast<float>(factor));
    }
  }
  return divided;
}

// One list of a table that has both.
v1::RopeSpec OneList(const v1::RopeSpec& rope, bool is_long) {
  v1::RopeSpec one = rope;
  v1::LongRopeScaling& longrope = *one.mutable_longrope();
  longrope.clear_short_then_long();
  longrope.set_sequence_length(longrope.original_max_position_embeddings() + (is_long ? 1 : 0));
  if (is_long && longrope.has_long_attention_factor()) {
    longrope.set_attention_factor(longrope.long_attention_factor());
  }
  longrope.clear_long_attention_factor();
  return one;
}

// As a tensor of 16 bits is multiplied by a number: in float32.
template <typename Element>
Element Scaled(Element value, float scale) {
  if constexpr (std::is_same_v<Element, F16>) {
    return RoundTo<F16>(F16ToFloat(value.bits) * scale);
  } else if constexpr (std::is_same_v<Element, Bf16>) {
    return RoundTo<Bf16>(Bf16ToFloat(value.bits) * scale);
  } else {
    return static_cast<Element>(static_cast<float>(value) * scale);
  }
}

template <typename Element>
void ScaleRows(Element* values, int64_t pairs, const RotationRows<Element>& rows, float scale) {
  if (values == nullptr) return;
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t i = 0; i < pairs; ++i) {
      Element& value = values[row * rows.stride + i];
      value = Scaled(value, scale);
    }
  }
}

// The rows of `rows` from the given one on.
template <typename Element>
RotationRows<Element> Rest(const RotationRows<Element>& rows, int64_t from) {
  RotationRows<Element> rest = rows;
  rest.count -= from;
  if (rest.cos != nullptr) rest.cos += from * rows.stride;
  if (rest.sin != nullptr) rest.sin += from * rows.stride;
  return rest;
}

}  // namespace

template <typename Element>
void DividedPositions::Fill(int64_t first, const RotationRows<Element>& rows) const {
  for (int64_t row = 0; row < rows.count; ++row) {
    const auto position = static_cast<float>(first + row);
    for (size_t i = 0; i < inv_freq.size(); ++i) {
      const float divided =
          inverse_factors.empty() ? position / divisor : position * inverse_factors[i];
      const FloatSinCos value = SinCosF(divided * inv_freq[i]);
      const int64_t index = row * rows.stride + static_cast<int64_t>(i);
      if (rows.cos != nullptr) rows.cos[index] = RoundTo<Element>(value.cos * scale);
      if (rows.sin != nullptr) rows.sin[index] = RoundTo<Element>(value.sin * scale);
    }
  }
}

RopeRows::RopeRows(const v1::RopeSpec& rope) : pairs_(rope.rotary_dim() / 2) {
  if (!rope.longrope().short_then_long()) {
    AddPart(0, rope);
    return;
  }
  AddPart(0, OneList(rope, false));
  AddPart(rope.longrope().original_max_position_embeddings(), OneList(rope, true));
}

void RopeRows::AddPart(int64_t begin, const v1::RopeSpec& rope) {
  const double attention_factor = RopeAttentionFactor(rope);
  const double scale = rope.scale_after_rounding() ? 1 : attention_factor;
  const bool divide = rope.linear().divide_positions() || rope.longrope().divide_positions();
  frequencies_.push_back(FrequenciesOf(rope));
  Part part{begin, MakeRotation({}, 1), 1};
  if (divide) {
    part.source = MakeDivided(rope, scale);
  } else {
    part.source = MakeRotation(frequencies_.back(), scale);
  }
  if (rope.scale_after_rounding()) {
    part.scale_after_rounding = static_cast<float>(attention_factor);
  }
  parts_.push_back(std::move(part));
}

bool RopeRows::writes_layouts() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return std::holds_alternative<Rotation>(part.source) && part.scale_after_rounding == 1;
  });
}

size_t RopeRows::bytes() const {
  size_t bytes = sizeof(*this);
  for (const RopeFrequencies& frequencies : frequencies_) bytes += BytesOf(frequencies);
  for (const Part& part : parts_) {
    if (const auto* rotation = std::get_if<Rotation>(&part.source)) {
      bytes += rotation->bytes();
    } else {
      bytes += sizeof(Part) + 2 * static_cast<size_t>(pairs_) * sizeof(float);
    }
  }
  return bytes;
}

template <typename Element>
void RopeRows::FillPart(const Part& part, int64_t first, const RotationRows<Element>& rows,
                        int64_t pairs) {
  std::visit([&](const auto& source) { source.Fill(first - part.begin, rows); }, part.source);
  if (part.scale_after_rounding == 1) return;
  ScaleRows(rows.cos, pairs, rows, part.scale_after_rounding);
  ScaleRows(rows.sin, pairs, rows, part.scale_after_rounding);
}

template <typename Element>
void RopeRows::Fill(int64_t first, const RotationRows<Element>& rows) const {
  int64_t done = 0;
  for (size_t p = 0; p < parts_.size() && done < rows.count; ++p) {
    RotationRows<Element> wanted = Rest(rows, done);
    if (p + 1 < parts_.size()) {
      wanted.count = std::min(wanted.count, parts_[p + 1].begin - (first + done));
    }
    if (wanted.count <= 0) continue;
    FillPart(parts_[p], first + done, wanted, pairs_);
    done += wanted.count;
  }
}

template void RopeRows::Fill(int64_t, const RotationRows<float>&) const;
template void RopeRows::Fill(int64_t, const RotationRows<double>&) const;
template void RopeRows::Fill(int64_t, const RotationRows<F16>&) const;
template void RopeRows::Fill(int64_t, const RotationRows<Bf16>&) const;

}  // namespace posenc
