#include "lib/families/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

// FLOAT32 ------------------------------------------------------------------------
//
// A line of code is an operation of the framework's, and rounds to float32 where
// it does. Scalars of the spec are Python floats: float64 until they meet a tensor.

float F(double value) { return static_cast<float>(value); }

// rope_theta^(2i/rotary_dim), each step in float32.
std::vector<float> PowersFloat32(double rope_theta, int64_t rotary_dim) {
  std::vector<float> powers;
  powers.reserve(static_cast<size_t>(rotary_dim / 2));
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    const float exponent = F(static_cast<double>(2 * i)) / F(static_cast<double>(rotary_dim));
    powers.push_back(PowF(F(rope_theta), exponent));
  }
  return powers;
}

// Where YaRN's ramp begins and ends, as frequency indices: float64, as Python computes it.
struct Ramp {
  double begin;
  double end;
};

Ramp YarnRamp(const v1::RopeSpec& rope) {
  constexpr double kPi = 0x1.921fb54442d18p1;
  const v1::YarnScaling& yarn = rope.yarn();
  const auto dim = static_cast<double>(rope.rotary_dim());
  const auto original = static_cast<double>(yarn.original_max_position_embeddings());
  // The index whose wavelength fits `rotations` times into the original context.
  const auto index_of = [&](double rotations) {
    return (dim * Log(original / (rotations * 2 * kPi))) / (2 * Log(rope.rope_theta()));
  };
  Ramp ramp = {index_of(yarn.beta_fast()), index_of(yarn.beta_slow())};
  if (yarn.truncate()) ramp = {std::floor(ramp.begin), std::ceil(ramp.end)};
  ramp = {std::max(ramp.begin, 0.0), std::min(ramp.end, dim - 1)};
  if (ramp.begin == ramp.end) ramp.end += 0.001;
  return ramp;
}

void ScaleYarnFloat32(const v1::RopeSpec& rope, const std::vector<float>& powers,
                      std::vector<float>* inv_freq) {
  const Ramp ramp = YarnRamp(rope);
  const float factor = F(rope.yarn().factor());
  for (size_t i = 0; i < powers.size(); ++i) {
    const float interpolated = 1.0f / (factor * powers[i]);
    const float linear = (F(static_cast<double>(i)) - F(ramp.begin)) / F(ramp.end - ramp.begin);
    const float extrapolation = 1.0f - std::clamp(linear, 0.0f, 1.0f);
    // 1 - extrapolation is not `linear` again: it is rounded twice.
    (*inv_freq)[i] = interpolated * (1.0f - extrapolation) + (*inv_freq)[i] * extrapolation;
  }
}

void ScaleLlama3Float32(const v1::Llama3Scaling& llama3, std::vector<float>* inv_freq) {
  constexpr float kTwoPi = 0x1.921fb6p2f;
  const auto original = static_cast<double>(llama3.original_max_position_embeddings());
  const double low = llama3.low_freq_factor();
  const double high = llama3.high_freq_factor();
  const float low_wavelength = F(original / low);
  const float high_wavelength = F(original / high);
  for (float& frequency : *inv_freq) {
    // scalar / tensor is a reciprocal, then a product.
    const float wavelength = (1.0f / frequency) * kTwoPi;
    if (wavelength < high_wavelength) continue;
    if (wavelength > low_wavelength) {
      frequency = frequency / F(llama3.factor());
      continue;
    }
    // With equal factors the ramp has no width: a wavelength on the edge is kept,
    // where the frameworks divide by zero.
    if (low == high) continue;
    const float smooth = ((1.0f / wavelength) * F(original) - F(low)) / F(high - low);
    frequency = ((1.0f - smooth) * frequency) / F(llama3.factor()) + smooth * frequency;
  }
}

// EXACT --------------------------------------------------------------------------

WideFloat W(double value) { return WideFloat::From(value); }
WideFloat W(int64_t value) { return WideFloat::FromInt(value); }

WideFloat Clamp01(const WideFloat& value) {
  if (value.negative()) return W(0.0);
  return value > W(1.0) ? W(1.0) : value;
}

// a at ramp 0, b at ramp 1.
WideFloat Mix(const WideFloat& a, const WideFloat& b, const WideFloat& ramp) {
  return a * (W(1.0) - ramp) + b * ramp;
}

