// Rounding to 16 bits, from float32 and, in one step, from float64.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "lib/numeric/dtype.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using testing::Real;

TEST(DTypeTest, EveryF16AndBf16ReadsBackAsItself) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto b = static_cast<uint16_t>(bits);
    if (!std::isnan(F16ToFloat(b))) {
      EXPECT_EQ(RoundToF16(F16ToFloat(b)), b);
      EXPECT_EQ(RoundToF16(static_cast<double>(F16ToFloat(b))), b);
    }
    if (!std::isnan(Bf16ToFloat(b))) {
      EXPECT_EQ(RoundToBf16(Bf16ToFloat(b)), b);
      EXPECT_EQ(RoundToBf16(static_cast<double>(Bf16ToFloat(b))), b);
    }
  }
}

TEST(DTypeTest, MiddlesGoToEvenAndTheirNeighboursToTheNearest) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto b = static_cast<uint16_t>(bits);
    const float middle = (F16ToFloat(b) + F16ToFloat(static_cast<uint16_t>(b + 1))) / 2;
    EXPECT_EQ(RoundToF16(middle), b + (b & 1));
    const double wide = middle;
    EXPECT_EQ(RoundToF16(std::nextafter(wide, 0.0)), b) << "by way of float32 it would tie";
    EXPECT_EQ(RoundToF16(std::nextafter(wide, 1e9)), b + 1);
  }
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto b = static_cast<uint16_t>(bits);
    const double middle = (static_cast<double>(Bf16ToFloat(b)) +
                           static_cast<double>(Bf16ToFloat(static_cast<uint16_t>(b + 1)))) /
                          2;
    EXPECT_EQ(RoundToBf16(static_cast<float>(middle)), b + (b & 1));
    EXPECT_EQ(RoundToBf16(std::nextafter(middle, 0.0)), b);
    EXPECT_EQ(RoundToBf16(std::nextafter(middle, 1e39)), b + 1);
  }
}

TEST(DTypeTest, Float64RoundsOnceAsMpfrDoes) {
  std::mt19937_64 engine(11);
  for (int i = 0; i < 200000; ++i) {
    // Exponents around the ranges of both types, significands of any length.
    const uint64_t exponent = 1023 - 150 + engine() % 290;
    const uint64_t mantissa = (engine() >> 12) & ~((uint64_t{1} << (i % 52)) - 1);
    const auto value = std::bit_cast<double>((engine() << 63) | (exponent << 52) | mantissa);
    EXPECT_EQ(RoundToF16(value), Real(value).ToF16()) << value;
    EXPECT_EQ(RoundToBf16(value), Real(value).ToBf16()) << value;
  }
}

TEST(DTypeTest, OverflowIsInfiniteAndNanStaysNan) {
  EXPECT_EQ(RoundToF16(65519.99), 0x7bff);
  EXPECT_EQ(RoundToF16(65520.0), 0x7c00);
  EXPECT_EQ(RoundToF16(-1e300), 0xfc00);
  EXPECT_EQ(RoundToBf16(3.39e38), 0x7f7f);
  EXPECT_EQ(RoundToBf16(1e300), 0x7f80);
  EXPECT_TRUE(std::isnan(F16ToFloat(RoundToF16(std::numeric_limits<double>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(Bf16ToFloat(RoundToBf16(std::numeric_limits<float>::signaling_NaN()))));
}

}  // namespace
}  // namespace posenc
