// M-RoPE: schemes, laws, and refusals. Positions of prompts: mrope_positions_test.cc.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/families/mrope_schemes.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

// Options of a family's every scheme, with 32 frequencies.
const std::vector<std::string> kSchemes = {
    "scheme: MROPE_SCHEME_CONTIGUOUS mrope_section: [8, 12, 12]",
    "scheme: MROPE_SCHEME_INTERLEAVED mrope_section: [11, 11, 10]",
    "scheme: MROPE_SCHEME_ERNIE mrope_section: [11, 11, 10]",
    "scheme: MROPE_SCHEME_XDROPE mrope_section: [8, 8, 8, 8]",
    "scheme: MROPE_SCHEME_GLM mrope_section: [8, 12, 12]",
    "scheme: MROPE_SCHEME_OPENPANGU mrope_section: [8, 12, 12]",
};

std::string Mrope(const std::string& options, const std::string& rope = "rotary_dim: 64") {
  return absl::StrCat("mrope { rope { ", rope, " } ", options, " }");
}

v1::Selection SelectAxes(const std::vector<std::vector<int64_t>>& axes) {
  v1::Selection selection;
  for (const auto& ids : axes) {
    selection.mutable_axis_position_ids()->add_axes()->mutable_ids()->Add(ids.begin(), ids.end());
  }
  return selection;
}

std::string AxesOf(const std::string& options, const std::string& rope = "rotary_dim: 64") {
  const auto canonical = Canonicalize(Spec(Mrope(options, rope)));
  EXPECT_TRUE(canonical.ok()) << canonical.status();
  if (!canonical.ok()) return "";
  std::string axes;
  for (const MropeSlot& slot : MropeSlots(canonical->proto().mrope())) {
    axes.push_back("thwx"[slot.axis]);
  }
  return axes;
}

// ggml-org/llama.cpp#19443: chunked and interleaved sections are two schemes.
TEST(MropeTest, SectionsOfElevenElevenTenChunkedAndInterleaved) {
  EXPECT_EQ(AxesOf("mrope_section: [11, 11, 10]"), "ttttttttttthhhhhhhhhhhwwwwwwwwww");
  EXPECT_EQ(AxesOf("mrope_section: [11, 11, 10] scheme: MROPE_SCHEME_INTERLEAVED"),
            "thwthwthwthwthwthwthwthwthwthwth");
}

// Qwen3-VL's [24, 20, 20]: frequencies 60 to 63 are all t (hf-rope 3.3; ggml has
// e at 61 and 62, serving-stacks section 8).
TEST(MropeTest, WhatInterleavedSectionsLeaveIsTime) {
  const std::string axes =
      AxesOf("mrope_section: [24, 20, 20] scheme: MROPE_SCHEME_INTERLEAVED", "rotary_dim: 128");
  EXPECT_EQ(axes.substr(54), "thwthwtttt");
}

TEST(MropeTest, ErnieAlternatesHeightAndWidthThenTime) {
  const std::string axes =
      AxesOf("mrope_section: [22, 22, 20] scheme: MROPE_SCHEME_ERNIE", "rotary_dim: 128");
  EXPECT_EQ(axes.substr(0, 4), "hwhw");
  EXPECT_EQ(axes.substr(42), "hwtttttttttttttttttttt");
}

// Eight rounds of t h w, then as serving-stacks 2.1 computed SGLang's map.
TEST(MropeTest, GlmTakesAxesInTurnAndSkipsThoseThatAreUsedUp) {
  EXPECT_EQ(AxesOf("scheme: MROPE_SCHEME_GLM mrope_section: [8, 12, 12]"),
            "thwthwthwthwthwthwthwthwhhwhhwww");
}

