#include "tests/support/axial_lines.h"

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/rope_lines.h"
#include "tests/support/tables.h"

namespace posenc::golden {
namespace {

using ::posenc::testing::FilledTensor;
using ::posenc::testing::FillTable;
using ::posenc::testing::Format;

// What the spec expands to is what the line says that the model does.
void ExpectOptions(const Json& line, const v1::AxialRopeSpec& spec) {
  int64_t rotary_dim = 0;
  std::string axes;
  for (const v1::AxialRopeAxis& axis : spec.axes()) {
    rotary_dim += axis.dim();
    axes += axis.axis() == v1::GRID_AXIS_T ? "t" : axis.axis() == v1::GRID_AXIS_Y ? "h" : "w";
  }
  std::string want;
  for (const Json& axis : Get(line, "axes").GetArray()) {
    const std::string name = axis.GetString();
    want += name == "y" ? "h" : name == "x" ? "w" : name;
  }
  EXPECT_EQ(axes, want);
  EXPECT_EQ(rotary_dim, Get(line, "rotary_dim").GetInt64());
  EXPECT_EQ(spec.rope_theta(), Get(line, "rope_theta").GetDouble());
  const std::string layout = Get(line, "layout").GetString();
  EXPECT_EQ(spec.pairing(), layout == "neox_half"                  ? v1::AXIAL_PAIRING_HALF
                            : layout == "neox_half_per_axis_block" ? v1::AXIAL_PAIRING_HALF_PER_AXIS
                                                                   : v1::AXIAL_PAIRING_INTERLEAVED);
}

std::vector<uint32_t> RowOf(const FilledTensor& tensor, int64_t row) {
  const std::vector<uint32_t> all = tensor.As<uint32_t>();
  const int64_t width = tensor.tensor.shape[1];
  return {all.begin() + row * width, all.begin() + (row + 1) * width};
}

// The selection that asks for the row of a line, and the row's number there.
struct Place {
  v1::Selection selection;
  int64_t row = 0;
};

// In a row-major grid of 14 x 14 patches (64 x 64 for Flux's ids).
Place PlaceOf(const Json& row) {
  Place place;
  const bool ids = Has(row, "ids");
  const int64_t side = ids ? 64 : 14;
  v1::PatchGrid* grid = place.selection.mutable_patch_grid();
  grid->set_height(side);
  grid->set_width(side);
  if (ids) {
    place.row = Get(row, "ids")[1].GetInt64() * side + Get(row, "ids")[2].GetInt64();
    EXPECT_EQ(Get(row, "ids")[0].GetInt64(), 0);
  } else if (Get(row, "grid")[0].IsString()) {  // Llama 4's class token comes last
    place.row = side * side;
  } else {
    place.row = Get(row, "grid")[0].GetInt64() * side + Get(row, "grid")[1].GetInt64();
  }
  return place;
}

// inv_freq_hex is of one axis, or where the axes share them of all.
void ExpectFrequencies(const Json& line, const v1::EncodingSpec& spec) {
  if (!Has(line, "inv_freq_hex")) return;
  const std::vector<uint32_t> want = InvFreqOf(line);
  const auto table = FillTable(spec, v1::Selection(), Format("layout: LAYOUT_INV_FREQ"));
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<uint32_t> got = table->tensors[0].As<uint32_t>();
  const auto canonical = Canonicalize(spec);
  ASSERT_TRUE(canonical.ok());
  const v1::AxialRopeSpec& axial = canonical->proto().axial_rope();
  const bool shared = axial.frequency_rule() == v1::AXIAL_FREQUENCY_RULE_SHARED;
  const bool alternating = axial.arrangement() == v1::AXIAL_ARRANGEMENT_ALTERNATING;
  ASSERT_EQ(got.size(), shared ? want.size() : 2 * want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t half = got.size() / 2;
    const size_t k = shared ? 2 * (i % half) + i / half : alternating ? i / 2 : i % half;
    EXPECT_EQ(got[i], want[k]) << "frequency of pair " << i;
  }
}

}  // namespace

void ExpectWithinAnUlp(const std::vector<uint32_t>& got, const Json& hex, const std::string& what,
                       const std::vector<double>& slack) {
  const std::vector<uint64_t> want = BitsOfHexList(hex);
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t ulps = std::abs(static_cast<int64_t>(got[i]) - static_cast<int64_t>(want[i]));
    const double off =
        std::fabs(NumberOf(got[i], v1::DTYPE_F32) - NumberOf(want[i], v1::DTYPE_F32));
    EXPECT_TRUE(ulps <= 1 || (!slack.empty() && off <= slack[i]))
        << what << " element " << i << ": " << ulps << " ulps";
  }
}

void ExpectAxialLine(const Json& line, v1::EncodingSpec spec) {
  v1::AxialRopeSpec* axial = spec.mutable_axial_rope();
  axial->set_token_order(v1::GRID_TOKEN_ORDER_ROW_MAJOR);
  axial->clear_merge_size();
  axial->clear_window_size();
  const auto canonical = Canonicalize(spec);
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  ExpectOptions(line, canonical->proto().axial_rope());
  ExpectFrequencies(line, spec);
  for (const Json& row : Get(line, "rows").GetArray()) {
    const Place place = PlaceOf(row);
    const auto table = FillTable(spec, place.selection, Format("layout: LAYOUT_COS_AND_SIN_HALF"));
    ASSERT_TRUE(table.ok()) << table.status();
    const std::string what = absl::StrCat("row ", place.row);
    ExpectWithinAnUlp(RowOf(table->tensors[0], place.row), Get(row, "cos_hex"), what + " cos");
    ExpectWithinAnUlp(RowOf(table->tensors[1], place.row), Get(row, "sin_hex"), what + " sin");
  }
}

}  // namespace posenc::golden
