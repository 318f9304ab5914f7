// Encodings of batches of sequences, over random specs and batches, against slow twins:
// each element in the words of the code that models have it from, one at a time.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using Row = std::vector<int64_t>;

class SequenceTwinTest : public ::testing::Test {
 protected:
  int64_t Between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine_);
  }

  // [batch][length] numbers from `least` to `most`.
  std::vector<Row> Batch(int64_t batch, int64_t length, int64_t least, int64_t most) {
    std::vector<Row> rows(static_cast<size_t>(batch), Row(static_cast<size_t>(length)));
    for (Row& row : rows) {
      for (int64_t& value : row) value = Between(least, most);
    }
    return rows;
  }

  std::mt19937_64 engine_{20260101};
};

v1::Selection Select(const std::vector<Row>& rows, int64_t past_length = 0) {
  v1::Selection selection;
  v1::Sequences* sequences = selection.mutable_sequences();
  sequences->set_batch_size(static_cast<int64_t>(rows.size()));
  for (const Row& row : rows) {
    for (const int64_t value : row) sequences->add_values(value);
  }
  if (past_length > 0) sequences->set_past_length(past_length);
  return selection;
}

std::vector<int64_t> Integers(const std::string& spec, const v1::Selection& selection,
                              const std::string& format = "") {
  const std::vector<int32_t> values = FillOne(spec, selection, format).As<int32_t>();
  return {values.begin(), values.end()};
}

// OPTLearnedPositionalEmbedding: cumsum(mask) * mask - 1 + offset, then [past:].
TEST_F(SequenceTwinTest, MaskedPositions) {
  for (int round = 0; round < 200; ++round) {
    const int64_t length = Between(1, 9);
    const int64_t past = Between(0, length - 1);
    const int64_t offset = Between(1, 4);
    const std::vector<Row> masks = Batch(Between(1, 3), length, 0, 1);
    std::vector<int64_t> expected;
    for (const Row& mask : masks) {
      int64_t sum = 0;
      for (int64_t token = 0; token < length; ++token) {
        const int64_t attended = mask[static_cast<size_t>(token)];
        sum += attended;
        if (token >= past) expected.push_back(sum * attended - 1 + offset);
      }
    }
    EXPECT_EQ(Integers(absl::StrCat("position_ids { rule: POSITION_ID_RULE_MASKED offset: ", offset,
                                    " }"),
                       Select(masks, past)),
              expected);
  }
}

// generate(): position_ids = cumsum(mask) - 1, masked_fill(mask == 0, pad_position).
TEST_F(SequenceTwinTest, GeneratedPositions) {
  for (int round = 0; round < 200; ++round) {
    const std::vector<Row> masks = Batch(Between(1, 3), Between(1, 9), 0, 1);
    const int64_t pad = Between(0, 1);
    std::vector<int64_t> expected;
    for (const Row& mask : masks) {
      int64_t sum = 0;
      for (const int64_t attended : mask) {
        sum += attended;
        expected.push_back(attended == 0 ? pad : sum - 1);
      }
    }
    EXPECT_EQ(Integers(absl::StrCat("position_ids { rule: POSITION_ID_RULE_GENERATE "
                                    "pad_position: ",
                                    pad, " }"),
                       Select(masks)),
              expected);
  }
}

// create_position_ids_from_input_ids: (cumsum(ids != pad) + past) * (ids != pad) + pad.
TEST_F(SequenceTwinTest, PositionsOfTokensThatAreNotPadding) {
  for (int round = 0; round < 200; ++round) {
    const int64_t pad = Between(0, 3);
    const int64_t past = Between(0, 5);
    const std::vector<Row> tokens = Batch(Between(1, 3), Between(1, 9), 0, 4);
    std::vector<int64_t> expected;
    for (const Row& row : tokens) {
      int64_t sum = 0;
      for (const int64_t token : row) {
        sum += token != pad;
        expected.push_back((sum + past) * (token != pad) + pad);
      }
    }
    EXPECT_EQ(Integers(absl::StrCat("position_ids { rule: POSITION_ID_RULE_NON_PADDING "
                                    "padding_index: ",
                                    pad, " }"),
                       Select(tokens, past)),
              expected);
  }
}