// As serving-stacks 1.5 computed vLLM's list.
TEST(MropeTest, OpenPanguSpreadsAxesEvenlyAndEndsWithTime) {
  const std::string digits = "0121201212012012120120121201212012012120120121201212012012120120";
  std::string expected;
  for (const char digit : digits) expected.push_back("thw"[digit - '0']);
  EXPECT_EQ(AxesOf("scheme: MROPE_SCHEME_OPENPANGU mrope_section: [16, 24, 24]", "rotary_dim: 128"),
            expected);
  // Where one axis has nearly all, nothing else is left to take turns with.
  EXPECT_EQ(AxesOf("scheme: MROPE_SCHEME_OPENPANGU mrope_section: [1, 0, 3]", "rotary_dim: 8"),
            "wwwt");
}

// xdrope cuts the doubled row, so channels c and c + 32 may have different axes.
TEST(MropeTest, XdropeCutsTheDoubledRow) {
  EXPECT_EQ(
      AxesOf("scheme: MROPE_SCHEME_XDROPE mrope_section: [8, 8, 8, 8]"),
      std::string(16, 't') + std::string(16, 'h') + std::string(16, 'w') + std::string(16, 'x'));
}

// The laws ------------------------------------------------------------------------

TEST(MropeTest, EqualPositionsAreTheRopeInEveryLayout) {
  const std::vector<std::string> ropes = {
      "rotary_dim: 64", "head_dim: 128 rotary_dim: 64 arithmetic: ARITHMETIC_EXACT",
      "rotary_dim: 64 yarn { factor: 4 original_max_position_embeddings: 128 }"};
  for (const std::string& options : kSchemes) {
    const bool xdrope = options.find("XDROPE") != std::string::npos;
    const size_t axes = xdrope ? 4 : 3;
    for (const std::string& rope : ropes) {
      for (const char* layout :
           {"COS_SIN", "COS_AND_SIN_HALF", "COS_AND_SIN_FULL", "PAIRS", "PAIRS_FULL", "SIN_COS",
            "ROTATION_MATRIX", "COS_AND_SIN_REPEATED"}) {
        if (xdrope && std::string(layout) != "COS_AND_SIN_FULL") continue;
        const auto format = Format(absl::StrCat("layout: LAYOUT_", layout, " dtype: DTYPE_BF16"));
        const std::vector<int64_t> ids = {0, 1, 77, 4099};
        const auto want =
            FillTable(Spec(absl::StrCat("rope { ", rope, " }")), SelectIds(ids), format);
        const auto text = FillTable(Spec(Mrope(options, rope)), SelectIds(ids), format);
        const auto equal =
            FillTable(Spec(Mrope(options, rope)),
                      SelectAxes(std::vector<std::vector<int64_t>>(axes, ids)), format);
        ASSERT_TRUE(want.ok() && text.ok() && equal.ok()) << text.status() << equal.status();
        ASSERT_EQ(text->tensors.size(), want->tensors.size());
        for (size_t t = 0; t < want->tensors.size(); ++t) {
          EXPECT_EQ(text->tensors[t].bytes, want->tensors[t].bytes) << options << layout;
          EXPECT_EQ(equal->tensors[t].bytes, want->tensors[t].bytes) << options << layout;
          EXPECT_EQ(equal->tensors[t].tensor.name, want->tensors[t].tensor.name);
          EXPECT_EQ(equal->tensors[t].tensor.shape, want->tensors[t].tensor.shape);
        }
      }
    }
  }
}

// A value depends on the position of its own axis only: it is the RoPE's value
// there. This is the slow twin: a RoPE row per axis, values picked one by one.
TEST(MropeTest, EachValueIsTheRopesAtThePositionOfItsAxis) {
  const std::vector<int64_t> position = {1000, 37, 5, 123456};
  for (const std::string& options : kSchemes) {
    const auto canonical = Canonicalize(Spec(Mrope(options)));
    ASSERT_TRUE(canonical.ok());
    const v1::MropeSpec& spec = canonical->proto().mrope();
    std::vector<std::vector<int64_t>> ids;
    std::vector<std::vector<float>> rope;
    for (int axis = 0; axis < spec.mrope_section_size(); ++axis) {
      const int64_t p = position[static_cast<size_t>(axis)];
      ids.push_back({p});
      rope.push_back(FillOne("rope { rotary_dim: 64 }", SelectIds({p})).As<float>());
    }
    const auto table =
        FillTable(Spec(Mrope(options)), SelectAxes(ids), Format("layout: LAYOUT_COS_AND_SIN_FULL"));
    ASSERT_TRUE(table.ok()) << table.status();
    const auto cos = table->tensors[0].As<float>();
    const auto sin = table->tensors[1].As<float>();
    const auto slots = MropeSlots(spec);
    for (size_t channel = 0; channel < 64; ++channel) {
      const MropeSlot& slot = slots[channel % slots.size()];
      EXPECT_EQ(cos[channel], rope[slot.axis][slot.frequency]) << options << " " << channel;
      EXPECT_EQ(sin[channel], rope[slot.axis][32 + slot.frequency]) << options << " " << channel;
    }
  }
}

