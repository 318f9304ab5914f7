// Every line of t5.jsonl whose form is covered, within its tolerance.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
  return spec;
}

std::vector<int64_t> Integers(const Json& list) {
  std::vector<int64_t> integers;
  for (const Json& value : list.GetArray()) integers.push_back(value.GetInt64());
  return integers;
}

FilledTable Fill(const v1::EncodingSpec& spec, const v1::Selection& selection) {
  absl::StatusOr<FilledTable> table = FillTable(spec, selection, {});
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
  if (encoding == "t5_bias") return "the bias itself, from a table in the request";
  if (encoding == "wavlm_gated_bias") return "needs gate logits of the model";
  if (encoding == "t5_bucket_coordinates") return "buckets of given coordinates";
  const std::string order = Get(params, "bucket_order").GetString();
  if (order != "t5") return absl::StrCat("bucket order ", order);

  const v1::EncodingSpec spec = SpecOf(params);
  if (encoding == "t5_bucket_first_distance") {
    CheckFirstDistances(line, spec);
  } else if (encoding == "t5_bucket_matrix") {
    const FilledTable table = Fill(spec, SelectGrid(Get(params, "query_length").GetInt64(),
                                                    Get(params, "key_length").GetInt64(),
                                                    Get(params, "query_offset").GetInt64()));
    golden::ExpectValues(line, v1::DTYPE_I32, table.tensors.front().bytes);
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
