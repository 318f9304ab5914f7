// Shared helpers, and the checks of intervals of time and functions of distance.
#include "tests/golden/relative_golden.h"

#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {

using golden::Get;
using golden::Json;

int64_t Int(const Json& params, const char* name) { return Get(params, name).GetInt64(); }

void Check(const Json& line, const v1::EncodingSpec& spec, const v1::Selection& selection,
           const std::string& format) {
  const absl::StatusOr<FilledTable> table = FillTable(spec, selection, Format(format));
  ASSERT_TRUE(table.ok()) << table.status();
  const FilledTensor& filled = table->tensors.front();
  golden::ExpectValues(line, filled.tensor.dtype, filled.bytes);
}

void Check(const Json& line, const std::string& spec, const v1::Selection& selection,
           const std::string& format) {
  Check(line, Spec(spec), selection, format);
}

// A table of the line's params, as a request carries it.
v1::FloatTable TableOf(const Json& params, const char* shape, const char* hex) {
  v1::FloatTable table;
  for (const Json& length : Get(params, shape).GetArray()) table.add_shape(length.GetInt64());
  for (const uint64_t bits : golden::BitsOfHexList(Get(params, hex))) {
    const auto word = static_cast<uint32_t>(bits);
    table.mutable_f32()->append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return table;
}

v1::Selection GridOf(const Json& params) {
  return SelectGrid(Int(params, "query_length"), Int(params, "key_length"),
                    golden::Has(params, "query_offset") ? Int(params, "query_offset") : 0);
}

namespace {

// Intervals of time ------------------------------------------------------------

v1::Selection SequenceOf(const Json& values) {
  v1::Selection selection;
  for (const Json& value : values.GetArray()) {
    selection.mutable_sequences()->add_values(value.GetInt64());
  }
  return selection;
}

void CheckTiSasRecMatrix(const Json& line, const Json& params) {
  Check(line, absl::StrCat("time_intervals { time_span: ", Int(params, "time_span"), " }"),
        SequenceOf(Get(params, "times")));
}

void CheckTiSasRecTimes(const Json& line, const Json& params) {
  Check(line, "time_intervals {}", SequenceOf(Get(params, "timestamps")),
        "layout: LAYOUT_RELATIVE_TIMES");
}

v1::EncodingSpec HstuSpec(const Json& params) {
  v1::EncodingSpec spec;
  spec.mutable_hstu_time_bias()->set_num_buckets(Int(params, "num_buckets"));
  spec.mutable_hstu_time_bias()->set_divisor(Get(params, "divisor").GetDouble());
  return spec;
}

void CheckHstuBuckets(const Json& line, const Json& params) {
  Check(line, HstuSpec(params), SequenceOf(Get(params, "timestamps")));
}

// A table of one dimension.
v1::FloatTable ListOf(const Json& params, const char* hex) {
  v1::FloatTable table;
  for (const uint64_t bits : golden::BitsOfHexList(Get(params, hex))) {
    table.add_values(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  table.add_shape(table.values_size());
  return table;
}

void CheckHstuBias(const Json& line, const Json& params) {
  v1::EncodingSpec spec = HstuSpec(params);
  *spec.mutable_hstu_time_bias()->mutable_position_table() = ListOf(params, "position_table_hex");
  *spec.mutable_hstu_time_bias()->mutable_time_table() = ListOf(params, "time_table_hex");
  Check(line, spec, SequenceOf(Get(params, "timestamps")), "layout: LAYOUT_BIAS");
}

// Two interactions: the first query's bucket is that of their difference.
void CheckHstuBucketPoints(const Json& line, const Json& params) {
  std::vector<uint64_t> bits;
  for (const Json& delta : Get(params, "time_deltas").GetArray()) {
    v1::Selection selection;
    selection.mutable_sequences()->add_values(0);
    selection.mutable_sequences()->add_values(delta.GetInt64());
    const auto table = FillTable(HstuSpec(params), selection, {});
    ASSERT_TRUE(table.ok()) << table.status();
    bits.push_back(static_cast<uint64_t>(table->tensors.front().As<int32_t>().front()));
  }
  golden::ExpectBits(line, v1::DTYPE_I32, bits);
}

void AddAll(const Json& values, google::protobuf::RepeatedField<int64_t>* to) {
  for (const Json& value : values.GetArray()) to->Add(value.GetInt64());
}

void CheckHstuProductionPositions(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::HstuPositionsSpec* positions = spec.mutable_hstu_positions();
  positions->set_max_positions(Int(params, "max_positions"));
  positions->set_contextual_length(Int(params, "contextual_length"));
  positions->set_interleave_targets(Get(params, "interleave_targets").GetBool());
  v1::Selection selection;
  v1::Sequences* sequences = selection.mutable_sequences();
  sequences->set_length(Int(params, "max_sequence_length"));
  AddAll(Get(params, "sequence_lengths"), sequences->mutable_lengths());
  if (golden::Has(params, "num_targets")) {
    AddAll(params["num_targets"], sequences->mutable_num_targets());
  }
  sequences->set_batch_size(sequences->lengths_size());
  Check(line, spec, selection);
}

void CheckHstuProductionTimes(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::HstuPositionsSpec* positions = spec.mutable_hstu_positions();
  positions->set_num_time_buckets(Int(params, "num_time_buckets"));
  positions->set_time_bucket_function(Get(params, "time_bucket_function") == "log"
                                          ? v1::TIME_BUCKET_FUNCTION_LOG
                                          : v1::TIME_BUCKET_FUNCTION_SQRT);
  positions->set_increment(Get(params, "increment").GetDouble());
  positions->set_divisor(Get(params, "divisor").GetDouble());
  v1::Selection selection;
  v1::Sequences* sequences = selection.mutable_sequences();
  for (const Json& row : Get(params, "timestamps").GetArray()) {
    AddAll(row, sequences->mutable_values());
  }
  AddAll(Get(params, "sequence_lengths"), sequences->mutable_lengths());
  sequences->set_batch_size(sequences->lengths_size());
  Check(line, spec, selection, "layout: LAYOUT_TIME_BUCKETS");
}

// Functions of distance --------------------------------------------------------

void CheckXposScale(const Json& line, const Json& params) {
  const int64_t offset = Int(params, "offset");
  const int64_t length = Int(params, "length");
  const auto table = FillTable(
      Spec(absl::StrCat("xpos_scale { head_dim: ", Int(params, "head_dim"), " scale_base: ",
                        Get(params, "scale_base").GetDouble(), " length: ", length + offset, " }")),
      SelectRange(offset, offset + length), {});
  ASSERT_TRUE(table.ok()) << table.status();
  golden::ExpectValues(line, v1::DTYPE_F32, table->tensors.front().bytes);
}

void CheckXposZeta(const Json& line, const Json& params) {
  Check(line, absl::StrCat("xpos_scale { head_dim: ", Int(params, "head_dim"), " }"), {},
        "layout: LAYOUT_XPOS_ZETA");
}

void CheckRetnetDecay(const Json& line, const Json& params) {
  Check(line, absl::StrCat("retnet_decay { num_heads: ", Int(params, "heads"), " }"),
        SelectGrid(Int(params, "length"), Int(params, "length")));
}

}  // namespace

const std::map<std::string, golden::CheckLine>& IntervalChecks() {
  static const std::map<std::string, golden::CheckLine> checks = {
      {"tisasrec_time_matrix", CheckTiSasRecMatrix},
      {"tisasrec_relative_times", CheckTiSasRecTimes},
      {"hstu_time_bucket", CheckHstuBuckets},
      {"hstu_time_bucket_points", CheckHstuBucketPoints},
      {"hstu_bias", CheckHstuBias},
      {"hstu_production_position", CheckHstuProductionPositions},
      {"hstu_production_time_bucket", CheckHstuProductionTimes},
      {"xpos_scale", CheckXposScale},
      {"xpos_zeta", CheckXposZeta},
      {"retnet_decay", CheckRetnetDecay},
  };
  return checks;
}

}  // namespace posenc::testing
