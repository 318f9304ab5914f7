// Every RoPE line of rope.jsonl, from its own parameters: inverse frequencies bit
// for bit, and rows bit for bit once the cos_cr and sin_cr patches are applied
// (which give the pipeline whose every step is correctly rounded).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

// Why the family cannot make this line's table, if it cannot.
std::optional<std::string> WhyNotCovered(const Json& line) {
  const std::string rope_type = Get(line, "rope_type").GetString();
  for (const char* covered :
       {"default", "linear", "yarn", "llama3", "dynamic", "longrope", "proportional"}) {
    if (rope_type == covered) return std::nullopt;
  }
  return "rope_type " + rope_type;
}

std::string Variant(const Json& line) {
  return Has(line, "variant") ? Get(line, "variant").GetString() : "";
}

// RoFormer builds its table in float64 and rounds it once.
bool IsExact(const Json& line) { return Variant(line) == "float64_table"; }

void SetDynamic(const Json& line, v1::RopeSpec* rope) {
  const Json& params = Get(line, "params");
  if (Variant(line) == "dynamic_alpha") {
    return rope->mutable_ntk()->set_alpha(Get(params, "alpha").GetDouble());
  }
  v1::DynamicScaling* dynamic = rope->mutable_dynamic();
  if (Variant(line) == "dynamic_qwen1") {
    dynamic->set_growth(v1::DYNAMIC_GROWTH_POWER_OF_TWO);
    return dynamic->set_max_position_embeddings(Get(params, "seq_length").GetInt64());
  }
  // The lines that no reference was executed for are InternLM's own code.
  if (absl::string_view(Get(line, "source").GetString()) == "spec formula only") {
    dynamic->set_growth(v1::DYNAMIC_GROWTH_LINEAR_FLOAT64);
  }
  dynamic->set_factor(Get(params, "factor").GetDouble());
  dynamic->set_max_position_embeddings(Get(line, "max_position_embeddings").GetInt64());
}

void SetLongRope(const Json& params, v1::LongRopeScaling* longrope) {
  for (const Json& factor : Get(params, "short_factor").GetArray()) {
    longrope->add_short_factor(factor.GetDouble());
  }
  for (const Json& factor : Get(params, "long_factor").GetArray()) {
    longrope->add_long_factor(factor.GetDouble());
  }
  longrope->set_original_max_position_embeddings(
      Get(params, "original_max_position_embeddings").GetInt64());
  longrope->set_factor(Get(params, "factor_used").GetDouble());
  if (Has(params, "short_mscale")) {
    longrope->set_short_mscale(Get(params, "short_mscale").GetDouble());
    longrope->set_long_mscale(Get(params, "long_mscale").GetDouble());
  }
}

void SetScaling(const Json& line, v1::RopeSpec* rope) {
  const std::string rope_type = Get(line, "rope_type").GetString();
  const Json& params = Get(line, "params");
  const auto number = [&](const char* name) { return Get(params, name).GetDouble(); };
  if (rope_type == "linear") rope->mutable_linear()->set_factor(number("factor"));
  if (rope_type == "dynamic") SetDynamic(line, rope);
  if (rope_type == "longrope") SetLongRope(params, rope->mutable_longrope());
  if (rope_type == "proportional") {
    rope->mutable_proportional()->set_factor(number("factor"));
    rope->mutable_proportional()->set_partial_rotary_factor(number("partial_rotary_factor"));
  }
  if (rope_type == "llama3") {
    v1::Llama3Scaling* llama3 = rope->mutable_llama3();
    llama3->set_factor(number("factor"));
    llama3->set_low_freq_factor(number("low_freq_factor"));
    llama3->set_high_freq_factor(number("high_freq_factor"));
    llama3->set_original_max_position_embeddings(
        Get(params, "original_max_position_embeddings").GetInt64());
  }
  if (rope_type == "yarn") {
    v1::YarnScaling* yarn = rope->mutable_yarn();
    yarn->set_factor(number("factor"));
    yarn->set_original_max_position_embeddings(
        Get(params, "original_max_position_embeddings").GetInt64());
    yarn->set_beta_fast(number("beta_fast"));
    yarn->set_beta_slow(number("beta_slow"));
    yarn->set_truncate(Get(params, "truncate").GetBool());
    if (Has(params, "attention_factor")) yarn->set_attention_factor(number("attention_factor"));
    if (Has(params, "mscale")) yarn->set_mscale(number("mscale"));
    if (Has(params, "mscale_all_dim")) yarn->set_mscale_all_dim(number("mscale_all_dim"));
  }
}