// SASRec in PyTorch: tile(arange(1, length + 1)) * (items != 0).
TEST_F(SequenceTwinTest, PositionsFromOne) {
  for (int round = 0; round < 100; ++round) {
    const std::vector<Row> items = Batch(Between(1, 3), Between(1, 9), 0, 2);
    std::vector<int64_t> expected;
    for (const Row& row : items) {
      int64_t index = 0;
      for (const int64_t item : row) expected.push_back(++index * (item != 0));
    }
    EXPECT_EQ(Integers("position_ids { rule: POSITION_ID_RULE_INDEX_FROM_ONE }", Select(items)),
              expected);
  }
}

// TiSASRec: min(|t_i - t_j|, span), padding at time 0 like any other.
TEST_F(SequenceTwinTest, IntervalsOfTime) {
  for (int round = 0; round < 100; ++round) {
    const int64_t span = Between(1, 300);
    const std::vector<Row> times = Batch(Between(1, 2), Between(1, 7), 0, 500);
    std::vector<int64_t> expected;
    for (const Row& row : times) {
      for (const int64_t query : row) {
        for (const int64_t key : row) expected.push_back(std::min(std::abs(query - key), span));
      }
    }
    EXPECT_EQ(Integers(absl::StrCat("time_intervals { time_span: ", span, " }"), Select(times),
                       "layout: LAYOUT_TIME_INTERVALS"),
              expected);
  }
}

// cleanAndsort: the least gap between neighbours that is not 0 is a unit (1 if there is
// none), times are round(t / unit) from the first on, halves to even, and begin at 1.
TEST_F(SequenceTwinTest, TimesOfAUserInUnitsOfTheirLeastGap) {
  for (int round = 0; round < 200; ++round) {
    Row times = Batch(1, Between(1, 8), 0, 60).front();
    std::sort(times.begin(), times.end());
    int64_t unit = 0;
    for (size_t i = 1; i < times.size(); ++i) {
      const int64_t gap = times[i] - times[i - 1];
      if (gap > 0 && (unit == 0 || gap < unit)) unit = gap;
    }
    if (unit == 0) unit = 1;
    std::vector<int64_t> expected;
    for (const int64_t time : times) {
      const double units = static_cast<double>(time - times.front()) / static_cast<double>(unit);
      expected.push_back(static_cast<int64_t>(std::nearbyint(units)) + 1);
    }
    EXPECT_EQ(Integers("time_intervals {}", Select({times}), "layout: LAYOUT_RELATIVE_TIMES"),
              expected)
        << absl::StrJoin(times, " ");
  }
}

// The bucket of a difference as HSTU's research code has it, logarithm and quotient in
// float32.
int64_t HstuBucket(int64_t difference, float divisor, int64_t num_buckets) {
  const auto seconds = static_cast<float>(std::max<int64_t>(std::abs(difference), 1));
  const float quotient = Log(Real(seconds)).ToFloat() / divisor;
  return std::min(static_cast<int64_t>(quotient), num_buckets);
}

