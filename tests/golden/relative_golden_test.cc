// Every line of relative.jsonl whose form is covered, within its tolerance.
#include "tests/golden/relative_golden.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Json;

// Distance indexes -------------------------------------------------------------

void CheckShaw(const Json& line, const Json& params) {
  Check(line, absl::StrCat("relative_index { clipped { left: ", Int(params, "clip"), " } }"),
        GridOf(params));
}

void CheckBertRelativeKey(const Json& line, const Json& params) {
  Check(line,
        absl::StrCat("relative_index { unclipped { max_position_embeddings: ",
                     Int(params, "max_position_embeddings"), " } }"),
        GridOf(params));
}

void CheckClippedAsymmetric(const Json& line, const Json& params) {
  Check(line,
        absl::StrCat("relative_index { clipped { left: ", Int(params, "left"),
                     " right: ", Int(params, "right"), " } }"),
        GridOf(params));
}

void CheckHstuPositionIndex(const Json& line, const Json& params) {
  const int64_t n = Int(params, "max_sequence_length");
  Check(line,
        absl::StrCat("relative_index { unclipped { max_position_embeddings: ", n,
                     " direction: DISTANCE_DIRECTION_KEY_MINUS_QUERY } }"),
        SelectGrid(n, n));
}

// -1 is "none" in the config: no buckets, and the 512 positions of the model.
std::string DebertaSpec(const Json& params) {
  const int64_t buckets = std::max<int64_t>(Int(params, "position_buckets"), 0);
  const int64_t positions = Int(params, "max_relative_positions");
  return absl::StrCat("relative_index { deberta { position_buckets: ", buckets,
                      positions > 0 ? absl::StrCat(" max_relative_positions: ", positions) : "",
                      Get(params, "clamp") == "hf" ? " clamp: DEBERTA_CLAMP_HUGGING_FACE"
                                                   : " clamp: DEBERTA_CLAMP_ORIGINAL",
                      " } }");
}

// Lines with the values at query - key = first ... last, which are those of the
// vector from its other end.
void CheckDebertaVector(const Json& line, const Json& params, const std::string& layout) {
  const int64_t first = Int(params, "first_relative_position");
  const int64_t last = Int(params, "last_relative_position");
  const int64_t offset = std::max<int64_t>(first, 0);
  const FilledTensor filled =
      FillOne(DebertaSpec(params), SelectGrid(last - offset + 1, offset - first + 1, offset),
              absl::StrCat("layout: ", layout));
  std::vector<uint64_t> bits;
  for (const int32_t value : filled.As<int32_t>()) bits.push_back(static_cast<uint32_t>(value));
  std::reverse(bits.begin(), bits.end());
  golden::ExpectBits(line, filled.tensor.dtype, bits);
}

void CheckDebertaBuckets(const Json& line, const Json& params) {
  CheckDebertaVector(line, params, "LAYOUT_BUCKET_VECTOR");
}

void CheckDebertaIndex(const Json& line, const Json& params) {
  CheckDebertaVector(line, params, "LAYOUT_RELATIVE_INDEX_VECTOR");
}

void CheckDebertaMatrix(const Json& line, const Json& params) {
  Check(line, DebertaSpec(params), GridOf(params), "layout: LAYOUT_BUCKETS");
}

void CheckDebertaV1(const Json& line, const Json& params) {
  Check(line,
        absl::StrCat("relative_index { deberta_v1 { max_relative_positions: ",
                     Int(params, "max_relative_positions"), " } }"),
        GridOf(params));
}

// Windows ----------------------------------------------------------------------

void CheckWindowIndex(const Json& line, const Json& params) {
  Check(line,
        absl::StrCat("window { window_height: ", Int(params, "window_height"),
                     " window_width: ", Int(params, "window_width"),
                     golden::Has(params, "class_token") ? " class_token: true" : "", " }"),
        {});
}

void CheckWindowBias(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::WindowSpec* window = spec.mutable_window();
  window->set_window_height(Int(params, "window_height"));
  window->set_window_width(Int(params, "window_width"));
  *window->mutable_bias_table() = TableOf(params, "table_shape", "table_hex");
  Check(line, spec, {}, "layout: LAYOUT_BIAS");
}

void CheckSwinV2Coordinates(const Json& line, const Json& params) {
  Check(line,
        absl::StrCat("window { window_height: ", Int(params, "window_height"),
                     " window_width: ", Int(params, "window_width"),
                     " pretrained_window_height: ", Int(params, "pretrained_window_height"),
                     " pretrained_window_width: ", Int(params, "pretrained_window_width"), " }"),
        {}, "layout: LAYOUT_RELATIVE_COORDINATES");
}

// LongT5 -----------------------------------------------------------------------

// Of one sequence, as the lines have it.
v1::Selection SequenceMask(const Json& params) {
  v1::Selection selection;
  v1::TokenMask* mask = selection.mutable_token_mask();
  if (golden::Has(params, "attention_mask")) {
    for (const Json& token : params["attention_mask"].GetArray()) {
      mask->mutable_valid()->push_back(static_cast<char>(token.GetInt()));
    }
  } else {
    EXPECT_STREQ(Get(params, "attention_mask_rule").GetString(), "all ones");
    mask->mutable_valid()->assign(static_cast<size_t>(Int(params, "attention_mask_length")), 1);
  }
  mask->set_height(1);
  mask->set_width(static_cast<int64_t>(mask->valid().size()));
  return selection;
}

