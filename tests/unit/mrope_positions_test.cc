#include "lib/families/mrope_positions.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace posenc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

v1::TokenRuns Runs(const std::string& text) {
  v1::TokenRuns runs;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &runs)) << text;
  return runs;
}

v1::AxisPositionIds Positions(const std::string& text) {
  const auto ids = PositionsOfRuns(Runs(text));
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : v1::AxisPositionIds();
}

std::string Refusal(const std::string& text) {
  return std::string(PositionsOfRuns(Runs(text)).status().message());
}

// The example in the documentation of transformers' Qwen2-VL get_rope_index: a
// video of 3 frames of 2 x 2 tokens, then 5 tokens of text.
constexpr char kQwen2VlExample[] =
    "advance: ADVANCE_MAX runs { video { grid { frames: 3 height: 4 width: 4 } } } "
    "runs { text: 5 }";

TEST(MropePositionsTest, TheExampleOfQwen2Vl) {
  const auto ids = Positions(kQwen2VlExample);
  EXPECT_THAT(ids.axes(0).ids(), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(ids.axes(1).ids(), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 3, 4, 5, 6, 7));
  EXPECT_THAT(ids.axes(2).ids(), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 3, 4, 5, 6, 7));
  EXPECT_EQ(RopeDelta(ids), 7 + 1 - 17);
}

// The same in Qwen2.5-VL's: 25 tokens per second, 2 seconds per grid, so 50
// positions a frame, and the text begins at 101.
TEST(MropePositionsTest, TheExampleOfQwen25Vl) {
  const auto ids = Positions(
      "advance: ADVANCE_MAX "
      "runs { video { grid { frames: 3 height: 4 width: 4 } frame_interval: 50 } } "
      "runs { text: 5 }");
  EXPECT_THAT(ids.axes(0).ids(),
              ElementsAre(0, 0, 0, 0, 50, 50, 50, 50, 100, 100, 100, 100, 101, 102, 103, 104, 105));
  EXPECT_THAT(ids.axes(2).ids(),
              ElementsAre(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 101, 102, 103, 104, 105));
}

// transformers 5 advances by the spatial sides alone, whatever the frames.
TEST(MropePositionsTest, TheTwoWaysToGoOnDifferAfterALongVideo) {
  const std::string video =
      "runs { text: 2 } runs { video { grid { frames: 9 height: 4 width: 6 } } } runs { text: 1 }";
  EXPECT_EQ(Positions(video).axes(0).ids(2 + 9 * 6), 2 + 3);
  EXPECT_EQ(Positions("advance: ADVANCE_MAX " + video).axes(0).ids(2 + 9 * 6), 2 + 9);
  const std::string image =
      "runs { text: 2 } runs { image { height: 4 width: 6 } } runs { text: 1 }";
  EXPECT_EQ(Positions(image).axes(0).ids(2 + 6), 5);
  EXPECT_EQ(Positions("advance: ADVANCE_MAX " + image).axes(0).ids(2 + 6), 5);
}

TEST(MropePositionsTest, SeparateFramesAreImages) {
  EXPECT_EQ(
      Positions("runs { video { grid { frames: 3 height: 4 width: 6 } separate_frames: true } }")
          .SerializeAsString(),
      Positions("runs { image { height: 4 width: 6 } } runs { image { height: 4 width: 6 } } "
                "runs { image { height: 4 width: 6 } }")
          .SerializeAsString());
}

// vLLM floors after the product, so an interval need not be whole.
TEST(MropePositionsTest, FractionsOfAFrameIntervalAreFlooredPerFrame) {
  const auto ids =
      Positions("runs { video { grid { frames: 4 height: 2 width: 2 } frame_interval: 1.5 } }");
  EXPECT_THAT(ids.axes(0).ids(), ElementsAre(0, 1, 3, 4));
}

TEST(MropePositionsTest, TextAloneIsARange) {
  const auto ids = Positions("start: 40 runs { text: 2 } runs { text: 0 } runs { text: 1 }");
  for (const auto& axis : ids.axes()) EXPECT_THAT(axis.ids(), ElementsAreArray({40, 41, 42}));
  EXPECT_EQ(RopeDelta(ids), 40);
  EXPECT_EQ(RopeDelta(Positions("")), 0);
}

TEST(MropePositionsTest, MergeSizeOneKeepsThePatches) {
  EXPECT_THAT(
      Positions("spatial_merge_size: 1 runs { image { height: 1 width: 3 } }").axes(2).ids(),
      ElementsAre(0, 1, 2));
}

TEST(MropePositionsTest, BadRunsAreRefusedByField) {
  const struct {
    const char* runs;
    const char* refusal;
  } kCases[] = {
      {"runs { }", "selection.token_runs.runs[0]: must be text, image or video"},
      {"runs { text: 1 } runs { text: -1 }",
       "selection.token_runs.runs[1].text: must be in [0, 349525], got -1"},
      {"runs { image { height: 3 width: 4 } }",
       "selection.token_runs.runs[0].image.height: must be a multiple of spatial_merge_size (2), "
       "got 3"},
      {"runs { image { height: 4 } }",
       "selection.token_runs.runs[0].image.width: must be in [1, 1048576], got 0"},
      {"runs { video { grid { frames: 0 height: 4 width: 4 } } }",
       "selection.token_runs.runs[0].video.grid.frames: must be in [1, 1048576], got 0"},
      {"runs { video { grid { height: 4 width: 4 } frame_interval: nan } }",
       "selection.token_runs.runs[0].video.frame_interval: must be in [0, 1.04858e+06], got nan"},
      {"spatial_merge_size: 0",
       "selection.token_runs.spatial_merge_size: must be in [1, 1048576], got 0"},
      {"advance: 7", "selection.token_runs.advance: unknown value 7"},
      {"start: -1", "selection.token_runs.start: must be in [0, 2147483647], got -1"},
      {"start: 2147483647 runs { text: 2 }",
       "selection.token_runs.runs[0].text: must end before position 2147483648, ends at "
       "2147483648"},
      {"runs { image { height: 1048576 width: 1048576 } }",
       "selection.token_runs.runs[0].image: makes more than 349525 tokens in all, got 274877906944 "
       "more"},
      {"runs { text: 349525 } runs { text: 1 }",
       "selection.token_runs.runs[1].text: makes more than 349525 tokens in all, got 1 more"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Refusal(c.runs), c.refusal) << c.runs;
}

}  // namespace
}  // namespace posenc
