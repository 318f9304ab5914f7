// Every line of alibi.jsonl whose form is covered, within its tolerance.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/families/store.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

std::optional<v1::SlopeRounding> SlopeRoundingOf(const std::string& name) {
  if (name == "press_f64") return v1::SLOPE_ROUNDING_PRESS;
  if (name == "bloom_f32") return v1::SLOPE_ROUNDING_BLOOM;
  if (name == "mpt_f32") return v1::SLOPE_ROUNDING_MPT;
  return std::nullopt;
}

std::optional<v1::AlibiForm> FormOf(const std::string& name) {
  if (name == "relative_causal") return v1::ALIBI_FORM_RELATIVE_CAUSAL;
  if (name == "symmetric") return v1::ALIBI_FORM_SYMMETRIC;
  return std::nullopt;
}

// Compares one line; a reason when its form is not covered.
std::optional<std::string> CheckLine(const Json& line) {
  const std::string encoding = Get(line, "encoding").GetString();
  const Json& params = Get(line, "params");
  if (encoding == "alibi_distance") return "distances alone are not an encoding yet";
  const std::string rounding = Get(params, "slope_rounding").GetString();

  v1::EncodingSpec spec;
  v1::AlibiSpec* alibi = spec.mutable_alibi();
  alibi->set_num_heads(Get(params, "heads").GetInt64());
  alibi->set_alibi_bias_max(Get(params, "bias_max").GetDouble());
  const auto slope_rounding = SlopeRoundingOf(rounding);
  if (!slope_rounding.has_value()) return absl::StrCat("slope_rounding ", rounding);
  alibi->set_slope_rounding(*slope_rounding);
  if (Has(params, "total_heads")) return "heads without a bias";
  if (Has(params, "tensor_parallel_rank")) return "slopes of one tensor-parallel rank";

  v1::TensorFormat format;
  format.set_dtype(golden::DTypeOf(Get(line, "dtype").GetString()));
  v1::Selection selection;
  if (encoding == "alibi_slopes") {
    format.set_layout(v1::LAYOUT_SLOPES);
  } else {
    const std::string form_name = Get(params, "form").GetString();
    const auto form = FormOf(form_name);
    if (!form.has_value()) return absl::StrCat("form ", form_name);
    if (Get(params, "causal_mask").GetBool()) return "causal mask inside the bias";
    alibi->set_form(*form);
    selection =
        SelectGrid(Get(params, "query_length").GetInt64(), Get(params, "key_length").GetInt64(),
                   Has(params, "query_offset") ? Get(params, "query_offset").GetInt64() : 0);
  }
  const absl::StatusOr<FilledTable> table = FillTable(spec, selection, format);
  EXPECT_TRUE(table.ok()) << golden::Id(line) << ": " << table.status();
  if (!table.ok()) return std::nullopt;
  golden::ExpectValues(line, format.dtype(), table->tensors.front().bytes);
  return std::nullopt;
}

TEST(AlibiGoldenTest, EveryCoveredLineWithinItsTolerance) {
  golden::NotCovered skipped;
  for (const auto& line : golden::ReadLines("alibi.jsonl")) {
    if (const auto reason = CheckLine(line)) skipped[golden::Id(line)] = *reason;
  }
  golden::ExpectNotYetCovered("alibi.jsonl", skipped);
}

}  // namespace
}  // namespace posenc::testing
