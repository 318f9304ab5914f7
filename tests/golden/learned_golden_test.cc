// Every line of learned.jsonl and beit_stretch.jsonl, within its tolerance.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/numeric/dtype.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

int64_t Int(const Json& params, const char* name) { return Get(params, name).GetInt64(); }

std::string Text(const Json& params, const char* name) { return Get(params, name).GetString(); }

FilledTable Fill(const v1::EncodingSpec& spec, const v1::Selection& selection,
                 const std::string& format = "") {
  absl::StatusOr<FilledTable> table = FillTable(spec, selection, Format(format));
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *std::move(table) : FilledTable{};
}

void Append(const FilledTensor& from, FilledTensor* to) {
  to->tensor = from.tensor;
  to->bytes.insert(to->bytes.end(), from.bytes.begin(), from.bytes.end());
}

// Row ids ----------------------------------------------------------------------

// A list of lists of numbers, as sequences.
v1::Selection SequencesOf(const Json& rows) {
  v1::Selection selection;
  v1::Sequences* sequences = selection.mutable_sequences();
  sequences->set_batch_size(rows.Size());
  for (const Json& row : rows.GetArray()) {
    for (const Json& value : row.GetArray()) sequences->add_values(value.GetInt64());
  }
  return selection;
}

v1::PositionIdRule SequenceRule(const std::string& rule) {
  if (rule == "opt") return v1::POSITION_ID_RULE_MASKED;
  if (rule == "generate") return v1::POSITION_ID_RULE_GENERATE;
  if (rule == "roberta") return v1::POSITION_ID_RULE_NON_PADDING;
  EXPECT_EQ(rule, "sasrec_pytorch");
  return v1::POSITION_ID_RULE_INDEX_FROM_ONE;
}

const char* InputOf(v1::PositionIdRule rule) {
  switch (rule) {
    case v1::POSITION_ID_RULE_NON_PADDING:
      return "input_ids";
    case v1::POSITION_ID_RULE_INDEX_FROM_ONE:
      return "item_ids";
    default:
      return "attention_mask";
  }
}

void CheckSequenceIds(const Json& line, const Json& params, v1::PositionIdRule rule) {
  v1::EncodingSpec spec;
  v1::PositionIdsSpec* ids = spec.mutable_position_ids();
  ids->set_rule(rule);
  if (Has(params, "offset")) ids->set_offset(Int(params, "offset"));
  if (Has(params, "pad_position")) ids->set_pad_position(Int(params, "pad_position"));
  if (Has(params, "padding_index")) ids->set_padding_index(Int(params, "padding_index"));
  if (Has(params, "padding_item")) ids->set_padding_index(Int(params, "padding_item"));
  v1::Selection selection = SequencesOf(Get(params, InputOf(rule)));
  if (Has(params, "past_length")) {
    selection.mutable_sequences()->set_past_length(Int(params, "past_length"));
  }
  const FilledTable table = Fill(spec, selection);
  golden::ExpectValues(line, v1::DTYPE_I32, table.tensors.front().bytes);
}

void CheckPositionIds(const Json& line, const Json& params) {
  const std::string rule = Text(params, "rule");
  if (rule != "plain" && rule != "bart" && rule != "roberta_inputs_embeds") {
    return CheckSequenceIds(line, params, SequenceRule(rule));
  }
  const int64_t offset = rule == "roberta_inputs_embeds" ? Int(params, "padding_index") + 1
                         : rule == "bart"                ? Int(params, "offset")
                                                         : 0;
  const int64_t past = Has(params, "past_length") ? Int(params, "past_length") : 0;
  const FilledTable table = Fill(Spec(absl::StrCat("position_ids { offset: ", offset, " }")),
                                 SelectRange(past, past + Int(params, "length")));
  golden::ExpectValues(line, v1::DTYPE_I32, table.tensors.front().bytes);
}

void CheckCapacity(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::PositionIdsSpec* ids = spec.mutable_position_ids();
  ids->set_table_rows(Int(params, "table_rows"));
  const std::string rule = Text(params, "rule");
  if (rule == "roberta") {
    ids->set_rule(v1::POSITION_ID_RULE_NON_PADDING);
    ids->set_padding_index(Int(params, "padding_index"));
  } else {
    ids->set_offset(rule == "offset2" ? 2 : 0);
  }
  const auto canonical = Canonicalize(spec);
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  v1::DescribeTableResponse description;
  FamilyOf(canonical->proto()).MakePlan(*canonical)->Describe(&description);
  golden::ExpectBits(line, v1::DTYPE_I32,
                     std::vector<uint64_t>{static_cast<uint64_t>(description.usable_positions())});
}

