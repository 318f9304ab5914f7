// Every line of masks.jsonl, within its tolerance.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

int64_t Int(const Json& params, const char* name) { return Get(params, name).GetInt64(); }

std::string AllOf(const std::string& a, const std::string& b) {
  return absl::StrCat("all_of { rules { ", a, " } rules { ", b, " } }");
}

std::string AnyOf(const std::string& a, const std::string& b) {
  return absl::StrCat("any_of { rules { ", a, " } rules { ", b, " } }");
}

// The composition that the line's rule is.
std::string RuleOf(const Json& params) {
  const std::string causal = "causal {}";
  const std::string rule = Get(params, "rule").GetString();
  if (rule == "causal") {
    return Has(params, "padding_mask") ? AllOf(causal, "padding {}") : causal;
  }
  if (rule == "sliding_window") {
    return absl::StrCat("sliding_window { window: ", Int(params, "window"), " }");
  }
  if (rule == "bidirectional_sliding_window") {
    return absl::StrCat("window { left: ", Int(params, "window"), " }");
  }
  if (rule == "chunked") {
    return AllOf(causal, absl::StrCat("chunked { length: ", Int(params, "chunk_size"),
                                      " left_padding: ", Int(params, "left_padding"), " }"));
  }
  if (rule == "prefix") {
    return AnyOf(causal, absl::StrCat("prefix { length: ", Int(params, "prefix_length"), " }"));
  }
  if (rule == "packed_causal") return AllOf(causal, "same_sequence {}");
  if (rule == "causal_or_same_block") return AnyOf(causal, "same_block {}");
  ADD_FAILURE() << "unknown rule " << rule;
  return "";
}

std::string List(const Json& params, const char* from, const char* to) {
  if (!Has(params, from)) return "";
  std::vector<int64_t> values;
  for (const Json& value : params[from].GetArray()) values.push_back(value.GetInt64());
  return absl::StrCat(" ", to, ": [", absl::StrJoin(values, ","), "]");
}

v1::Selection SelectionOf(const Json& params) {
  const std::string lists = absl::StrCat(List(params, "padding_mask", "padding_mask"),
                                         List(params, "position_ids", "packed_position_ids"),
                                         List(params, "block_ids", "block_ids"));
  const v1::Selection grid = SelectGrid(Int(params, "query_length"), Int(params, "key_length"),
                                        Int(params, "query_offset"));
  if (lists.empty()) return grid;
  v1::Selection selection = Select(absl::StrCat("token_grid {", lists, " }"));
  *selection.mutable_token_grid()->mutable_attention_grid() = grid.attention_grid();
  return selection;
}

std::string FillOf(const Json& params) {
  return Get(params, "fill") == "neg_inf" ? " fill: MASK_FILL_NEG_INF"
                                          : " fill: MASK_FILL_DTYPE_MIN";
}

std::string DTypeField(const Json& line) {
  return absl::StrCat("dtype: ", v1::DType_Name(golden::DTypeOf(Get(line, "dtype").GetString())),
                      " ");
}

std::vector<uint64_t> BooleanBits(const FilledTensor& mask) {
  std::vector<uint64_t> bits;
  for (const uint8_t allowed : mask.As<uint8_t>()) bits.push_back(allowed);
  return bits;
}

void CheckMask(const Json& line, const Json& params) {
  const std::string rule = absl::StrCat("rule { ", RuleOf(params), " }");
  if (Get(params, "output") == "additive") {
    const FilledTensor bias =
        FillOne(absl::StrCat("mask { ", rule, FillOf(params), " }"), SelectionOf(params),
                DTypeField(line) + "layout: LAYOUT_BIAS");
    return golden::ExpectValues(line, bias.tensor.dtype, bias.bytes);
  }
  const FilledTensor mask = FillOne(absl::StrCat("mask { ", rule, " }"), SelectionOf(params));
  EXPECT_EQ(mask.tensor.dtype, v1::DTYPE_BOOL);
  golden::ExpectBits(line, v1::DTYPE_I32, BooleanBits(mask));
}

void CheckMaskedBias(const Json& line, const Json& params) {
  ASSERT_STREQ(Get(params, "slope_rounding").GetString(), "press_f64");
  ASSERT_STREQ(Get(params, "form").GetString(), "relative_causal");
  const std::string spec =
      absl::StrCat("mask { rule { ", RuleOf(params), " }", FillOf(params),
                   " bias { alibi { num_heads: ", Int(params, "heads"),
                   " alibi_bias_max: ", Get(params, "bias_max").GetDouble(),
                   " slope_rounding: SLOPE_ROUNDING_PRESS form: ALIBI_FORM_RELATIVE_CAUSAL } } }");
  const FilledTensor bias =
      FillOne(spec, SelectionOf(params), DTypeField(line) + "layout: LAYOUT_BIAS");
  golden::ExpectValues(line, bias.tensor.dtype, bias.bytes);
}

// The sequence ids that packed positions become in the canonical selection.
void CheckPackedIds(const Json& line, const Json& params) {
  const int64_t length = Get(params, "position_ids").Size();
  v1::Selection selection = Select(
      absl::StrCat("token_grid {", List(params, "position_ids", "packed_position_ids"), " }"));
  *selection.mutable_token_grid()->mutable_attention_grid() =
      SelectGrid(length, length).attention_grid();
  const auto table = FillTable(Spec("mask { rule { same_sequence {} } }"), selection, {});
  ASSERT_TRUE(table.ok()) << table.status();
  std::vector<uint64_t> bits;
  for (const int64_t id : table->shape.selection.token_grid().sequence_ids()) {
    bits.push_back(static_cast<uint64_t>(id));
  }
  golden::ExpectBits(line, v1::DTYPE_I32, bits);
}

// How many keys each row sees, for the three meanings that a window has had.
void CheckWindowHistory(const Json& line, const Json& params) {
  const int64_t length = Int(params, "length");
  std::vector<uint64_t> counts;
  for (const char* history : {"CURRENT", "TRANSFORMERS_4_36", "TRANSFORMERS_4_39"}) {
    const FilledTensor mask =
        FillOne(absl::StrCat("mask { rule { sliding_window { window: ", Int(params, "window"),
                             " history: SLIDING_WINDOW_HISTORY_", history, " } } }"),
                SelectGrid(length, length));
    const std::vector<uint8_t> allowed = mask.As<uint8_t>();
    for (auto row = allowed.begin(); row != allowed.end(); row += length) {
      counts.push_back(static_cast<uint64_t>(std::count(row, row + length, 1)));
    }
  }
  golden::ExpectBits(line, v1::DTYPE_I32, counts);
}

const std::map<std::string, golden::CheckLine>& Checks() {
  static const std::map<std::string, golden::CheckLine> checks = {
      {"attention_mask", CheckMask},
      {"masked_bias", CheckMaskedBias},
      {"packed_sequence_ids", CheckPackedIds},
      {"sliding_window_key_counts", CheckWindowHistory},
  };
  return checks;
}

TEST(MasksGoldenTest, EveryLineWithinItsTolerance) { golden::CheckLines("masks.jsonl", Checks()); }

}  // namespace
}  // namespace posenc::testing
