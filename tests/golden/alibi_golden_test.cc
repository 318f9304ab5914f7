// Every line of alibi.jsonl, within its tolerance.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/families/store.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

v1::SlopeRounding SlopeRoundingOf(const std::string& name) {
  if (name == "bloom_f32") return v1::SLOPE_ROUNDING_BLOOM;
  if (name == "mpt_f32") return v1::SLOPE_ROUNDING_MPT;
  if (name == "ggml") return v1::SLOPE_ROUNDING_GGML;
  if (name == "falcon_bf16") return v1::SLOPE_ROUNDING_FALCON_BF16;
  EXPECT_EQ(name, "press_f64");
  return v1::SLOPE_ROUNDING_PRESS;
}

v1::AlibiForm FormOf(const std::string& name) {
  if (name == "symmetric") return v1::ALIBI_FORM_SYMMETRIC;
  if (name == "key_pos") return v1::ALIBI_FORM_KEY_POSITION;
  if (name == "last_row") return v1::ALIBI_FORM_LAST_ROW;
  if (name == "sqrt") return v1::ALIBI_FORM_SQRT;
  if (name == "mask_based") return v1::ALIBI_FORM_KEY_MASK;
  EXPECT_EQ(name, "relative_causal");
  return v1::ALIBI_FORM_RELATIVE_CAUSAL;
}

v1::AlibiSpec SpecOf(const Json& params) {
  v1::AlibiSpec alibi;
  alibi.set_num_heads(Get(params, "heads").GetInt64());
  alibi.set_alibi_bias_max(Get(params, "bias_max").GetDouble());
  alibi.set_slope_rounding(SlopeRoundingOf(Get(params, "slope_rounding").GetString()));
  if (Has(params, "total_heads")) alibi.set_total_heads(params["total_heads"].GetInt64());
  if (Has(params, "tensor_parallel_size")) {
    alibi.set_tensor_parallel_size(params["tensor_parallel_size"].GetInt64());
    alibi.set_tensor_parallel_rank(Get(params, "tensor_parallel_rank").GetInt64());
  }
  if (Has(params, "form")) alibi.set_form(FormOf(params["form"].GetString()));
  if (Has(params, "scale")) {
    EXPECT_STREQ(params["scale"].GetString(), "1/sqrt(head_dim)");
    alibi.set_scale_head_dim(Get(params, "head_dim").GetInt64());
  }
  return alibi;
}

// The mask of a batch, or the grid; one query where the form has none.
v1::Selection SelectionOf(const Json& params) {
  v1::Selection selection;
  if (Has(params, "attention_mask")) {
    const Json& rows = params["attention_mask"];
    v1::TokenMask* mask = selection.mutable_token_mask();
    mask->set_height(rows.Size());
    mask->set_width(rows[0].Size());
    for (const Json& row : rows.GetArray()) {
      for (const Json& key : row.GetArray()) {
        mask->mutable_valid()->push_back(static_cast<char>(key.GetInt()));
      }
    }
    return selection;
  }
  return SelectGrid(Has(params, "query_length") ? params["query_length"].GetInt64() : 1,
                    Get(params, "key_length").GetInt64(),
                    Has(params, "query_offset") ? params["query_offset"].GetInt64() : 0);
}

// The same bias where a key may be attended, the fill elsewhere: a mask with a bias.
void MaskCausally(const Json& params, v1::EncodingSpec* spec, v1::Selection* selection) {
  v1::EncodingSpec masked;
  *masked.mutable_mask()->mutable_bias() = *spec;
  masked.mutable_mask()->mutable_rule()->mutable_causal();
  const absl::string_view fill = Get(params, "fill").GetString();
  EXPECT_TRUE(fill == "neg_inf" || fill == "finfo_min") << fill;
  masked.mutable_mask()->set_fill(fill == "neg_inf" ? v1::MASK_FILL_NEG_INF
                                                    : v1::MASK_FILL_DTYPE_MIN);
  *spec = masked;
  const v1::AttentionGrid grid = selection->attention_grid();
  *selection->mutable_token_grid()->mutable_attention_grid() = grid;
}

// llama.cpp's mask holds distances, which the slopes meet later: slopes of 1.
void CheckDistances(const Json& line) {
  const Json& distances = Get(Get(line, "params"), "distances");
  const int64_t last = distances[distances.Size() - 1].GetInt64();
  const FilledTensor bias = FillOne(
      "alibi { num_heads: 1 alibi_bias_max: 0 slope_rounding: SLOPE_ROUNDING_GGML "
      "form: ALIBI_FORM_SYMMETRIC }",
      SelectGrid(1, last + 1, 0), "dtype: DTYPE_F16");
  std::vector<uint64_t> bits;
  for (const Json& distance : distances.GetArray()) {
    bits.push_back(golden::BitsAt(bias.bytes, v1::DTYPE_F16, distance.GetUint64()));
  }
  golden::ExpectBits(line, v1::DTYPE_F16, bits);
}

void CheckLine(const Json& line) {
  const std::string encoding = Get(line, "encoding").GetString();
  const Json& params = Get(line, "params");
  if (encoding == "alibi_distance") {
    return CheckDistances(line);
  }
  v1::EncodingSpec spec;
  *spec.mutable_alibi() = SpecOf(params);
  v1::TensorFormat format;
  format.set_dtype(golden::DTypeOf(Get(line, "dtype").GetString()));
  format.set_layout(encoding == "alibi_slopes" ? v1::LAYOUT_SLOPES : v1::LAYOUT_BIAS);
  v1::Selection selection;
  if (encoding != "alibi_slopes") {
    EXPECT_EQ(encoding, "alibi_bias");
    selection = SelectionOf(params);
    if (Get(params, "causal_mask").GetBool()) MaskCausally(params, &spec, &selection);
  }
  const absl::StatusOr<FilledTable> table = FillTable(spec, selection, format);
  ASSERT_TRUE(table.ok()) << table.status();
  golden::ExpectValues(line, format.dtype(), table->tensors.front().bytes);
}

TEST(AlibiGoldenTest, EveryLineWithinItsTolerance) {
  for (const auto& line : golden::ReadLines("alibi.jsonl")) {
    SCOPED_TRACE(golden::Id(line));
    CheckLine(line);
  }
  golden::ExpectNotYetCovered("alibi.jsonl", {});
}

}  // namespace
}  // namespace posenc::testing
