// Masks against a slow twin that asks each rule about one pair at a time; how they
// become a bias; what is refused.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/families.h"
#include "lib/families/mask_rules.h"
#include "lib/numeric/dtype.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

std::vector<uint8_t> Mask(const std::string& rule, const v1::Selection& selection) {
  return FillOne("mask { rule { " + rule + " } }", selection).As<uint8_t>();
}

v1::Selection Tokens(const std::string& grid, const std::string& lists) {
  return Select("token_grid { attention_grid { " + grid + " } " + lists + " }");
}

// One pair, as section 6 of reference/other-encodings.md words it.
bool SlowAllowed(const v1::MaskRule& rule, const v1::TokenGrid& tokens, int64_t q, int64_t k) {
  const auto same = [&](const auto& ids) {
    return ids[static_cast<int>(q)] == ids[static_cast<int>(k)];
  };
  switch (rule.rule_case()) {
    case v1::MaskRule::kCausal:
      return k <= q;
    case v1::MaskRule::kSlidingWindow:
      return k <= q && k > q - rule.sliding_window().window();
    case v1::MaskRule::kWindow:
      return k >= q - rule.window().left() && k <= q + rule.window().right();
    case v1::MaskRule::kChunked: {
      const auto chunk = [&](int64_t p) {
        return std::floor(static_cast<double>(p - rule.chunked().left_padding()) /
                          static_cast<double>(rule.chunked().length()));
      };
      return chunk(q) == chunk(k);
    }
    case v1::MaskRule::kPrefix:
      return q < rule.prefix().length() && k < rule.prefix().length();
    case v1::MaskRule::kSink:
      return k < rule.sink().length();
    case v1::MaskRule::kPadding:
      return tokens.padding_mask(static_cast<int>(k)) == 1;
    case v1::MaskRule::kQueryPadding:
      return tokens.padding_mask(static_cast<int>(q)) == 1;
    case v1::MaskRule::kSameSequence:
      return same(tokens.sequence_ids());
    case v1::MaskRule::kSameBlock:
      return same(tokens.block_ids()) && tokens.block_ids(static_cast<int>(q)) >= 0;
    case v1::MaskRule::kAllOf:
      for (const auto& nested : rule.all_of().rules()) {
        if (!SlowAllowed(nested, tokens, q, k)) return false;
      }
      return true;
    case v1::MaskRule::kAnyOf:
      for (const auto& nested : rule.any_of().rules()) {
        if (SlowAllowed(nested, tokens, q, k)) return true;
      }
      return false;
    case v1::MaskRule::RULE_NOT_SET:
      break;
  }
  ADD_FAILURE() << "no rule";
  return false;
}

const char* const kRules[] = {
    "causal {}",
    "sliding_window { window: 3 }",
    "window { left: 2 right: 1 }",
    "window { left: 0 }",
    "chunked { length: 4 }",
    "chunked { length: 4 left_padding: 3 }",
    "prefix { length: 5 }",
    "prefix { length: 0 }",
    "sink { length: 2 }",
    "padding {}",
    "query_padding {}",
    "same_sequence {}",
    "same_block {}",
    "all_of { rules { causal {} } rules { padding {} } rules { same_sequence {} } }",
    "any_of { rules { causal {} } rules { prefix { length: 6 } } }",
    "all_of { rules { any_of { rules { sink { length: 1 } } rules { sliding_window { window: 2 } } "
    "} } rules { any_of { rules { same_block {} } rules { causal {} } } } }"};

// The lists that a rule reads, of 12 tokens.
v1::Selection TwelveTokens(const std::string& rule, int64_t query_length, int64_t query_offset) {
  v1::MaskRule parsed = Spec("mask { rule { " + rule + " } }").mask().rule();
  const MaskInputs inputs = InputsOf(parsed);
  std::string lists;
  if (inputs.padding_mask) lists += " padding_mask: [0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0]";
  if (inputs.sequence_ids) lists += " sequence_ids: [7, 7, 7, 8, 8, 9, 9, 9, 9, 9, 1, 1]";
  if (inputs.block_ids) lists += " block_ids: [-1, 0, 0, 0, -1, 1, 1, -1, -1, 2, 2, 2]";
  return Tokens(
      absl::StrCat("query_length: ", query_length, " key_length: 12 query_offset: ", query_offset),
      lists);
}