// Rows of a vision table -------------------------------------------------------

v1::Selection SelectPatches(int64_t height, int64_t width, int64_t frames = 1) {
  return Select(
      absl::StrCat("patch_grid { frames: ", frames, " height: ", height, " width: ", width, " }"));
}

void CheckNearest(const Json& line, const Json& params) {
  const v1::EncodingSpec spec = Spec(
      absl::StrCat("patch_positions { patches_per_side: ", Int(params, "patches_per_side"), " }"));
  FilledTensor all;
  for (const Json& size : Get(params, "target_sizes").GetArray()) {
    Append(Fill(spec, SelectPatches(size[0].GetInt64(), size[1].GetInt64())).tensors.front(), &all);
  }
  golden::ExpectValues(line, v1::DTYPE_I32, all.bytes);
}

FilledTable TapsOf(const Json& params) {
  const Json& size = Get(params, "grid_thw")[0];
  return Fill(Spec(absl::StrCat("patch_positions { patches_per_side: ",
                                Int(params, "grid_per_side"), " kernel: RESAMPLE_KERNEL_",
                                Text(params, "kernel") == "bicubic" ? "BICUBIC" : "BILINEAR",
                                " align_corners: ", Get(params, "align_corners").GetBool(),
                                " spatial_merge_size: ", Int(params, "spatial_merge_size"), " }")),
              SelectPatches(size[1].GetInt64(), size[2].GetInt64(), size[0].GetInt64()));
}

void CheckTapIndices(const Json& line, const Json& params) {
  golden::ExpectValues(line, v1::DTYPE_I32, TapsOf(params).tensors[0].bytes);
}

void CheckTapWeights(const Json& line, const Json& params) {
  golden::ExpectValues(line, v1::DTYPE_F32, TapsOf(params).tensors[1].bytes);
}

// Resampling -------------------------------------------------------------------

