// Row ids of learned tables: each rule against its models' own words, and what is
// past the last row.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<int32_t> Ids(const std::string& fields, const v1::Selection& selection) {
  return FillOne("position_ids { " + fields + " }", selection).As<int32_t>();
}

std::vector<int32_t> SequenceIds(const std::string& fields, const std::string& sequences) {
  return Ids(fields, Select("sequences { " + sequences + " }"));
}

int64_t UsablePositions(const std::string& fields) {
  const auto spec = Canonicalize(Spec("position_ids { " + fields + " }"));
  EXPECT_TRUE(spec.ok()) << spec.status();
  v1::DescribeTableResponse description;
  FamilyOf(spec->proto()).MakePlan(*spec)->Describe(&description);
  return description.usable_positions();
}

TEST(PositionIdsTest, BertAndGpt2CountFromThePast) {
  EXPECT_THAT(Ids("", SelectRange(7, 10)), ElementsAre(7, 8, 9));
  EXPECT_THAT(Ids("", SelectIds({4, 0, 4})), ElementsAre(4, 0, 4));
}

// transformers#19240: the offset is not an error, the table has two rows more.
TEST(PositionIdsTest, BartStartsAtRowTwo) {
  EXPECT_THAT(Ids("offset: 2", SelectRange(0, 3)), ElementsAre(2, 3, 4));
}

TEST(PositionIdsTest, OptCountsTheMaskAndGivesPaddingRowOne) {
  // reference/other-encodings.md, section 5.1: mask [0, 0, 1, 1, 1].
  const std::string opt = "rule: POSITION_ID_RULE_MASKED";
  EXPECT_THAT(SequenceIds(opt, "values: [0, 0, 1, 1, 1]"), ElementsAre(1, 1, 2, 3, 4));
  EXPECT_THAT(SequenceIds(opt, "values: [0, 0, 1, 1, 1] past_length: 3"), ElementsAre(3, 4));
}

// transformers#29419: left padding shifts every position that does not look at it.
TEST(PositionIdsTest, GenerateStartsAtTheFirstTokenWhateverThePadding) {
  const std::string v5 = "rule: POSITION_ID_RULE_GENERATE";
  EXPECT_THAT(SequenceIds(v5, "batch_size: 2 values: [0, 0, 1, 1, 1, 1, 1, 1, 0, 0]"),
              ElementsAre(0, 0, 0, 1, 2, 0, 1, 2, 0, 0));
  EXPECT_THAT(SequenceIds(v5 + " pad_position: 1", "values: [0, 0, 1, 1, 1]"),
              ElementsAre(1, 1, 0, 1, 2));
}

TEST(PositionIdsTest, RobertaCountsTokensThatAreNotPadding) {
  const std::string roberta = "rule: POSITION_ID_RULE_NON_PADDING";
  EXPECT_THAT(SequenceIds(roberta, "values: [0, 9, 1, 8, 2]"), ElementsAre(2, 3, 1, 4, 5));
  EXPECT_THAT(SequenceIds(roberta, "values: [5, 6, 7] past_length: 4"), ElementsAre(6, 7, 8));
  EXPECT_THAT(SequenceIds(roberta + " padding_index: 0", "values: [0, 0, 4, 5]"),
              ElementsAre(0, 0, 1, 2));
}

TEST(PositionIdsTest, SasrecCountsPlacesOfTheWindow) {
  EXPECT_THAT(SequenceIds("rule: POSITION_ID_RULE_INDEX_FROM_ONE", "values: [0, 0, 5, 7, 9]"),
              ElementsAre(0, 0, 3, 4, 5));
}

// transformers#1363, #14243: 514 rows hold 512 tokens; #9116: padding index 3 takes two more.
TEST(PositionIdsTest, UsablePositionsAreFewerThanRows) {
  const std::string roberta = "rule: POSITION_ID_RULE_NON_PADDING ";
  EXPECT_EQ(UsablePositions(roberta + "table_rows: 514"), 512);
  EXPECT_EQ(UsablePositions(roberta + "padding_index: 3 table_rows: 514"), 510);
  EXPECT_EQ(UsablePositions("rule: POSITION_ID_RULE_MASKED table_rows: 2050"), 2048);
  EXPECT_EQ(UsablePositions("offset: 2 table_rows: 1026"), 1024);
  EXPECT_EQ(UsablePositions("table_rows: 128"), 128);  // Blenderbot: transformers#5190
  EXPECT_EQ(UsablePositions("rule: POSITION_ID_RULE_INDEX_FROM_ONE table_rows: 201"), 200);
}

TEST(PositionIdsTest, PastTheLastRowIsAnErrorThatNamesTheFirstBadPosition) {
  EXPECT_EQ(TableRefusal("position_ids { table_rows: 512 }", SelectRange(0, 512)), "");
  EXPECT_EQ(TableRefusal("position_ids { table_rows: 512 }", SelectRange(0, 513)),
            "selection.position_range.end: takes row 512, past the last of "
            "position_ids.table_rows (512); 512 positions are usable");
  EXPECT_EQ(TableRefusal("position_ids { offset: 2 table_rows: 12 }", SelectIds({3, 10, 11})),
            "selection.position_ids.ids[1]: takes row 12, past the last of "
            "position_ids.table_rows (12); 10 positions are usable");
  EXPECT_EQ(TableRefusal("position_ids { rule: POSITION_ID_RULE_NON_PADDING table_rows: 4 }",
                         Select("sequences { batch_size: 2 values: [5, 5, 1, 5, 5, 5] }")),
            "selection.sequences: sequence 1: takes row 4, past the last of "
            "position_ids.table_rows (4); 2 positions are usable");
}