TEST(MropeTest, GlmPairsAdjacentChannels) {
  const std::string options = "mrope_section: [8, 12, 12]";
  const auto ids = SelectAxes({{9}, {4}, {2}});
  const auto half = FillTable(Spec(Mrope(options, "rotary_dim: 64 pairing: PAIRING_INTERLEAVED")),
                              ids, Format("layout: LAYOUT_COS_AND_SIN_HALF"));
  const auto full = FillTable(Spec(Mrope(options, "rotary_dim: 64 pairing: PAIRING_INTERLEAVED")),
                              ids, Format("layout: LAYOUT_COS_AND_SIN_FULL"));
  ASSERT_TRUE(half.ok() && full.ok());
  for (size_t c = 0; c < 64; ++c) {
    EXPECT_EQ(full->tensors[0].As<float>()[c], half->tensors[0].As<float>()[c / 2]);
  }
}

TEST(MropeTest, PartsEqualTheWhole) {
  const auto ids = SelectAxes({{0, 1, 5, 9}, {0, 3, 5, 7}, {0, 4, 5, 1}});
  const auto spec = Spec(Mrope(kSchemes[1]));
  for (const char* layout :
       {"COS_SIN", "COS_AND_SIN_HALF", "COS_AND_SIN_FULL", "PAIRS", "INV_FREQ", "POSITION_IDS"}) {
    ExpectPartsEqualWhole(spec, ids, Format(absl::StrCat("layout: LAYOUT_", layout)), 1);
    ExpectPartsEqualWhole(spec, SelectRange(3, 9), Format(absl::StrCat("layout: LAYOUT_", layout)),
                          2);
  }
}

TEST(MropeTest, FrequenciesAreTheRopes) {
  EXPECT_EQ(FillOne(Mrope(kSchemes[0]), v1::Selection(), "layout: LAYOUT_INV_FREQ").bytes,
            FillOne("rope { rotary_dim: 64 }", v1::Selection(), "layout: LAYOUT_INV_FREQ").bytes);
}

TEST(MropeTest, PositionIdsOfEverySelection) {
  const auto fill = [](const v1::Selection& selection) {
    const auto table =
        FillTable(Spec(Mrope(kSchemes[0])), selection, Format("layout: LAYOUT_POSITION_IDS"));
    EXPECT_TRUE(table.ok()) << table.status();
    std::vector<int32_t> all = table->tensors[0].As<int32_t>();
    all.push_back(table->tensors[1].As<int32_t>()[0]);
    return all;
  };
  EXPECT_EQ(fill(SelectRange(5, 7)), (std::vector<int32_t>{5, 6, 5, 6, 5, 6, 5}));
  EXPECT_EQ(fill(SelectIds({9, 2})), (std::vector<int32_t>{9, 2, 9, 2, 9, 2, 8}));
  EXPECT_EQ(fill(SelectAxes({{1, 2}, {3, 4}, {5, 6}})),
            (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 5}));
}

// Refusals --------------------------------------------------------------------------

TEST(MropeTest, CanonicalizeIsIdempotent) {
  for (const std::string& options : kSchemes) ExpectIdempotent(Mrope(options));
}

