// Sine and cosine to some 100 bits: what float64 tables are rounded from.
#ifndef POSENC_LIB_NUMERIC_PRECISE_SIN_COS_H_
#define POSENC_LIB_NUMERIC_PRECISE_SIN_COS_H_

#include "lib/numeric/double_double.h"

namespace posenc {

struct PreciseSinCosValue {
  DoubleDouble sin;
  DoubleDouble cos;
};

// Relative error of each, next to their zeros too (worst seen 2^-102.9).
inline constexpr double kPreciseSinCosError = 0x1p-92;

// Of the angle 2π·x·rate. REQUIRES: x is an integer, |x| < 2^53,
// |2π·x·rate| <= kMaxAngle. Thread-safe.
PreciseSinCosValue PreciseSinCosOfTurns(double x, const TripleDouble& rate);

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_PRECISE_SIN_COS_H_
