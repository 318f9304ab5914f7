// Elementary functions, correctly rounded (to nearest, ties to even).
//
// libm is not used: its bits differ between versions and CPUs. PowF, ExpF and LogF
// take some tens of nanoseconds, the others microseconds, which is nothing where a
// plan is made and too slow for a table's elements (rotation.h is for those).
#ifndef POSENC_LIB_NUMERIC_ELEMENTARY_H_
#define POSENC_LIB_NUMERIC_ELEMENTARY_H_

namespace posenc {

// float32 functions of their float32 arguments. Results that are exact or tie
// (powers mostly) round as such; too large ones are infinite, too small ones 0
// or subnormal. Thread-safe.
float PowF(float base, float exponent);  // REQUIRES: base > 0, both finite
float ExpF(float x);                     // REQUIRES: finite
float LogF(float x);                     // REQUIRES: x > 0, finite
float SinF(float radians);               // REQUIRES: finite; -0 gives -0
float CosF(float radians);               // REQUIRES: finite

// The same in float64.
double Pow(double base, double exponent);  // REQUIRES: base > 0, both finite
double Exp(double x);                      // REQUIRES: finite
double Log(double x);                      // REQUIRES: x > 0, finite

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_ELEMENTARY_H_
