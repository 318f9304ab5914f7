// Every line of t5.jsonl whose form is covered, within its tolerance.
#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

v1::EncodingSpec SpecOf(const Json& params) {
  v1::EncodingSpec spec;
  v1::T5BiasSpec* t5 = spec.mutable_t5();
  t5->set_num_buckets(Get(params, "num_buckets").GetInt64());
  t5->set_max_distance(Get(params, "max_distance").GetInt64());
  t5->set_bidirectional(Get(params, "bidirectional").GetBool());
  const absl::string_view order = Get(params, "bucket_order").GetString();
  EXPECT_TRUE(order == "t5" || order == "wavlm") << order;
  t5->set_bucket_order(order == "t5" ? v1::BUCKET_ORDER_T5 : v1::BUCKET_ORDER_WAVLM);
  if (Has(params, "table_hex")) {
    v1::FloatTable* table = t5->mutable_bias_table();
    for (const Json& length : Get(params, "table_shape").GetArray()) {
      table->add_shape(length.GetInt64());
    }
    EXPECT_STREQ(Get(params, "table_layout").GetString(), "[num_buckets, heads]");
    for (const uint64_t bits : golden::BitsOfHexList(params["table_hex"])) {
      table->add_values(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
  }
  return spec;
}

std::vector<int64_t> Integers(const Json& list) {
  std::vector<int64_t> integers;
  for (const Json& value : list.GetArray()) integers.push_back(value.GetInt64());
  return integers;
}

FilledTable Fill(const v1::EncodingSpec& spec, const v1::Selection& selection,
                 v1::Layout layout = v1::LAYOUT_BUCKETS) {
  v1::TensorFormat format;
  format.set_layout(layout);
  absl::StatusOr<FilledTable> table = FillTable(spec, selection, format);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *std::move(table) : FilledTable{};
}

// Buckets of any relative positions, from the grid with one query that has them all.
std::vector<uint64_t> BucketsOf(const v1::EncodingSpec& spec,
                                const std::vector<int64_t>& relative_positions) {
  const auto [first, last] = std::ranges::minmax(relative_positions);
  const int64_t offset = std::max<int64_t>(-first, 0);
  const FilledTable table =
      Fill(spec, SelectGrid(1, std::max<int64_t>(last, 0) + offset + 1, offset));
  const std::vector<int32_t> buckets = table.tensors.front().As<int32_t>();
  std::vector<uint64_t> bits;
  for (const int64_t position : relative_positions) {
    bits.push_back(static_cast<uint64_t>(buckets[static_cast<size_t>(position + offset)]));
  }
  return bits;
}

void CheckFirstDistances(const Json& line, const v1::EncodingSpec& spec) {
  const FilledTable table = Fill(spec, SelectGrid(0, 0));
  const auto& first_distance = table.description.bucket_first_distance();
  std::vector<uint64_t> bits;
  for (const int64_t bucket : Integers(Get(Get(line, "params"), "first_buckets"))) {
    bits.push_back(static_cast<uint64_t>(first_distance[static_cast<int>(bucket)]));
  }
  golden::ExpectBits(line, v1::DTYPE_I32, bits);
}

// Compares one line; a reason when its form is not covered.
std::optional<std::string> CheckLine(const Json& line) {
  const std::string encoding = Get(line, "encoding").GetString();
  const Json& params = Get(line, "params");
  // The gate is a function of the layer's hidden states: no positional encoding.
  if (encoding == "wavlm_gated_bias") return "needs activations of the model";

  const v1::EncodingSpec spec = SpecOf(params);
  if (encoding == "t5_bucket_first_distance") {
    CheckFirstDistances(line, spec);
  } else if (encoding == "t5_bucket_coordinates") {
    const FilledTable table = Fill(spec, SelectIds(Integers(Get(params, "coordinates"))));
    golden::ExpectValues(line, v1::DTYPE_I32, table.tensors.front().bytes);
  } else if (encoding == "t5_bucket_matrix" || encoding == "t5_bias") {
    const bool bias = encoding == "t5_bias";
    const FilledTable table = Fill(
        spec,
        SelectGrid(Get(params, "query_length").GetInt64(), Get(params, "key_length").GetInt64(),
                   Get(params, "query_offset").GetInt64()),
        bias ? v1::LAYOUT_BIAS : v1::LAYOUT_BUCKETS);
    golden::ExpectValues(line, bias ? v1::DTYPE_F32 : v1::DTYPE_I32, table.tensors.front().bytes);
  } else if (encoding == "t5_bucket") {
    std::vector<int64_t> relative_positions;
    if (Has(params, "relative_positions")) {
      relative_positions = Integers(Get(params, "relative_positions"));
    } else {
      for (int64_t r = Get(params, "first_relative_position").GetInt64();
           r <= Get(params, "last_relative_position").GetInt64(); ++r) {
        relative_positions.push_back(r);
      }
    }
    golden::ExpectBits(line, v1::DTYPE_I32, BucketsOf(spec, relative_positions));
  } else {
    ADD_FAILURE() << "unknown encoding " << encoding;
  }
  return std::nullopt;
}

TEST(T5GoldenTest, EveryCoveredLineWithinItsTolerance) {
  golden::NotCovered skipped;
  for (const auto& line : golden::ReadLines("t5.jsonl")) {
    SCOPED_TRACE(golden::Id(line));
    if (const auto reason = CheckLine(line)) skipped[golden::Id(line)] = *reason;
  }
  golden::ExpectNotYetCovered("t5.jsonl", skipped);
}

}  // namespace
}  // namespace posenc::testing