TEST(PositionIdsTest, AnySplitOfTheTableGivesTheSameBytes) {
  const v1::Selection sequences =
      Select("sequences { batch_size: 3 values: [0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0] }");
  for (const int64_t units : {1, 3, 5, 7}) {
    ExpectPartsEqualWhole(Spec("position_ids { offset: 2 }"), SelectRange(5, 25), {}, units);
    for (const char* rule : {"MASKED", "GENERATE", "NON_PADDING", "INDEX_FROM_ONE"}) {
      ExpectPartsEqualWhole(
          Spec(absl::StrCat("position_ids { rule: POSITION_ID_RULE_", rule, " }")), sequences, {},
          units);
    }
  }
}

TEST(PositionIdsTest, CanonicalizeIsIdempotent) {
  for (const char* rule : {"SEQUENTIAL", "MASKED", "GENERATE", "NON_PADDING", "INDEX_FROM_ONE"}) {
    ExpectIdempotent(
        absl::StrCat("position_ids { rule: POSITION_ID_RULE_", rule, " table_rows: 9 }"));
  }
}

TEST(PositionIdsTest, NoTokensAreNoIds) {
  EXPECT_TRUE(Ids("", SelectRange(4, 4)).empty());
  EXPECT_TRUE(
      SequenceIds("rule: POSITION_ID_RULE_MASKED", "values: [1, 1] past_length: 2").empty());
}

TEST(PositionIdsTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"rule: 9", "position_ids.rule: unknown value 9"},
      {"offset: -1", "position_ids.offset: must be in [0, 1073741824], got -1"},
      {"rule: POSITION_ID_RULE_MASKED offset: 0",
       "position_ids.offset: must be in [1, 1073741824], got 0"},
      {"rule: POSITION_ID_RULE_GENERATE offset: 2", "position_ids.offset: this rule has none"},
      {"padding_index: 1", "position_ids.padding_index: this rule has none"},
      {"rule: POSITION_ID_RULE_NON_PADDING padding_index: -1",
       "position_ids.padding_index: must be in [0, 1073741824], got -1"},
      {"pad_position: 0", "position_ids.pad_position: this rule has none"},
      {"rule: POSITION_ID_RULE_GENERATE pad_position: -1",
       "position_ids.pad_position: must be in [0, 1073741824], got -1"},
      {"table_rows: 0", "position_ids.table_rows: must be in [1, 1073741824], got 0"},
      {"rule: POSITION_ID_RULE_NON_PADDING table_rows: 2",
       "position_ids.table_rows: must be in [3, 1073741824], got 2"}};
  for (const auto& [spec, message] : cases) {
    EXPECT_EQ(SpecRefusal("position_ids { " + spec + " }"), message);
  }
}

TEST(PositionIdsTest, BadSelectionsAreRefused) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"", "", "selection: is required: a position_range or position_ids"},
      {"", "sequences { values: 1 }",
       "selection: needs a position_range or position_ids for this encoding, got sequences"},
      {"", "position_range { begin: -1 end: 2 }",
       "selection.position_range.begin: must be in [0, 2147483648], got -1"},
      {"rule: POSITION_ID_RULE_MASKED", "position_range { end: 2 }",
       "selection: needs sequences for this encoding, got position_range"},
      {"rule: POSITION_ID_RULE_MASKED", "sequences { values: [1, 2] }",
       "selection.sequences.values[1]: must be in [0, 1], got 2"},
      {"rule: POSITION_ID_RULE_MASKED", "sequences { values: [1, 1] past_length: 3 }",
       "selection.sequences.past_length: the mask covers past tokens too: must be at most "
       "length (2), got 3"},
      {"rule: POSITION_ID_RULE_GENERATE", "sequences { values: 1 past_length: 1 }",
       "selection.sequences.past_length: this encoding does not read it"},
      {"rule: POSITION_ID_RULE_GENERATE", "sequences { values: 1 lengths: 1 }",
       "selection.sequences.lengths: this encoding does not read it"},
      {"rule: POSITION_ID_RULE_GENERATE", "sequences { batch_size: 0 }",
       "selection.sequences.batch_size: must be in [1, 1048576], got 0"},
      {"rule: POSITION_ID_RULE_GENERATE", "sequences { batch_size: 2 values: [1, 1, 1] }",
       "selection.sequences.values: must have batch_size * length (2) entries, got 3"},
      {"rule: POSITION_ID_RULE_GENERATE", "sequences { length: 9223372036854775807 }",
       "selection.sequences.length: must be in [0, 2147483648], got 9223372036854775807"},
      {"rule: POSITION_ID_RULE_NON_PADDING", "sequences { values: 5 past_length: -1 }",
       "selection.sequences.past_length: must be in [0, 2147483647], got -1"},
      {"offset: 1073741824", "position_range { begin: 2147483646 end: 2147483647 }",
       "selection.position_range.end: takes row 3221225470, ids are 32 bits"}};
  for (const auto& [spec, selection, message] : cases) {
    EXPECT_EQ(TableRefusal("position_ids { " + spec + " }", Select(selection)), message);
  }
}

}  // namespace
}  // namespace posenc::testing