void ScaleYarnExact(const v1::RopeSpec& rope, std::vector<WideFloat>* inv_freq) {
  const v1::YarnScaling& yarn = rope.yarn();
  const WideFloat dim = W(rope.rotary_dim());
  const WideFloat original = W(yarn.original_max_position_embeddings());
  const WideFloat twice_log_theta = Log(W(rope.rope_theta())).TimesPowerOf2(1);
  const auto index_of = [&](double rotations) {
    const WideFloat wavelengths = original / (W(rotations) * kWidePi.TimesPowerOf2(1));
    return dim * Log(wavelengths) / twice_log_theta;
  };
  WideFloat begin = index_of(yarn.beta_fast());
  WideFloat end = index_of(yarn.beta_slow());
  if (yarn.truncate()) {
    begin = W(begin.Floor());
    end = W(-(-end).Floor());
  }
  if (begin.negative()) begin = W(0.0);
  if (end > dim - W(1.0)) end = dim - W(1.0);
  if (begin == end) end = end + W(int64_t{1}).DividedBy(1000);
  for (size_t i = 0; i < inv_freq->size(); ++i) {
    const WideFloat index = W(static_cast<int64_t>(i));
    const WideFloat ramp = Clamp01((index - begin) / (end - begin));
    WideFloat& frequency = (*inv_freq)[i];
    frequency = Mix(frequency, frequency / W(yarn.factor()), ramp);
  }
}

void ScaleLlama3Exact(const v1::Llama3Scaling& llama3, std::vector<WideFloat>* inv_freq) {
  const WideFloat original = W(llama3.original_max_position_embeddings());
  const WideFloat low = W(llama3.low_freq_factor());
  const WideFloat high = W(llama3.high_freq_factor());
  for (WideFloat& frequency : *inv_freq) {
    // How often the wavelength fits into the original context; never exactly
    // low or high, since π is irrational.
    const WideFloat rotations = original * frequency * kWideInverseTwoPi;
    if (rotations > high) continue;
    const WideFloat interpolated = frequency / W(llama3.factor());
    frequency = rotations < low ? interpolated
                                : Mix(interpolated, frequency, (rotations - low) / (high - low));
  }
}

}  // namespace

std::vector<float> RopeInvFreqFloat32(const v1::RopeSpec& rope) {
  const std::vector<float> powers = PowersFloat32(rope.rope_theta(), rope.rotary_dim());
  std::vector<float> inv_freq;
  inv_freq.reserve(powers.size());
  for (const float power : powers) inv_freq.push_back(1.0f / power);
  switch (rope.scaling_case()) {
    case v1::RopeSpec::SCALING_NOT_SET:
      break;
    case v1::RopeSpec::kLinear:
      for (float& frequency : inv_freq) frequency = frequency / F(rope.linear().factor());
      break;
    case v1::RopeSpec::kYarn:
      ScaleYarnFloat32(rope, powers, &inv_freq);
      break;
    case v1::RopeSpec::kLlama3:
      ScaleLlama3Float32(rope.llama3(), &inv_freq);
      break;
  }
  return inv_freq;
}

std::vector<WideFloat> RopeInvFreqExact(const v1::RopeSpec& rope) {
  const WideFloat log_theta = Log(W(rope.rope_theta()));
  std::vector<WideFloat> inv_freq;
  inv_freq.reserve(static_cast<size_t>(rope.rotary_dim() / 2));
  for (int64_t i = 0; i < rope.rotary_dim() / 2; ++i) {
    inv_freq.push_back(Exp(-(W(2 * i) * log_theta) / W(rope.rotary_dim())));
  }
  switch (rope.scaling_case()) {
    case v1::RopeSpec::SCALING_NOT_SET:
      break;
    case v1::RopeSpec::kLinear:
      for (WideFloat& frequency : inv_freq) frequency = frequency / W(rope.linear().factor());
      break;
    case v1::RopeSpec::kYarn:
      ScaleYarnExact(rope, &inv_freq);
      break;
    case v1::RopeSpec::kLlama3:
      ScaleLlama3Exact(rope.llama3(), &inv_freq);
      break;
  }
  return inv_freq;
}

}  // namespace posenc
