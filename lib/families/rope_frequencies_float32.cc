// The frameworks' float32 code, operation for operation.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lib/families/rope_frequencies.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

// A line of code is an operation of the framework's, and rounds to float32 where
// it does. Scalars of the spec are Python floats: float64 until they meet a tensor.

float F(double value) { return static_cast<float>(value); }

// base^(2i/rotary_dim), each step in float32.
std::vector<float> PowersFloat32(float base, int64_t rotary_dim) {
  std::vector<float> powers;
  powers.reserve(static_cast<size_t>(rotary_dim / 2));
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    const float exponent = F(static_cast<double>(2 * i)) / F(static_cast<double>(rotary_dim));
    powers.push_back(PowF(base, exponent));
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

// alpha of a dynamic or ntk spec.
double Alpha(const v1::RopeSpec& rope) {
  if (rope.has_ntk()) return rope.ntk().alpha();
  const v1::DynamicScaling& dynamic = rope.dynamic();
  if (dynamic.growth() == v1::DYNAMIC_GROWTH_POWER_OF_TWO) return PowerOfTwoAlpha(dynamic);
  const double factor = dynamic.factor();
  return factor * static_cast<double>(dynamic.sequence_length()) /
             static_cast<double>(dynamic.max_position_embeddings()) -
         (factor - 1);
}

// Once it has grown, transformers holds the length in a tensor, and all but the
// exponent and the power becomes float32.
float GrownBaseFloat32(const v1::RopeSpec& rope) {
  const v1::DynamicScaling& dynamic = rope.dynamic();
  const float scaled = F(dynamic.factor()) * static_cast<float>(dynamic.sequence_length());
  const float ratio = scaled / static_cast<float>(dynamic.max_position_embeddings());
  const float alpha = ratio - F(dynamic.factor() - 1);
  const auto dim = static_cast<double>(rope.rotary_dim());
  return F(rope.rope_theta()) * F(Pow(alpha, dim / (dim - 2)));
}

float BaseFloat32(const v1::RopeSpec& rope) {
  const bool grown = rope.has_dynamic() && rope.dynamic().growth() == v1::DYNAMIC_GROWTH_LINEAR &&
                     rope.dynamic().sequence_length() > rope.dynamic().max_position_embeddings();
  return grown ? GrownBaseFloat32(rope) : F(RopeBase(rope));
}

// vLLM's mixed NTK: ln(factor) is a tensor, what divides it a Python float.
void ScaleMixedFloat32(const v1::NtkScaling& ntk, std::vector<float>* inv_freq) {
  const double b = ntk.mixed_b();
  const float a = LogF(F(ntk.factor())) / F(Pow(static_cast<double>(inv_freq->size()), b));
  for (size_t i = 0; i < inv_freq->size(); ++i) {
    const float divisor = ExpF(a * PowF(F(static_cast<double>(i + 1)), F(b)));
    (*inv_freq)[i] = (*inv_freq)[i] / divisor;
  }
}

void DivideFloat32(double divisor, std::vector<float>* inv_freq) {
  for (float& frequency : *inv_freq) frequency = frequency / F(divisor);
}

std::vector<float> ExplicitFloat32(const v1::ExplicitFrequencies& frequencies) {
  std::vector<float> inv_freq;
  for (const double frequency : frequencies.inv_freq()) inv_freq.push_back(F(frequency));
  return inv_freq;
}

}  // namespace

double PowerOfTwoAlpha(const v1::DynamicScaling& dynamic) {
  // Twice the power of two that the training context must grow by, less one.
  auto context = static_cast<double>(dynamic.max_position_embeddings());
  double alpha = 1;
  while (context < static_cast<double>(dynamic.sequence_length())) {
    context *= 2;
    alpha = 2 * alpha + 1;
  }
  return alpha;
}

double RopeBase(const v1::RopeSpec& rope) {
  const double theta = rope.rope_theta();
  if (rope.ntk().has_mixed_b()) return theta;
  if (rope.has_ntk() && rope.ntk().has_factor()) return theta * rope.ntk().factor();
  if (!rope.has_ntk() && !rope.has_dynamic()) return theta;
  const auto dim = static_cast<double>(rope.rotary_dim());
  return theta * Pow(Alpha(rope), dim / (dim - 2));
}

const google::protobuf::RepeatedField<double>& LongRopeFactors(
    const v1::LongRopeScaling& longrope) {
  return longrope.sequence_length() > longrope.original_max_position_embeddings()
             ? longrope.long_factor()
             : longrope.short_factor();
}

std::vector<float> RopeInvFreqFloat32(const v1::RopeSpec& rope) {
  if (rope.has_frequencies()) return ExplicitFloat32(rope.frequencies());
  const std::vector<float> powers = PowersFloat32(BaseFloat32(rope), rope.rotary_dim());
  std::vector<float> inv_freq;
  inv_freq.reserve(powers.size());
  for (const float power : powers) inv_freq.push_back(1.0f / power);
  switch (rope.scaling_case()) {
    case v1::RopeSpec::SCALING_NOT_SET:
    case v1::RopeSpec::kDynamic:
    case v1::RopeSpec::kFrequencies:
      break;
    case v1::RopeSpec::kLinear:
      DivideFloat32(rope.linear().factor(), &inv_freq);
      break;
    case v1::RopeSpec::kYarn:
      ScaleYarnFloat32(rope, powers, &inv_freq);
      break;
    case v1::RopeSpec::kLlama3:
      ScaleLlama3Float32(rope.llama3(), &inv_freq);
      break;
    case v1::RopeSpec::kNtk:
      if (rope.ntk().has_mixed_b()) {
        ScaleMixedFloat32(rope.ntk(), &inv_freq);
      } else if (rope.ntk().has_factor()) {
        DivideFloat32(Pow(rope.ntk().factor(), 2 / static_cast<double>(rope.rotary_dim())),
                      &inv_freq);
      }
      break;
    case v1::RopeSpec::kLongrope:
      for (size_t i = 0; i < powers.size(); ++i) {
        const double factor = LongRopeFactors(rope.longrope())[static_cast<int>(i)];
        inv_freq[i] = 1.0f / (F(factor) * powers[i]);
      }
      break;
    case v1::RopeSpec::kProportional:
      DivideFloat32(rope.proportional().factor(), &inv_freq);
      std::fill(inv_freq.begin() + rope.proportional().rotating_pairs(), inv_freq.end(), 0.0f);
      break;
  }
  return inv_freq;
}

}  // namespace posenc
