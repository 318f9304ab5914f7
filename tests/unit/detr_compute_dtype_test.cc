// DETR's sines in the dtype of the model, as transformers 5 computes them.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/numeric/angle.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

constexpr char kRows[] = "layout: LAYOUT_TABLE";

float ToBf16(float value) { return Bf16ToFloat(RoundToBf16(value)); }
float ToF16(float value) { return F16ToFloat(RoundToF16(value)); }
float ToF32(float value) { return value; }

v1::Selection SelectPixels(int64_t height, int64_t width) {
  v1::Selection selection;
  selection.mutable_patch_grid()->set_height(height);
  selection.mutable_patch_grid()->set_width(width);
  return selection;
}

// The slow twin: one channel of one axis, each operation rounded as the tensor that takes
// it does.
template <typename Round>
float Channel(int64_t count, int64_t last, int64_t channel, int64_t features, float offset,
              const Round& round) {
  const float at = round(static_cast<float>(count));
  const float whole = round(round(static_cast<float>(last)) + 1e-6f);
  const float part = round(round(at + offset) / whole);
  const float embed = round(part * 6.28318530717958647692f);
  const float twice = round(2.0f * std::floor(static_cast<float>(channel) / 2));
  const float period = round(PowF(10000.0f, round(twice / static_cast<float>(features))));
  const FloatSinCos value = SinCosF(round(embed / period));
  return round(channel % 2 == 0 ? value.sin : value.cos);
}

template <typename Round>
void ExpectEveryStepRounded(const char* dtype, float offset, const Round& round) {
  constexpr int64_t kHeight = 300;  // counts above 256
  constexpr int64_t kWidth = 5;
  constexpr int64_t kFeatures = 8;
  const auto table =
      FillOne(absl::StrCat("detr_sine { num_position_features: 8 compute_dtype: COMPUTE_DTYPE_",
                           dtype, " offset: ", offset, " }"),
              SelectPixels(kHeight, kWidth), kRows)
          .As<float>();
  size_t index = 0;
  for (int64_t y = 1; y <= kHeight; ++y) {
    for (int64_t x = 1; x <= kWidth; ++x) {
      for (int64_t c = 0; c < 2 * kFeatures; ++c, ++index) {
        const float expected = c < kFeatures
                                   ? Channel(y, kHeight, c, kFeatures, offset, round)
                                   : Channel(x, kWidth, c - kFeatures, kFeatures, offset, round);
        ASSERT_EQ(table[index], expected) << dtype << " " << y << " " << x << " " << c;
      }
    }
  }
}

TEST(DetrComputeDTypeTest, EveryStepIsRounded) {
  for (const float offset : {0.0f, -0.5f}) {
    ExpectEveryStepRounded("F32", offset, ToF32);
    ExpectEveryStepRounded("BF16", offset, ToBf16);
    ExpectEveryStepRounded("F16", offset, ToF16);
  }
}

// last + 1e-6 is last: the last row stands at exactly 2 pi, rounded to bfloat16.
TEST(DetrComputeDTypeTest, TheLastRowIsAWholeTurn) {
  const auto table =
      FillOne("detr_sine { num_position_features: 2 compute_dtype: COMPUTE_DTYPE_BF16 }",
              SelectPixels(7, 1), kRows)
          .As<float>();
  EXPECT_EQ(table[6 * 4], ToBf16(SinCosF(ToBf16(6.2831855f)).sin));
}

// Counts 257 and 258 are 256 and 258 in bfloat16: two rows of the table are equal, which
// 4.x, in float32, tells apart.
TEST(DetrComputeDTypeTest, CountsAbove256AreNotExactInBfloat16) {
  const auto rows = [](const char* fields) {
    return FillOne(
               absl::StrCat("detr_sine { num_position_features: 4 normalize: false ", fields, " }"),
               SelectPixels(300, 1), kRows)
        .As<float>();
  };
  const auto row = [](const std::vector<float>& table, size_t count) {
    return std::vector<float>(table.begin() + static_cast<ptrdiff_t>(8 * (count - 1)),
                              table.begin() + static_cast<ptrdiff_t>(8 * count));
  };
  const auto bf16 = rows("compute_dtype: COMPUTE_DTYPE_BF16");
  EXPECT_EQ(row(bf16, 256), row(bf16, 257));
  const auto f32 = rows("");
  EXPECT_NE(row(f32, 256), row(f32, 257));
}

TEST(DetrComputeDTypeTest, Float32IsTheDefaultAndLeftOut) {
  EXPECT_EQ(
      Canonicalize(Spec("detr_sine { num_position_features: 4 }"))->key(),
      Canonicalize(Spec("detr_sine { num_position_features: 4 compute_dtype: COMPUTE_DTYPE_F32 }"))
          ->key());
  ExpectIdempotent("detr_sine { num_position_features: 4 compute_dtype: COMPUTE_DTYPE_BF16 }");
}

TEST(DetrComputeDTypeTest, Refusals) {
  EXPECT_EQ(SpecRefusal("detr_sine { num_position_features: 4 arithmetic: ARITHMETIC_EXACT "
                        "compute_dtype: COMPUTE_DTYPE_F16 }"),
            "detr_sine.compute_dtype: is for float32 arithmetic only");
  EXPECT_EQ(SpecRefusal("detr_sine { num_position_features: 258 "
                        "compute_dtype: COMPUTE_DTYPE_BF16 }"),
            "detr_sine.num_position_features: must be at most 256 with this compute_dtype, got "
            "258");
  v1::EncodingSpec spec = Spec("detr_sine { num_position_features: 4 }");
  spec.mutable_detr_sine()->set_compute_dtype(static_cast<v1::ComputeDType>(9));
  EXPECT_EQ(Canonicalize(spec).status().message(), "detr_sine.compute_dtype: unknown value 9");
}

}  // namespace
}  // namespace posenc::testing