TEST(MaskTest, EveryRuleEqualsItsDefinition) {
  for (const char* rule : kRules) {
    for (const auto& [queries, offset] : {std::pair<int64_t, int64_t>(12, 0), {5, 7}, {1, 4}}) {
      const v1::Selection selection = TwelveTokens(rule, queries, offset);
      const std::vector<uint8_t> mask = Mask(rule, selection);
      const v1::MaskRule parsed = Spec(absl::StrCat("mask { rule { ", rule, " } }")).mask().rule();
      ASSERT_EQ(mask.size(), static_cast<size_t>(queries * 12));
      for (int64_t q = 0; q < queries; ++q) {
        for (int64_t k = 0; k < 12; ++k) {
          ASSERT_EQ(mask[static_cast<size_t>(q * 12 + k)] != 0,
                    SlowAllowed(parsed, selection.token_grid(), offset + q, k))
              << rule << " at " << offset + q << ", " << k;
        }
      }
    }
  }
}

// Rows longer than the block that rules are evaluated in.
TEST(MaskTest, LongRowsEqualTheDefinitionToo) {
  const std::string rule =
      "all_of { rules { causal {} } rules { any_of { rules { sink { length: 3 } } rules { "
      "window { left: 700 } } } } }";
  const v1::MaskRule parsed = Spec("mask { rule { " + rule + " } }").mask().rule();
  const std::vector<uint8_t> mask = Mask(rule, SelectGrid(3, 2500, 1700));
  for (int64_t q = 0; q < 3; ++q) {
    for (int64_t k = 0; k < 2500; ++k) {
      ASSERT_EQ(mask[static_cast<size_t>(q * 2500 + k)] != 0, SlowAllowed(parsed, {}, 1700 + q, k))
          << q << ", " << k;
    }
  }
}

TEST(MaskTest, AWindowOfWHasWKeysTheQueryIncluded) {
  // transformers#29623, #40163: W - 1 and W + 1 have both been shipped.
  const std::vector<uint8_t> mask = Mask("sliding_window { window: 3 }", SelectGrid(1, 9, 6));
  EXPECT_THAT(mask, ElementsAre(0, 0, 0, 0, 1, 1, 1, 0, 0));
}

TEST(MaskTest, CausalIsAlignedByTheOffset) {
  EXPECT_THAT(Mask("causal {}", SelectGrid(2, 4, 2)), ElementsAre(1, 1, 1, 0, 1, 1, 1, 1));
  EXPECT_THAT(Mask("causal {}", SelectGrid(2, 4)), ElementsAre(1, 0, 0, 0, 1, 1, 0, 0));
}

TEST(MaskTest, PackedPositionsStartASequenceWhereTheyDoNotGoUpByOne) {
  const v1::Selection packed =
      Tokens("query_length: 4 key_length: 4", "packed_position_ids: [3, 4, 0, 1]");
  const v1::Selection ids = Tokens("query_length: 4 key_length: 4", "sequence_ids: [0, 0, 1, 1]");
  EXPECT_EQ(Mask("same_sequence {}", packed), Mask("same_sequence {}", ids));
}

TEST(MaskTest, ABiasIsZeroOrTheFill) {
  const std::string causal = "mask { rule { causal {} } ";
  EXPECT_THAT(FillOne(causal + "}", SelectGrid(2, 2), "layout: LAYOUT_BIAS").As<float>(),
              ElementsAre(0, kLowest, 0, 0));
  EXPECT_THAT(FillOne(causal + "fill: MASK_FILL_NEG_INF }", SelectGrid(2, 2), "layout: LAYOUT_BIAS")
                  .As<float>(),
              ElementsAre(0, -kInfinity, 0, 0));
  EXPECT_THAT(FillOne(causal + "fill: MASK_FILL_VALUE fill_value: -1e10 }", SelectGrid(2, 2),
                      "layout: LAYOUT_BIAS")
                  .As<float>(),
              ElementsAre(0, -1e10f, 0, 0));
}

TEST(MaskTest, TheLowestNumberIsThatOfTheDtype) {
  const auto fill = [](const std::string& dtype) {
    return FillOne("mask { rule { causal {} } }", SelectGrid(1, 2),
                   "layout: LAYOUT_BIAS dtype: " + dtype);
  };
  EXPECT_EQ(fill("DTYPE_F16").As<uint16_t>()[1], 0xfbff);   // -65504
  EXPECT_EQ(fill("DTYPE_BF16").As<uint16_t>()[1], 0xff7f);  // -3.3895314e38
  EXPECT_EQ(fill("DTYPE_F64").As<double>()[1], std::numeric_limits<double>::lowest());
}

