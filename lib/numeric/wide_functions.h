// Elementary functions of WideFloats: series, nothing clever.
#ifndef POSENC_LIB_NUMERIC_WIDE_FUNCTIONS_H_
#define POSENC_LIB_NUMERIC_WIDE_FUNCTIONS_H_

#include "lib/numeric/wide_float.h"

namespace posenc {

// Relative error of each function below in its stated domain, for arguments
// taken as exact. (Near a zero of sine or cosine too, since turns are reduced
// exactly.)
inline constexpr double kWideFunctionError = 0x1p-230;

// Binary expansions, rounded to 256 bits.
inline constexpr WideFloat kWidePi(false, 2,
                                   {0x020bbea63b139b22, 0x29024e088a67cc74, 0xc4c6628b80dc1cd1,
                                    0xc90fdaa22168c234});
inline constexpr WideFloat kWideLn2(false, 0,
                                    {0x8a0d175b8baafa2c, 0x40f343267298b62d, 0xc9e3b39803f2f6af,
                                     0xb17217f7d1cf79ab});
inline constexpr WideFloat kWideInverseTwoPi(false, -2,
                                             {0xfe5163abdebbc562, 0xdb6295993c439041,
                                              0xfc2757d1f534ddc0, 0xa2f9836e4e441529});

// REQUIRES: |x| < 2^12.
WideFloat Exp(const WideFloat& x);

// Natural logarithm. REQUIRES: x > 0, |x.exponent()| < 2^20.
WideFloat Log(const WideFloat& x);

// base^exponent. REQUIRES: base > 0, |result| in (2^-4096, 2^4096).
WideFloat Pow(const WideFloat& base, const WideFloat& exponent);

struct WideSinCos {
  WideFloat sin;
  WideFloat cos;
};

// Of the angle 2π·turns. Any magnitude: the reduction is exact.
WideSinCos SinCosOfTurns(const WideFloat& turns);

// Of an angle in radians. The error of turns = radians / 2π is relative, so
// that of the result is absolute: at most |radians|·2^-250, plus the bound above.
WideSinCos SinCos(const WideFloat& radians);

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_WIDE_FUNCTIONS_H_