v1::EncodingSpec SpecOf(const Json& line) {
  v1::EncodingSpec spec;
  v1::RopeSpec* rope = spec.mutable_rope();
  rope->set_head_dim(Get(line, "head_dim").GetInt64());
  rope->set_rotary_dim(Get(line, "rotary_dim").GetInt64());
  rope->set_rope_theta(Get(line, "rope_theta").GetDouble());
  rope->set_arithmetic(IsExact(line) ? v1::ARITHMETIC_EXACT : v1::ARITHMETIC_FLOAT32);
  SetScaling(line, rope);
  return spec;
}

std::vector<uint32_t> Bits(const Json& hex_list) {
  std::vector<uint32_t> bits;
  for (const uint64_t element : golden::BitsOfHexList(hex_list)) {
    bits.push_back(static_cast<uint32_t>(element));
  }
  return bits;
}

std::vector<uint32_t> ExpectedInvFreq(const Json& object) {
  return Bits(Get(object, Has(object, "inv_freq_cr_hex") ? "inv_freq_cr_hex" : "inv_freq_hex"));
}

std::vector<uint32_t> Patched(const Json& row, const char* hex, const char* patch) {
  std::vector<uint32_t> bits = Bits(Get(row, hex));
  if (!Has(row, patch)) return bits;
  for (const auto& entry : Get(row, patch).GetObject()) {
    size_t index = 0;
    EXPECT_TRUE(absl::SimpleAtoi(entry.name.GetString(), &index));
    bits.at(index) = static_cast<uint32_t>(golden::BitsOfHex(entry.value.GetString()));
  }
  return bits;
}

void ExpectInvFreq(const v1::EncodingSpec& spec, const std::vector<uint32_t>& expected) {
  const auto table =
      testing::FillTable(spec, v1::Selection(), testing::Format("layout: LAYOUT_INV_FREQ"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->tensors[0].As<uint32_t>(), expected);
}

// The spec of the table that is made for a row's sequence length.
v1::EncodingSpec ForSequence(v1::EncodingSpec spec, const Json& row) {
  if (!Has(row, "seq_len")) return spec;
  const int64_t sequence_length = Get(row, "seq_len").GetInt64();
  if (spec.rope().has_dynamic()) {
    spec.mutable_rope()->mutable_dynamic()->set_sequence_length(sequence_length);
  }
  if (spec.rope().has_longrope()) {
    spec.mutable_rope()->mutable_longrope()->set_sequence_length(sequence_length);
  }
  return spec;
}

void ExpectRow(const v1::EncodingSpec& any_length, const Json& row) {
  const v1::EncodingSpec spec = ForSequence(any_length, row);
  if (Has(row, "inv_freq_hex")) ExpectInvFreq(spec, ExpectedInvFreq(row));
  const int64_t position = Get(row, "position").GetInt64();
  SCOPED_TRACE(position);
  const auto table = testing::FillTable(spec, testing::SelectIds({position}),
                                        testing::Format("layout: LAYOUT_COS_AND_SIN_HALF"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->tensors[0].As<uint32_t>(), Patched(row, "cos_hex", "cos_cr"));
  EXPECT_EQ(table->tensors[1].As<uint32_t>(), Patched(row, "sin_hex", "sin_cr"));
}

// Attention factors are float64 and come from a logarithm: a last bit is allowed.
void ExpectAttentionFactor(const v1::EncodingSpec& spec, double expected) {
  const auto canonical = Canonicalize(spec);
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  const double factor = FamilyOf(canonical->proto()).MakePlan(*canonical)->attention_factor();
  EXPECT_NEAR(factor, expected, 1e-15 * expected);
}

TEST(RopeGoldenTest, FrequenciesAndRowsAreBitForBitTheExpectedOnes) {
  golden::NotCovered skipped;
  int covered = 0;
  int rows = 0;
  for (const auto& line : golden::ReadLines("rope.jsonl")) {
    if (absl::string_view(Get(line, "encoding").GetString()) != "rope") continue;
    if (Has(line, "axes")) continue;    // axial_rope_golden_test.cc
    if (Has(line, "expect")) continue;  // configs that must be refused: model_config's matter
    SCOPED_TRACE(golden::Id(line));
    if (const auto reason = WhyNotCovered(line); reason.has_value()) {
      skipped[golden::Id(line)] = *reason;
      continue;
    }
    const v1::EncodingSpec spec = SpecOf(line);
    ExpectInvFreq(spec, ExpectedInvFreq(line));
    ExpectAttentionFactor(spec, Get(line, "attention_scaling").GetDouble());
    for (const Json& row : Get(line, "rows").GetArray()) {
      ExpectRow(spec, row);
      ++rows;
    }
    ++covered;
  }
  EXPECT_GE(covered, 151);
  EXPECT_GE(rows, 5 * 151);
  golden::ExpectNotYetCovered("rope.jsonl", skipped);
}

}  // namespace
}  // namespace posenc
