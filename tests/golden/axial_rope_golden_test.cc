// Every line of rope.jsonl whose positions have several axes: vision towers and
// diffusion transformers (axial_rope), and the rows of text models whose t, h and
// w differ (mrope).
//
// The rows are PyTorch's, whose cos and sin are within an ulp of the correctly
// rounded ones that we have; frequencies are equal bit for bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/rope_lines.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

v1::AxialRopePreset PresetOf(const Json& line) {
  const std::string id = golden::Id(line);
  const std::string rope_type = Get(line, "rope_type").GetString();
  const std::string layout = Get(line, "layout").GetString();
  if (id.starts_with("FLUX")) return v1::AXIAL_ROPE_PRESET_FLUX;
  if (id.starts_with("HunyuanDiT")) return v1::AXIAL_ROPE_PRESET_HUNYUAN_DIT;
  if (rope_type == "pixtral_2d") return v1::AXIAL_ROPE_PRESET_PIXTRAL;
  if (rope_type == "dinov3_2d") return v1::AXIAL_ROPE_PRESET_DINOV3;
  if (rope_type == "axial_2d_interleaved_axes") {
    return layout == "complex" ? v1::AXIAL_ROPE_PRESET_MOONVIT : v1::AXIAL_ROPE_PRESET_KIMI_VISION;
  }
  if (layout == "complex") return v1::AXIAL_ROPE_PRESET_LLAMA4_VISION;
  if (layout == "neox_half_per_axis_block") return v1::AXIAL_ROPE_PRESET_GEMMA4_VISION;
  EXPECT_EQ(rope_type, "axial_2d") << id;
  return v1::AXIAL_ROPE_PRESET_QWEN_VL;
}

// What the preset expands to is what the line says that the model does.
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

// `slack` is how far each value may be off besides, where torch's own frequency
// is not the correctly rounded one.
void ExpectWithinAnUlp(const std::vector<uint32_t>& got, const Json& hex, const std::string& what,
                       const std::vector<double>& slack = {}) {
  const std::vector<uint64_t> want = golden::BitsOfHexList(hex);
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t ulps = std::abs(static_cast<int64_t>(got[i]) - static_cast<int64_t>(want[i]));
    const double off = std::fabs(golden::NumberOf(got[i], v1::DTYPE_F32) -
                                 golden::NumberOf(want[i], v1::DTYPE_F32));
    EXPECT_TRUE(ulps <= 1 || (!slack.empty() && off <= slack[i]))
        << what << " element " << i << ": " << ulps << " ulps";
  }
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

v1::EncodingSpec AxialSpec(const Json& line) {
  v1::EncodingSpec spec;
  v1::AxialRopeSpec* axial = spec.mutable_axial_rope();
  axial->set_preset(PresetOf(line));
  axial->set_head_dim(Get(line, "head_dim").GetInt64());
  axial->set_token_order(v1::GRID_TOKEN_ORDER_ROW_MAJOR);
  return spec;
}