// The line's table as a request carries it: bfloat16 widened.
v1::FloatTable TableOf(const Json& params, const char* hex) {
  v1::FloatTable table;
  for (const Json& length : Get(params, "table_shape").GetArray()) {
    table.add_shape(length.GetInt64());
  }
  const bool is_bf16 = Has(params, "table_dtype") && Text(params, "table_dtype") == "bf16";
  for (const uint64_t bits : golden::BitsOfHexList(Get(params, hex))) {
    table.add_values(is_bf16 ? Bf16ToFloat(static_cast<uint16_t>(bits))
                             : std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return table;
}

v1::ResampleKernel KernelOf(const Json& params) {
  return Text(params, "kernel") == "bicubic" ? v1::RESAMPLE_KERNEL_BICUBIC
                                             : v1::RESAMPLE_KERNEL_BILINEAR;
}

v1::EncodingSpec ResampleSpec(const Json& params) {
  v1::EncodingSpec spec;
  v1::TableResampleSpec* resample = spec.mutable_table_resample();
  *resample->mutable_table() = TableOf(params, "input_hex");
  resample->set_prefix_rows(Int(params, "prefix_rows"));
  resample->set_grid_height(Int(params, "grid_height"));
  resample->set_grid_width(Int(params, "grid_width"));
  resample->set_kernel(KernelOf(params));
  resample->set_antialias(Get(params, "antialias").GetBool());
  resample->set_align_corners(Get(params, "align_corners").GetBool());
  if (Text(params, "scale_mode") == "scale_factor_plus_0.1") resample->set_scale_offset(0.1);
  if (Has(params, "max_length")) resample->set_pad_to_rows(Int(params, "max_length"));
  return spec;
}

void CheckResample(const Json& line, const Json& params) {
  const std::string dtype =
      absl::StrCat("dtype: ", v1::DType_Name(golden::DTypeOf(Text(line, "dtype"))));
  FilledTensor all;
  if (Has(params, "spatial_shapes")) {
    for (const Json& size : Get(params, "spatial_shapes").GetArray()) {
      Append(
          Fill(ResampleSpec(params), SelectPatches(size[0].GetInt64(), size[1].GetInt64()), dtype)
              .tensors.front(),
          &all);
    }
  } else {
    all = Fill(ResampleSpec(params),
               SelectPatches(Int(params, "new_height"), Int(params, "new_width")), dtype)
              .tensors.front();
  }
  golden::ExpectValues(line, all.tensor.dtype, all.bytes);
}

// The patch rows and the square that they make, as the canonical spec has them.
void CheckPatchGrid(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::TableResampleSpec* resample = spec.mutable_table_resample();
  resample->set_prefix_rows(Int(params, "prefix_rows"));
  resample->mutable_table()->add_shape(Int(params, "table_rows"));
  resample->mutable_table()->add_shape(1);
  resample->mutable_table()->mutable_f32()->resize(
      static_cast<size_t>(4 * Int(params, "table_rows")));
  const auto canonical = Canonicalize(spec);
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  const auto height = static_cast<uint64_t>(canonical->proto().table_resample().grid_height());
  const auto width = static_cast<uint64_t>(canonical->proto().table_resample().grid_width());
  golden::ExpectBits(line, v1::DTYPE_I32, std::vector<uint64_t>{height * width, height, width});
}

// The bias table of a window as a grid of its offsets, with three rows after it.
void CheckBeitTable(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::TableResampleSpec* resample = spec.mutable_table_resample();
  *resample->mutable_table() = TableOf(params, "table_hex");
  resample->set_suffix_rows(3);
  resample->set_grid_height(2 * Int(params, "window_height") - 1);
  resample->set_grid_width(2 * Int(params, "window_width") - 1);
  resample->set_kernel(KernelOf(params));
  const FilledTable table = Fill(spec, SelectPatches(2 * Int(params, "new_window_height") - 1,
                                                     2 * Int(params, "new_window_width") - 1));
  golden::ExpectValues(line, v1::DTYPE_F32, table.tensors.front().bytes);
}

void CheckGeometric(const Json& line, const Json& params) {
  const FilledTable table =
      Fill(Spec(absl::StrCat("geometric_coordinates { source_size: ", Int(params, "source_size"),
                             " target_size: ", Int(params, "target_size"), " }")),
           {});
  golden::ExpectValues(line, v1::DTYPE_F64, table.tensors.front().bytes);
}

// Numbers as beit_stretch.py hashes them from their indices, exact in float32.
float HashedNumber(uint64_t index) {
  const uint64_t bits = (index * 2654435761u % (uint64_t{1} << 32)) >> 16;
  return static_cast<float>(static_cast<double>(bits) / 32768 - 1);
}

void CheckBeitStretch(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::TableResampleSpec* resample = spec.mutable_table_resample();
  resample->set_source_spacing(v1::RESAMPLE_SPACING_GEOMETRIC);
  resample->set_suffix_rows(3);
  resample->set_grid_height(Int(params, "grid_height"));
  resample->set_grid_width(Int(params, "grid_width"));
  if (Text(params, "kernel") == "bilinear") resample->set_kernel(v1::RESAMPLE_KERNEL_BILINEAR);
  const int64_t rows = resample->grid_height() * resample->grid_width() + 3;
  resample->mutable_table()->add_shape(rows);
  resample->mutable_table()->add_shape(Int(params, "heads"));
  for (int64_t i = 0; i < rows * Int(params, "heads"); ++i) {
    resample->mutable_table()->add_values(HashedNumber(static_cast<uint64_t>(i)));
  }
  const std::string dtype =
      absl::StrCat("dtype: ", v1::DType_Name(golden::DTypeOf(Text(line, "dtype"))));
  const FilledTable table =
      Fill(spec, SelectPatches(Int(params, "new_height"), Int(params, "new_width")), dtype);
  golden::ExpectValues(line, table.tensors.front().tensor.dtype, table.tensors.front().bytes);
}

const std::map<std::string, golden::CheckLine>& Checks() {
  static const std::map<std::string, golden::CheckLine> checks = {
      {"position_ids", CheckPositionIds},
      {"learned_capacity", CheckCapacity},
      {"learned_patch_grid", CheckPatchGrid},
      {"vision_nearest_position_ids", CheckNearest},
      {"vision_interpolation_indices", CheckTapIndices},
      {"vision_interpolation_weights", CheckTapWeights},
      {"learned_resample", CheckResample},
      {"beit_relative_table_resize", CheckBeitTable},
      {"beit_geometric_source_coordinates", CheckGeometric},
      {"beit_stretch", CheckBeitStretch},
  };
  return checks;
}

TEST(LearnedGoldenTest, EveryLineWithinItsTolerance) {
  golden::CheckLines("learned.jsonl", Checks());
}

// Ours: made by beit_stretch.py.
TEST(LearnedGoldenTest, EveryStretchedBiasTableWithinItsTolerance) {
  golden::CheckLines("beit_stretch.jsonl", Checks());
}

}  // namespace
}  // namespace posenc::testing