TEST(MropeTest, BadSpecsAreRefusedByField) {
  const struct {
    std::string spec;
    const char* refusal;
  } kCases[] = {
      {"mrope { mrope_section: [1, 1, 1] }", "mrope.rope: is required"},
      {Mrope("mrope_section: [1, 1, 1]", ""), "mrope.rope.head_dim: is required, or rotary_dim"},
      {Mrope("mrope_section: [1, 1, 1]", "rotary_dim: 7"),
       "mrope.rope.rotary_dim: must be even, got 7"},
      {Mrope(""), "mrope.mrope_section: must have 3 sections, got 0"},
      {Mrope("mrope_section: [16, 16]"), "mrope.mrope_section: must have 3 sections, got 2"},
      {Mrope("mrope_section: [16, 24, 24]"),
       "mrope.mrope_section: must sum to rotary_dim / 2 (32), sums to 64"},
      {Mrope("mrope_section: [33, 0, 0]"), "mrope.mrope_section[0]: must be in [0, 32], got 33"},
      {Mrope("mrope_section: [40, -4, -4]"), "mrope.mrope_section[0]: must be in [0, 32], got 40"},
      {Mrope("mrope_section: [12, 12, 8] scheme: 9"), "mrope.scheme: unknown value 9"},
      {Mrope("scheme: MROPE_SCHEME_XDROPE mrope_section: [4, 4, 4, 4, 4, 4, 4, 2, 2]"),
       "mrope.mrope_section: must have 1 to 8 sections, got 9"},
      {Mrope("scheme: MROPE_SCHEME_XDROPE mrope_section: [16, 16]",
             "rotary_dim: 64 pairing: PAIRING_INTERLEAVED"),
       "mrope.rope.pairing: must be half for xdrope"},
      {Mrope("scheme: MROPE_SCHEME_OPENPANGU mrope_section: [0, 16, 16]"),
       "mrope.mrope_section[0]: must be at least 1 for openpangu, whose last frequency is t's, got "
       "0"},
      {Mrope(kSchemes[0], "rotary_dim: 64 linear { factor: 3 divide_positions: true }"),
       "mrope.rope.linear.divide_positions: must be unset: M-RoPE has no such form"},
  };
  for (const auto& c : kCases) EXPECT_EQ(SpecRefusal(c.spec), c.refusal) << c.spec;
}

TEST(MropeTest, BadSelectionsAreRefusedByField) {
  const std::string spec = Mrope(kSchemes[0]);
  EXPECT_EQ(TableRefusal(spec, Select("")),
            "selection: is required: axis_position_ids, token_runs, a position_range or "
            "position_ids");
  EXPECT_EQ(TableRefusal(spec, Select("patch_grid { height: 2 width: 2 }")),
            "selection: needs axis_position_ids, token_runs, a position_range or position_ids for "
            "this encoding, got patch_grid");
  EXPECT_EQ(TableRefusal(spec, SelectAxes({{1}, {1}})),
            "selection.axis_position_ids.axes: must have the 3 axes of this encoding, got 2");
  EXPECT_EQ(TableRefusal(spec, SelectAxes({{1}, {1, 2}, {1}})),
            "selection.axis_position_ids.axes[1].ids: must have as many ids as axes[0] (1), got 2");
  EXPECT_EQ(TableRefusal(spec, SelectAxes({{1}, {1}, {int64_t{1} << 31}})),
            "selection.axis_position_ids.axes[2].ids[0]: must be in (-2147483648, 2147483648), got "
            "2147483648");
  EXPECT_EQ(TableRefusal(Mrope(kSchemes[3]), SelectRange(0, 2), "layout: LAYOUT_COS_SIN"),
            "format.layout: must be cos_and_sin_full for xdrope, where the two channels of a pair "
            "may turn by different axes");
  EXPECT_EQ(TableRefusal(Mrope(kSchemes[3]), Select("token_runs { runs { text: 2 } }")),
            "selection.token_runs: are positions on 3 axes, this encoding has 4: give "
            "axis_position_ids");
  EXPECT_EQ(TableRefusal(spec, SelectRange(0, 2), "layout: LAYOUT_POSITION_IDS dtype: DTYPE_F32"),
            "format.dtype: mrope as position_ids has i32, got f32");
}

}  // namespace
}  // namespace posenc::testing
