// The real numbers, to some 220 bits.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/families/rope_frequencies.h"
#include "lib/numeric/wide_float.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

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

// ln of the base that dynamic and ntk change.
WideFloat LogBase(const v1::RopeSpec& rope) {
  const WideFloat log_theta = Log(W(rope.rope_theta()));
  WideFloat alpha = W(1.0);
  switch (rope.scaling_case()) {
    case v1::RopeSpec::kDynamic: {
      const v1::DynamicScaling& dynamic = rope.dynamic();
      const WideFloat ratio = W(dynamic.sequence_length()) / W(dynamic.max_position_embeddings());
      alpha = dynamic.growth() == v1::DYNAMIC_GROWTH_POWER_OF_TWO
                  ? W(PowerOfTwoAlpha(dynamic))
                  : W(dynamic.factor()) * (ratio - W(1.0)) + W(1.0);
      break;
    }
    case v1::RopeSpec::kNtk:
      if (rope.ntk().has_mixed_b()) return log_theta;
      if (rope.ntk().has_factor()) return log_theta + Log(W(rope.ntk().factor()));
      alpha = W(rope.ntk().alpha());
      break;
    default:
      return log_theta;
  }
  return log_theta + W(rope.rotary_dim()) / W(rope.rotary_dim() - 2) * Log(alpha);
}

void Divide(const WideFloat& divisor, std::vector<WideFloat>* inv_freq) {
  for (WideFloat& frequency : *inv_freq) frequency = frequency / divisor;
}

void ScaleMixedExact(const v1::NtkScaling& ntk, std::vector<WideFloat>* inv_freq) {
  const WideFloat pairs = W(static_cast<int64_t>(inv_freq->size()));
  for (size_t i = 0; i < inv_freq->size(); ++i) {
    const WideFloat share = W(static_cast<int64_t>(i + 1)) / pairs;
    (*inv_freq)[i] = (*inv_freq)[i] / Exp(Log(W(ntk.factor())) * Pow(share, W(ntk.mixed_b())));
  }
}

std::vector<WideFloat> Explicit(const v1::ExplicitFrequencies& frequencies) {
  std::vector<WideFloat> inv_freq;
  for (const double frequency : frequencies.inv_freq()) inv_freq.push_back(W(frequency));
  return inv_freq;
}

}  // namespace

std::vector<WideFloat> RopeInvFreqExact(const v1::RopeSpec& rope) {
  if (rope.has_frequencies()) return Explicit(rope.frequencies());
  // A product of n ratios instead of n powers: n * 2^-252 is still far below the
  // error stated, and a wide power costs a hundred products.
  const WideFloat ratio = Exp(-LogBase(rope).TimesPowerOf2(1) / W(rope.rotary_dim()));
  std::vector<WideFloat> inv_freq = {W(1.0)};
  inv_freq.reserve(static_cast<size_t>(rope.rotary_dim() / 2));
  while (static_cast<int64_t>(inv_freq.size()) < rope.rotary_dim() / 2) {
    inv_freq.push_back(inv_freq.back() * ratio);
  }
  switch (rope.scaling_case()) {
    case v1::RopeSpec::SCALING_NOT_SET:
    case v1::RopeSpec::kDynamic:
    case v1::RopeSpec::kFrequencies:
      break;
    case v1::RopeSpec::kLinear:
      Divide(W(rope.linear().factor()), &inv_freq);
      break;
    case v1::RopeSpec::kYarn:
      ScaleYarnExact(rope, &inv_freq);
      break;
    case v1::RopeSpec::kLlama3:
      ScaleLlama3Exact(rope.llama3(), &inv_freq);
      break;
    case v1::RopeSpec::kNtk:
      if (rope.ntk().has_mixed_b()) {
        ScaleMixedExact(rope.ntk(), &inv_freq);
      } else if (rope.ntk().has_factor()) {
        Divide(Pow(W(rope.ntk().factor()), W(2.0) / W(rope.rotary_dim())), &inv_freq);
      }
      break;
    case v1::RopeSpec::kLongrope:
      for (size_t i = 0; i < inv_freq.size(); ++i) {
        inv_freq[i] = inv_freq[i] / W(LongRopeFactors(rope.longrope())[static_cast<int>(i)]);
      }
      break;
    case v1::RopeSpec::kProportional:
      Divide(W(rope.proportional().factor()), &inv_freq);
      std::fill(inv_freq.begin() + rope.proportional().rotating_pairs(), inv_freq.end(), W(0.0));
      break;
  }
  return inv_freq;
}

}  // namespace posenc
