// Faults that other projects had in encodings of images, with the right value. Each test
// is named after what went wrong and cites the report.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

v1::Selection SelectPatches(int64_t height, int64_t width) {
  v1::Selection selection;
  selection.mutable_patch_grid()->set_height(height);
  selection.mutable_patch_grid()->set_width(width);
  return selection;
}

// side x side rows whose one number is their row in the image.
v1::EncodingSpec RowsOfImage(int side, double scale_offset) {
  v1::EncodingSpec spec;
  v1::TableResampleSpec* resample = spec.mutable_table_resample();
  resample->set_kernel(v1::RESAMPLE_KERNEL_BILINEAR);
  resample->set_scale_offset(scale_offset);
  resample->mutable_table()->add_shape(side * side);
  resample->mutable_table()->add_shape(1);
  for (int i = 0; i < side * side; ++i) {
    resample->mutable_table()->add_values(static_cast<float>(i / side));
  }
  return spec;
}

// transformers#46174: the 2-D sinusoid asked the device for float64, which it did not
// have. Both arithmetics make it without one; at small positions they agree to 1e-7.
TEST(VisionBugsTest, B103_AGridNeedsNoFloat64OnTheDevice) {
  const std::string fields =
      "sinusoidal_grid { preset: SINUSOIDAL_GRID_PRESET_HF d_model: 256 base: 10000 arithmetic: ";
  const auto exact = FillOne(fields + "ARITHMETIC_EXACT }", SelectPatches(3, 3)).As<float>();
  const auto rounded = FillOne(fields + "ARITHMETIC_FLOAT32 }", SelectPatches(3, 3)).As<float>();
  ASSERT_EQ(exact.size(), 9u * 256);
  for (size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(rounded[i], exact[i], 2e-7) << i;
}

// dinov2#506, #333: 16 x 32 patches make 512, which is no square; their grid is kept.
TEST(VisionBugsTest, B143_AnImageTwiceAsWideIsNoSquare) {
  v1::EncodingSpec spec = RowsOfImage(4, 0);
  const absl::StatusOr<FilledTable> table = FillTable(spec, SelectPatches(16, 32), {});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->tensors.front().tensor.shape, ::testing::ElementsAre(512, 1));
  spec.mutable_table_resample()->mutable_table()->set_shape(0, 8);
  for (int i = 0; i < 8; ++i)
    spec.mutable_table_resample()->mutable_table()->mutable_values()->RemoveLast();
  EXPECT_EQ(Canonicalize(spec).status().message(),
            "table_resample.grid_height: is required: 8 patch rows are no square");
}

// transformers#35411: 518 pixels to 224, 37 patches to 16. Passing a ratio of 16.1 samples
// row i at (i + 0.5) * 37 / 16.1 - 0.5, passing the size at (i + 0.5) * 37 / 16 - 0.5;
// the linear kernel reproduces a straight line, so that is the value. Which rule it was, the spec
// says.
TEST(VisionBugsTest, B144_RatioAndSizeAreTwoTables) {
  const auto row_14 = [](double scale_offset) {
    const absl::StatusOr<FilledTable> table =
        FillTable(RowsOfImage(37, scale_offset), SelectPatches(16, 16), {});
    EXPECT_TRUE(table.ok()) << table.status();
    return static_cast<double>(table->tensors.front().As<float>()[14 * 16]);
  };
  EXPECT_NEAR(row_14(0), 14.5 * 37 / 16 - 0.5, 1e-5);
  EXPECT_NEAR(row_14(0.1), 14.5 * 37 / 16.1 - 0.5, 1e-5);
  EXPECT_NE(Canonicalize(RowsOfImage(37, 0))->key(), Canonicalize(RowsOfImage(37, 0.1))->key());
}

}  // namespace
}  // namespace posenc::testing