TEST_F(SequenceTwinTest, HstuBucketsAndTheirBias) {
  for (int round = 0; round < 60; ++round) {
    const int64_t length = Between(1, 6);
    const int64_t num_buckets = Between(1, 64);
    const int64_t rows = Between(length, 8);
    const std::vector<Row> times = Batch(Between(1, 2), length, 0, int64_t{1} << Between(1, 40));
    v1::EncodingSpec spec = Spec(absl::StrCat("hstu_time_bias { num_buckets: ", num_buckets, " }"));
    v1::HstuTimeBiasSpec* hstu = spec.mutable_hstu_time_bias();
    hstu->mutable_position_table()->add_shape(2 * rows - 1);
    hstu->mutable_time_table()->add_shape(num_buckets + 1);
    for (int64_t i = 0; i < 2 * rows - 1; ++i) {
      hstu->mutable_position_table()->add_values(static_cast<float>(Between(-9, 9)) / 8);
    }
    for (int64_t i = 0; i <= num_buckets; ++i) {
      hstu->mutable_time_table()->add_values(static_cast<float>(Between(-9, 9)) / 8);
    }
    std::vector<int64_t> buckets;
    std::vector<float> biases;
    for (const Row& row : times) {
      for (int64_t i = 0; i < length; ++i) {
        const int64_t next = row[static_cast<size_t>(std::min(i + 1, length - 1))];
        for (int64_t j = 0; j < length; ++j) {
          const int64_t bucket =
              HstuBucket(next - row[static_cast<size_t>(j)], 0.301f, num_buckets);
          buckets.push_back(bucket);
          biases.push_back(hstu->position_table().values(static_cast<int>(rows - 1 + j - i)) +
                           hstu->time_table().values(static_cast<int>(bucket)));
        }
      }
    }
    const auto got = FillTable(spec, Select(times), Format("layout: LAYOUT_TIME_BUCKETS"));
    ASSERT_TRUE(got.ok()) << got.status();
    const auto as_int = got->tensors.front().As<int32_t>();
    EXPECT_EQ(std::vector<int64_t>(as_int.begin(), as_int.end()), buckets);
    const auto bias = FillTable(spec, Select(times), Format("layout: LAYOUT_BIAS"));
    ASSERT_TRUE(bias.ok()) << bias.status();
    EXPECT_EQ(bias->tensors.front().As<float>(), biases);
  }
}

// The nearest row of a square table: how many boundaries k / side lie at or below the
// fraction, by integers.
TEST_F(SequenceTwinTest, NearestRowsOfPatches) {
  for (int round = 0; round < 60; ++round) {
    const int64_t side = Between(1, 30);
    const int64_t height = Between(1, 12);
    const int64_t width = Between(1, 12);
    const auto bucket = [&](int64_t index, int64_t length) {
      int64_t count = 0;
      for (int64_t k = 1; k < side; ++k) count += k * length <= index * side;
      return count;
    };
    std::vector<int64_t> expected;
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        expected.push_back(bucket(y, height) * side + bucket(x, width));
      }
    }
    EXPECT_EQ(Integers(absl::StrCat("patch_positions { patches_per_side: ", side, " }"),
                       testing::Select(
                           absl::StrCat("patch_grid { height: ", height, " width: ", width, " }"))),
              expected);
  }
}

// pt_position: history + context - column, candidates at the end of the history, at most
// the last row; the context keeps its own columns.
TEST_F(SequenceTwinTest, HstuPositionsCountFromTheEnd) {
  for (int round = 0; round < 100; ++round) {
    const int64_t context = Between(0, 3);
    const int64_t length = Between(context + 1, 12);
    const int64_t rows = Between(1, 12);
    v1::Selection selection;
    v1::Sequences* sequences = selection.mutable_sequences();
    sequences->set_batch_size(2);
    sequences->set_length(length);
    std::vector<int64_t> expected;
    for (int b = 0; b < 2; ++b) {
      const int64_t tokens = Between(context, length);
      const int64_t targets = Between(0, tokens - context);
      sequences->add_lengths(tokens);
      sequences->add_num_targets(targets);
      const int64_t history = tokens - targets;
      for (int64_t column = 0; column < length; ++column) {
        const int64_t from_end = history + context - std::min(column, history);
        expected.push_back(column < context ? column : std::min(from_end, rows - 1));
      }
    }
    EXPECT_EQ(Integers(absl::StrCat("hstu_positions { contextual_length: ", context,
                                    " max_positions: ", rows, " }"),
                       selection),
              expected)
        << selection.ShortDebugString() << " context " << context << " rows " << rows;
  }
}

}  // namespace
}  // namespace posenc::testing