// transformers#17306 and others: the sum of two masks' lowest numbers is -infinity,
// and a row of those is NaN after softmax.
TEST(MaskTest, ComposedMasksNeverReachInfinity) {
  const FilledTensor bias =
      FillOne("mask { rule { all_of { rules { causal {} } rules { padding {} } } } }",
              Tokens("query_length: 3 key_length: 3", "padding_mask: [0, 0, 1]"),
              "layout: LAYOUT_BIAS dtype: DTYPE_F16");
  for (const uint16_t bits : bias.As<uint16_t>()) EXPECT_TRUE(std::isfinite(F16ToFloat(bits)));
  EXPECT_EQ(bias.As<uint16_t>()[0], 0xfbff) << "a row without keys is all lowest";
}

TEST(MaskTest, AMaskedBiasIsTheBiasWhereAllowed) {
  const std::string alibi = "alibi { num_heads: 3 }";
  const std::vector<float> bare = FillOne(alibi, SelectGrid(5, 7, 2)).As<float>();
  const std::vector<float> masked =
      FillOne("mask { rule { sliding_window { window: 3 } } fill: MASK_FILL_NEG_INF bias { " +
                  alibi + " } }",
              SelectGrid(5, 7, 2), "layout: LAYOUT_BIAS")
          .As<float>();
  const std::vector<uint8_t> allowed = Mask("sliding_window { window: 3 }", SelectGrid(5, 7, 2));
  ASSERT_EQ(masked.size(), 3 * allowed.size());
  for (size_t i = 0; i < masked.size(); ++i) {
    ASSERT_EQ(masked[i], allowed[i % allowed.size()] != 0 ? bare[i] : -kInfinity);
  }
}

TEST(MaskTest, AnySplitOfTheTableGivesTheSameBytes) {
  for (const char* rule : kRules) {
    for (const int64_t units : {1, 7, 50}) {
      ExpectPartsEqualWhole(Spec(absl::StrCat("mask { rule { ", rule, " } }")),
                            TwelveTokens(rule, 5, 7), {}, units);
      ExpectPartsEqualWhole(
          Spec(absl::StrCat("mask { rule { ", rule, " } bias { alibi { num_heads: 2 } } }")),
          TwelveTokens(rule, 5, 7), Format("layout: LAYOUT_BIAS"), units);
    }
  }
}

TEST(MaskTest, CanonicalizeIsIdempotent) {
  for (const char* rule : kRules) {
    ExpectIdempotent(absl::StrCat("mask { rule { ", rule, " } }"));
  }
  ExpectIdempotent("mask { rule { causal {} } bias { alibi { num_heads: 2 } } }");
}

// Equal table ids mean equal bytes: a new ALiBi is a new mask with an ALiBi in it.
TEST(MaskTest, TheNumericsVersionHoldsThoseOfItsBiases) {
  EXPECT_THAT(std::string(MaskFamily().numerics_version()),
              HasSubstr(std::string(AlibiFamily().numerics_version())));
}

std::string Nested(int depth) {
  return depth == 0 ? "causal {}" : "all_of { rules { " + Nested(depth - 1) + " } }";
}

