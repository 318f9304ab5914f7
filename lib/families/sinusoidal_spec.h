// The fields of a SinusoidalSpec: presets, defaults and rules.
#ifndef POSENC_LIB_FAMILIES_SINUSOIDAL_SPEC_H_
#define POSENC_LIB_FAMILIES_SINUSOIDAL_SPEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "lib/families/family.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// Of a position and of a position with its offset: both signs make sense.
inline constexpr int64_t kMaxSinusoidalPosition = kMaxPosition - 1;

// Fills in what the preset and the defaults say, and refuses what makes no sense.
absl::Status CanonicalizeSinusoidal(v1::SinusoidalSpec* spec);

// How many frequencies: one a sine column, or one a column where there are only sines
// or only cosines. REQUIRES: d_model, layout and odd_dim_rule are set.
int64_t SinusoidalPairs(const v1::SinusoidalSpec& spec);

// Fields that a canonical spec leaves out at their default.
v1::FrequencyExpression FrequencyExpressionOf(const v1::SinusoidalSpec& spec);
v1::RowOrder RowOrderOf(const v1::SinusoidalSpec& spec);
v1::ComputeDType ComputeDTypeOf(const v1::SinusoidalSpec& spec);
double MinTimescaleOf(const v1::SinusoidalSpec& spec);
double PositionScaleOf(const v1::SinusoidalSpec& spec);
double OutScaleOf(const v1::SinusoidalSpec& spec);
bool HasLinearColumn(const v1::SinusoidalSpec& spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_SINUSOIDAL_SPEC_H_
