// Every line of rope.jsonl whose positions have several axes: vision towers and
// diffusion transformers (axial_rope), and the rows of text models whose t, h and
// w differ (mrope).
//
// The rows are PyTorch's, whose cos and sin are within an ulp of the correctly
// rounded ones that we have; frequencies are equal bit for bit.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/axial_lines.h"
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

v1::EncodingSpec AxialSpec(const Json& line) {
  v1::EncodingSpec spec;
  v1::AxialRopeSpec* axial = spec.mutable_axial_rope();
  axial->set_preset(PresetOf(line));
  axial->set_head_dim(Get(line, "head_dim").GetInt64());
  return spec;
}

TEST(AxialRopeGoldenTest, EveryRowOfAGridIsWithinAnUlp) {
  int lines = 0;
  for (const auto& line : golden::ReadLines("rope.jsonl")) {
    if (!Has(line, "axes")) continue;
    SCOPED_TRACE(golden::Id(line));
    golden::ExpectAxialLine(line, AxialSpec(line));
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
      golden::ExpectWithinAnUlp(table->tensors[0].As<uint32_t>(), Get(row, "cos_hex"), "cos",
                                slack);
      golden::ExpectWithinAnUlp(table->tensors[1].As<uint32_t>(), Get(row, "sin_hex"), "sin",
                                slack);
    }
    ++lines;
  }
  EXPECT_EQ(lines, 11);
}

}  // namespace
}  // namespace posenc::testing