TEST(MaskTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "mask.rule: is required"},
      {"rule {}", "mask.rule: a rule is required"},
      {"rule { all_of {} }", "mask.rule.all_of.rules: needs at least one rule"},
      {"rule { any_of { rules { causal {} } rules {} } }",
       "mask.rule.any_of.rules[1]: a rule is required"},
      {"rule { any_of { rules { window {} } } }",
       "mask.rule.any_of.rules[0].window.left: is required"},
      {"rule { window { left: 1 right: -1 } }",
       "mask.rule.window.right: must be in [0, 2147483648], got -1"},
      {"rule { sliding_window {} }", "mask.rule.sliding_window.window: is required"},
      {"rule { sliding_window { window: 0 } }",
       "mask.rule.sliding_window.window: must be in [1, 2147483648], got 0"},
      {"rule { sliding_window { window: 1 history: 9 } }",
       "mask.rule.sliding_window.history: unknown value 9"},
      {"rule { chunked { length: 0 } }",
       "mask.rule.chunked.length: must be in [1, 2147483648], got 0"},
      {"rule { chunked { length: 1 left_padding: -1 } }",
       "mask.rule.chunked.left_padding: must be in [0, 2147483648], got -1"},
      {"rule { prefix {} }", "mask.rule.prefix.length: is required"},
      {"rule { sink { length: 9223372036854775807 } }",
       "mask.rule.sink.length: must be in [0, 2147483648], got 9223372036854775807"},
      {"rule { causal {} } fill: 9", "mask.fill: unknown value 9"},
      {"rule { causal {} } fill: MASK_FILL_VALUE", "mask.fill_value: is required"},
      {"rule { causal {} } fill_value: -1", "mask.fill_value: only MASK_FILL_VALUE has one"},
      {"rule { causal {} } fill: MASK_FILL_VALUE fill_value: 1",
       "mask.fill_value: must be at most 0, got 1"},
      {"rule { causal {} } fill: MASK_FILL_VALUE fill_value: nan",
       "mask.fill_value: must be at most 0, got nan"},
      {"rule { causal {} } bias {}", "mask.bias: one family is required"},
      {"rule { causal {} } bias { rope { head_dim: 64 } }",
       "mask.bias: must be an encoding with a bias, got rope"},
      {"rule { causal {} } bias { mask { rule { causal {} } } }",
       "mask.bias: must be an encoding with a bias, got mask"},
      {"rule { causal {} } bias { alibi {} }", "mask.bias.alibi.num_heads: is required"},
      {"rule { " + Nested(16) + " }", "mask.rule: must not be nested deeper than 16"},
      {"rule { any_of {" +
           absl::StrJoin(std::vector<std::string>(256, "rules { causal {} }"), " ") + "} }",
       "mask.rule: must not have more than 256 rules"}};
  for (const auto& [spec, message] : cases)
    EXPECT_EQ(SpecRefusal("mask { " + spec + " }"), message);
}

TEST(MaskTest, BadSelectionsAreRefused) {
  const std::string causal = "mask { rule { causal {} } }";
  const std::string padding = "mask { rule { padding {} } }";
  const std::string packed = "mask { rule { same_sequence {} } }";
  const std::string grid = "query_length: 2 key_length: 3";
  const std::vector<std::tuple<std::string, v1::Selection, std::string>> cases = {
      {causal, SelectRange(0, 2),
       "selection: needs an attention_grid for this encoding, got position_range"},
      {causal, Tokens("query_length: 2", ""), "selection.attention_grid.key_length: is required"},
      {causal, Tokens(grid, "padding_mask: [1, 1, 1]"),
       "selection.token_grid.padding_mask: nothing here reads it"},
      {padding, SelectGrid(2, 3),
       "selection: needs a token_grid with the lists that the mask's rules read"},
      {padding, Tokens(grid, ""),
       "selection.token_grid.padding_mask: must have key_length (3) entries, got 0"},
      {padding, Tokens(grid, "padding_mask: [1, 1]"),
       "selection.token_grid.padding_mask: must have key_length (3) entries, got 2"},
      {padding, Tokens(grid, "padding_mask: [1, 1, 2]"),
       "selection.token_grid.padding_mask[2]: must be in [0, 1], got 2"},
      {packed, Tokens(grid, "sequence_ids: [1, 1, 2] packed_position_ids: [0, 1, 2]"),
       "selection.token_grid.sequence_ids: packed_position_ids is given too; one is enough"},
      {packed, Tokens(grid, "packed_position_ids: [0, -1, 2]"),
       "selection.token_grid.packed_position_ids[1]: must be in [0, 2147483647], got -1"},
      {packed, Tokens("query_length: 2 key_length: 3 query_offset: 2", "sequence_ids: [1, 1, 2]"),
       "selection.token_grid.attention_grid: the last query must be one of the key_length (3) "
       "tokens, got position 3"}};
  for (const auto& [spec, selection, message] : cases) {
    EXPECT_EQ(TableRefusal(spec, selection), message);
  }
}

TEST(MaskTest, BadFormatsAreRefused) {
  const std::string causal = "mask { rule { causal {} } }";
  EXPECT_EQ(TableRefusal(causal, SelectGrid(2, 2), "dtype: DTYPE_F32"),
            "format.dtype: mask as mask has bool, got f32");
  EXPECT_EQ(TableRefusal(causal, SelectGrid(2, 2), "layout: LAYOUT_BIAS dtype: DTYPE_BOOL"),
            "format.dtype: mask as bias has f32, f64, f16, bf16, got bool");
}

TEST(MaskTest, AnEmptyGridIsAnEmptyTable) {
  EXPECT_TRUE(Mask("causal {}", SelectGrid(0, 4)).empty());
  EXPECT_TRUE(Mask("causal {}", SelectGrid(4, 0)).empty());
}

}  // namespace
}  // namespace posenc::testing
