// The element types of tables, as bits: float32 and float64 are the machine's,
// float16 (binary16) and bfloat16 are 16-bit patterns made here.
#ifndef POSENC_LIB_NUMERIC_DTYPE_H_
#define POSENC_LIB_NUMERIC_DTYPE_H_

#include <cstdint>

namespace posenc {

// float32 to the nearest value of the 16-bit type, ties to even. NaN stays a
// (quiet) NaN; float16 overflows to infinity from 65520 on.
uint16_t RoundToBf16(float value);
uint16_t RoundToF16(float value);

// Exact.
float Bf16ToFloat(uint16_t bits);
float F16ToFloat(uint16_t bits);

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_DTYPE_H_
