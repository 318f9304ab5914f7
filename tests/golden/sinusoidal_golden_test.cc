// Every line of sinusoidal.jsonl whose form is covered, within its tolerance.
//
// A line of profile f32 is what torch gave; its twin f32_correctly_rounded is the
// same operation order with each function correctly rounded: ARITHMETIC_FLOAT32,
// bit for bit. Profiles f64 and exact are ARITHMETIC_EXACT.
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

std::vector<int64_t> Integers(const Json& list) {
  std::vector<int64_t> integers;
  for (const Json& value : list.GetArray()) integers.push_back(value.GetInt64());
  return integers;
}

// The table rows of token ids, as fairseq and its descendants number them: a pad
// looks up padding_index, the others count up from padding_index + 1.
std::vector<int64_t> RobertaPositions(const Json& params) {
  const int64_t padding = Get(params, "padding_index").GetInt64();
  std::vector<int64_t> positions;
  for (const Json& sequence : Get(params, "input_ids").GetArray()) {
    int64_t tokens = Get(params, "past_length").GetInt64();
    for (const int64_t id : Integers(sequence)) {
      positions.push_back(id == padding ? padding : padding + ++tokens);
    }
  }
  return positions;
}

v1::Selection SelectionOf(const Json& params) {
  if (Has(params, "positions")) return SelectIds(Integers(params["positions"]));
  if (Has(params, "rows")) return SelectIds(Integers(params["rows"]));
  if (Has(params, "input_ids")) return SelectIds(RobertaPositions(params));
  const int64_t first = Get(params, "first_position").GetInt64();
  return SelectRange(first, first + Get(params, "position_count").GetInt64());
}

v1::SinusoidalLayout LayoutOf(const std::string& name) {
  if (name == "half_sin_cos") return v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS;
  if (name == "half_cos_sin") return v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN;
  EXPECT_EQ(name, "interleaved");
  return v1::SINUSOIDAL_LAYOUT_INTERLEAVED;
}

// Sets the spec's fields from params; a reason when they are not covered.
std::optional<std::string> SetSpec(const Json& params, v1::SinusoidalSpec* spec) {
  spec->set_d_model(Get(params, "dim").GetInt64());
  // A list of frequencies alone has no layout; t2t's is a half split.
  spec->set_layout(Has(params, "layout") ? LayoutOf(params["layout"].GetString())
                                         : v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS);
  spec->set_frequency_rule(absl::string_view(Get(params, "frequency_rule").GetString()) == "t2t"
                               ? v1::FREQUENCY_RULE_T2T
                               : v1::FREQUENCY_RULE_THETA);
  if (Has(params, "min_timescale")) {
    if (params["min_timescale"].GetDouble() != 1.0) return "min_timescale";
    if (spec->d_model() < 4) return "a single frequency with the t2t guard";
    spec->set_base(Get(params, "max_timescale").GetDouble());
  } else {
    spec->set_base(Get(params, "base").GetDouble());
  }
  if (Has(params, "padding_index")) spec->set_padding_row(params["padding_index"].GetInt64());
  if (Has(params, "odd_dim_rule")) {
    spec->set_odd_dim_rule(absl::string_view(params["odd_dim_rule"].GetString()) ==
                                   "zero_last_column"
                               ? v1::ODD_DIM_RULE_ZERO_LAST_COLUMN
                               : v1::ODD_DIM_RULE_EXTRA_SIN_COLUMN);
  }
  const std::string profile = Get(params, "profile").GetString();
  spec->set_arithmetic(profile == "f64" || profile == "exact" ? v1::ARITHMETIC_EXACT
                                                              : v1::ARITHMETIC_FLOAT32);
  if (Has(params, "frequency_expression") &&
      !absl::StartsWith(params["frequency_expression"].GetString(), "exp(")) {
    return absl::StrCat("frequency expression ", params["frequency_expression"].GetString());
  }
  return std::nullopt;
}

void CheckFrequencies(const Json& line, const v1::DescribeTableResponse& description) {
  std::vector<uint64_t> bits;
  for (const double w : description.inv_freq()) {
    bits.push_back(std::bit_cast<uint32_t>(static_cast<float>(w)));
  }
  golden::ExpectBits(line, v1::DTYPE_F32, bits);
}

// Compares one line; a reason when its form is not covered.
std::optional<std::string> CheckLine(const Json& line) {
  const std::string encoding = Get(line, "encoding").GetString();
  const Json& params = Get(line, "params");
  const bool frequencies_only = encoding == "sinusoidal_frequencies";
  if (encoding != "sinusoidal" && !frequencies_only) return encoding;
  const std::string dtype = Get(line, "dtype").GetString();
  if (dtype != "f32" && absl::string_view(params["profile"].GetString()) == "model_dtype") {
    return "every operation in the model's 16-bit dtype";
  }
  v1::EncodingSpec spec;
  if (auto reason = SetSpec(params, spec.mutable_sinusoidal())) return reason;
  v1::TensorFormat format;
  format.set_dtype(golden::DTypeOf(dtype));
  const v1::Selection selection = frequencies_only ? SelectRange(0, 0) : SelectionOf(params);
  const absl::StatusOr<FilledTable> table = FillTable(spec, selection, format);
  EXPECT_TRUE(table.ok()) << table.status();
  if (!table.ok()) return std::nullopt;
  if (frequencies_only) {
    CheckFrequencies(line, table->description);
  } else {
    golden::ExpectValues(line, format.dtype(), table->tensors.front().bytes);
  }
  return std::nullopt;
}

TEST(SinusoidalGoldenTest, EveryCoveredLineWithinItsTolerance) {
  golden::NotCovered skipped;
  for (const auto& line : golden::ReadLines("sinusoidal.jsonl")) {
    SCOPED_TRACE(golden::Id(line));
    if (const auto reason = CheckLine(line)) skipped[golden::Id(line)] = *reason;
  }
  golden::ExpectNotYetCovered("sinusoidal.jsonl", skipped);
}

}  // namespace
}  // namespace posenc::testing