void CheckLongT5Global(const Json& line, const Json& params) {
  const std::map<std::string, std::string> layouts = {
      {"longt5_global_block_ids", "GLOBAL_BLOCK_IDS"},
      {"longt5_global_segment_ids", "GLOBAL_SEGMENT_IDS"},
      {"longt5_side_relative", "RELATIVE_POSITION"},
      {"longt5_side_bucket", "BUCKETS"}};
  Check(line, absl::StrCat("t5 { global_block_size: ", Int(params, "global_block_size"), " }"),
        SequenceMask(params),
        absl::StrCat("layout: LAYOUT_", layouts.at(Get(line, "encoding").GetString())));
}

// A block of queries and three of keys, the one before it first.
void CheckLongT5Local(const Json& line, const Json& params) {
  const int64_t block = Int(params, "block_length");
  const v1::Selection grid = SelectGrid(block, 3 * block, block);
  if (!golden::Has(params, "table_hex")) {
    return Check(line, "t5 {}", grid, "layout: LAYOUT_RELATIVE_POSITION");
  }
  v1::EncodingSpec spec;
  *spec.mutable_t5()->mutable_bias_table() = TableOf(params, "table_shape", "table_hex");
  Check(line, spec, grid, "layout: LAYOUT_BIAS");
}

// The local mask: in block b, query i is token b * block + i, and the keys are those
// of the blocks b - 1 to b + 1; what lies outside the sequence is padding.
void CheckLongT5LocalMask(const Json& line, const Json& params) {
  const int64_t block = Int(params, "block_length");
  const auto& mask = Get(params, "attention_mask").GetArray();
  const auto length = static_cast<int64_t>(mask.Size());
  const v1::EncodingSpec spec =
      Spec(absl::StrCat("mask { rule { all_of { rules { window { left: ", block - 1,
                        " } } rules { padding {} } rules { query_padding {} } } } }"));
  std::vector<uint64_t> bits;
  for (int64_t first = -block; first + block < length; first += block) {
    v1::Selection selection;
    v1::TokenGrid* tokens = selection.mutable_token_grid();
    *tokens->mutable_attention_grid() = SelectGrid(block, 3 * block, block).attention_grid();
    for (int64_t token = first; token < first + 3 * block; ++token) {
      const bool inside = token >= 0 && token < length;
      tokens->add_padding_mask(inside ? mask[static_cast<rapidjson::SizeType>(token)].GetInt() : 0);
    }
    const auto table = FillTable(spec, selection, {});
    ASSERT_TRUE(table.ok()) << table.status();
    for (const uint8_t allowed : table->tensors.front().As<uint8_t>()) bits.push_back(allowed);
  }
  golden::ExpectBits(line, v1::DTYPE_I32, bits);
}

void CheckT5Bias(const Json& line, const Json& params) {
  ASSERT_STREQ(Get(params, "table_layout").GetString(), "[num_buckets, heads]");
  v1::EncodingSpec spec;
  v1::T5BiasSpec* t5 = spec.mutable_t5();
  t5->set_num_buckets(Int(params, "num_buckets"));
  t5->set_max_distance(Int(params, "max_distance"));
  t5->set_bidirectional(Get(params, "bidirectional").GetBool());
  *t5->mutable_bias_table() = TableOf(params, "table_shape", "table_hex");
  Check(line, spec, GridOf(params), "layout: LAYOUT_BIAS");
}

const std::map<std::string, golden::CheckLine>& Checks() {
  static const std::map<std::string, golden::CheckLine> checks = [] {
    std::map<std::string, golden::CheckLine> all = IntervalChecks();
    all.insert({
        {"shaw_relative", CheckShaw},
        {"bert_relative_key", CheckBertRelativeKey},
        {"clipped_relative_asymmetric", CheckClippedAsymmetric},
        {"deberta_log_bucket", CheckDebertaBuckets},
        {"deberta_attention_index", CheckDebertaIndex},
        {"deberta_relative_position", CheckDebertaMatrix},
        {"deberta_v1_attention_index", CheckDebertaV1},
        {"hstu_position_index", CheckHstuPositionIndex},
        {"swin_relative_position_index", CheckWindowIndex},
        {"beit_relative_position_index", CheckWindowIndex},
        {"swin_relative_bias", CheckWindowBias},
        {"swinv2_log_coordinates", CheckSwinV2Coordinates},
        {"longt5_global_block_ids", CheckLongT5Global},
        {"longt5_global_segment_ids", CheckLongT5Global},
        {"longt5_side_relative", CheckLongT5Global},
        {"longt5_side_bucket", CheckLongT5Global},
        {"longt5_local_relative", CheckLongT5Local},
        {"longt5_local_bias", CheckLongT5Local},
        {"longt5_local_mask", CheckLongT5LocalMask},
        {"t5_bias", CheckT5Bias},
    });
    return all;
  }();
  return checks;
}

TEST(RelativeGoldenTest, EveryCoveredLineWithinItsTolerance) {
  golden::CheckLines("relative.jsonl", Checks());
}

}  // namespace
}  // namespace posenc::testing