// inv_freq_hex is of one axis, or where the axes share them of all.
void ExpectFrequencies(const Json& line, const v1::EncodingSpec& spec) {
  if (!Has(line, "inv_freq_hex")) return;
  const std::vector<uint32_t> want = golden::InvFreqOf(line);
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

TEST(AxialRopeGoldenTest, EveryRowOfAGridIsWithinAnUlp) {
  int lines = 0;
  for (const auto& line : golden::ReadLines("rope.jsonl")) {
    if (!Has(line, "axes")) continue;
    SCOPED_TRACE(golden::Id(line));
    const v1::EncodingSpec spec = AxialSpec(line);
    const auto canonical = Canonicalize(spec);
    ASSERT_TRUE(canonical.ok()) << canonical.status();
    ExpectOptions(line, canonical->proto().axial_rope());
    ExpectFrequencies(line, spec);
    for (const Json& row : Get(line, "rows").GetArray()) {
      const Place place = PlaceOf(row);
      const auto table =
          FillTable(spec, place.selection, Format("layout: LAYOUT_COS_AND_SIN_HALF"));
      ASSERT_TRUE(table.ok()) << table.status();
      const std::string what = absl::StrCat("row ", place.row);
      ExpectWithinAnUlp(RowOf(table->tensors[0], place.row), Get(row, "cos_hex"), what + " cos");
      ExpectWithinAnUlp(RowOf(table->tensors[1], place.row), Get(row, "sin_hex"), what + " sin");
    }
    ++lines;
  }
  EXPECT_EQ(lines, 20);
}

// M-RoPE ------------------------------------------------------------------------------

v1::EncodingSpec MropeSpec(const Json& line) {
  v1::EncodingSpec spec;
  v1::MropeSpec* mrope = spec.mutable_mrope();
  v1::RopeSpec* rope = mrope->mutable_rope();
  rope->set_head_dim(Get(line, "head_dim").GetInt64());
  rope->set_rotary_dim(Get(line, "rotary_dim").GetInt64());
  rope->set_rope_theta(Get(line, "rope_theta").GetDouble());
  const Json& json = Get(line, "mrope");
  for (const Json& section : Get(json, "section").GetArray()) {
    mrope->add_mrope_section(section.GetInt64());
  }
  mrope->set_scheme(Get(json, "interleaved").GetBool() ? v1::MROPE_SCHEME_INTERLEAVED
                                                       : v1::MROPE_SCHEME_CONTIGUOUS);
  return spec;
}

v1::Selection SelectThw(const Json& thw) {
  v1::Selection selection;
  for (const Json& position : thw.GetArray()) {
    selection.mutable_axis_position_ids()->add_axes()->add_ids(position.GetInt64());
  }
  return selection;
}

// An ulp of an angle, where torch's frequency is an ulp off; 0 elsewhere.
std::vector<double> SlackOf(const Json& line, const Json& row) {
  int64_t largest = 0;
  for (const Json& position : Get(row, "thw").GetArray()) {
    largest = std::max(largest, position.GetInt64());
  }
  std::vector<double> slack;
  for (const uint32_t bits : golden::InvFreqOf(line)) {
    slack.push_back(static_cast<double>(largest) * golden::NumberOf(bits, v1::DTYPE_F32) * 0x1p-23);
  }
  std::vector<double> used(slack.size(), 0.0);
  for (const Json& index : Get(line, "torch_pow_differs").GetArray()) {
    used.at(index.GetUint()) = slack.at(index.GetUint()) + 0x1p-23;
  }
  return used;
}

TEST(MropeGoldenTest, RowsOfThreeDifferentPositionsAreWithinAnUlp) {
  int lines = 0;
  for (const auto& line : golden::ReadLines("rope.jsonl")) {
    if (!Has(line, "mrope_rows")) continue;
    SCOPED_TRACE(golden::Id(line));
    const v1::EncodingSpec spec = MropeSpec(line);
    golden::ExpectInvFreq(spec, golden::InvFreqOf(line));
    for (const golden::RopeRow& row : golden::RowsOf(line)) golden::ExpectRopeRow(spec, row);
    for (const Json& row : Get(line, "mrope_rows").GetArray()) {
      const auto table =
          FillTable(spec, SelectThw(Get(row, "thw")), Format("layout: LAYOUT_COS_AND_SIN_HALF"));
      ASSERT_TRUE(table.ok()) << table.status();
      const std::vector<double> slack = SlackOf(line, row);
      ExpectWithinAnUlp(table->tensors[0].As<uint32_t>(), Get(row, "cos_hex"), "cos", slack);
      ExpectWithinAnUlp(table->tensors[1].As<uint32_t>(), Get(row, "sin_hex"), "sin", slack);
    }
    ++lines;
  }
  EXPECT_EQ(lines, 11);
}

}  // namespace
}  // namespace posenc::testing
