// Every line of rope.jsonl from its config file: kind, type, widths, layers and
// facts as the line has them, and from the spec that comes out the frequencies and
// rows, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/families/family.h"
#include "lib/model_config/resolve.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"
#include "tests/support/axial_lines.h"
#include "tests/support/golden.h"
#include "tests/support/rope_lines.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

// What a fragment is completed with.
std::string Assumed(const Json& line) {
  const std::string id = golden::Id(line);
  // The page of this file was cut off in the middle of no_rope_layers: the 27
  // layers that are known, with the class's number of heads.
  if (absl::EndsWith(id, "+lenient")) {
    return R"({"num_hidden_layers": 27, "num_attention_heads": 16})";
  }
  if (!Has(line, "assumed")) return "";
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  Get(line, "assumed").Accept(writer);
  return text.GetString();
}

v1::ModelSource SourceOf(const Json& line) {
  v1::ModelSource model;
  model.set_config_json(testing::ReadConfig(Get(line, "config").GetString()));
  model.set_overrides_json(Assumed(line));
  return model;
}

std::string KindOf(const Json& line) {
  const std::string encoding = Get(line, "encoding").GetString();
  return encoding == "t5_relative" ? "t5" : encoding;
}

std::string RotationOf(const Json& line) {
  const std::map<std::string, std::string> names = {
      {"neox_half", "half"},
      {"interleaved", "interleaved"},
      {"deepseek_interleave_to_half", "interleaved_to_half"},
      {"complex", "complex"},
      {"neox_half_per_axis_block", "half_per_axis"}};
  return names.at(Get(line, "layout").GetString());
}

std::vector<int64_t> Ints(const Json& object, const char* name) {
  std::vector<int64_t> ints;
  if (!Has(object, name)) return ints;
  const Json& value = Get(object, name);
  if (!value.IsArray()) return {value.GetInt64()};
  for (const Json& element : value.GetArray()) ints.push_back(element.GetInt64());
  return ints;
}

int64_t Int(const Json& object, const char* name) {
  return Has(object, name) ? Get(object, name).GetInt64() : 0;
}

bool Flag(const Json& object, const char* name) {
  return Has(object, name) && Get(object, name).GetBool();
}

template <typename Repeated>
std::vector<int64_t> ToVector(const Repeated& repeated) {
  return {repeated.begin(), repeated.end()};
}

// The encoding that a line is about. Null and a failure when there is none.
const v1::ResolvedEncoding* Find(const v1::ResolveModelConfigResponse& response, const Json& line) {
  const std::string kind = KindOf(line);
  const std::string layer_type =
      Has(line, "layer_type") ? Get(line, "layer_type").GetString() : "all";
  for (const v1::ResolvedEncoding& encoding : response.encodings()) {
    if (encoding.tower() == Get(line, "tower").GetString() && encoding.kind() == kind &&
        (kind != "rope" || encoding.layer_type() == layer_type)) {
      return &encoding;
    }
  }
  ADD_FAILURE() << "no " << kind << " in " << response.DebugString();
  return nullptr;
}

void ExpectAxial(const v1::ResolvedEncoding& encoding, const Json& line) {
  const v1::AxialRope& axial = encoding.axial();
  std::vector<std::string> axes;
  for (const Json& axis : Get(line, "axes").GetArray()) axes.emplace_back(axis.GetString());
  EXPECT_THAT(axial.axes(), ::testing::ElementsAreArray(axes));
  EXPECT_EQ(axial.head_dim(), Int(line, "head_dim"));
  EXPECT_EQ(axial.rotary_dim(), Int(line, "rotary_dim"));
  EXPECT_EQ(axial.rope_theta(), Get(line, "rope_theta").GetDouble());
  const std::vector<int64_t> dims =
      Has(line, "axes_dim")
          ? Ints(line, "axes_dim")
          : std::vector<int64_t>(axes.size(), Int(Get(line, "params"), "axis_dim"));
  EXPECT_EQ(ToVector(axial.axis_dim()), dims);
  golden::ExpectAxialLine(line, encoding.spec());
}

void ExpectRopeFacts(const v1::ResolvedEncoding& encoding, const Json& line) {
  const v1::RopeSpec& rope = encoding.spec().rope();
  EXPECT_EQ(rope.head_dim(), Int(line, "head_dim"));
  EXPECT_EQ(rope.rotary_dim(), Int(line, "rotary_dim"));
  EXPECT_EQ(rope.rope_theta(), Get(line, "rope_theta").GetDouble());
  EXPECT_EQ(rope.pairing(),
            encoding.rotation() == "half" ? v1::PAIRING_HALF : v1::PAIRING_INTERLEAVED);
  EXPECT_EQ(encoding.max_position_embeddings(), Int(line, "max_position_embeddings"));
  const double softmax = Has(line, "softmax_scale_multiplier")
                             ? Get(line, "softmax_scale_multiplier").GetDouble()
                             : 1.0;
  EXPECT_NEAR(encoding.softmax_scale_multiplier(), softmax, 1e-15 * softmax);
  EXPECT_EQ(encoding.variant(), Has(line, "variant") ? Get(line, "variant").GetString() : "");
  EXPECT_EQ(encoding.has_mrope(), Has(line, "mrope"));
  if (!Has(line, "mrope")) return;
  const Json& mrope = Get(line, "mrope");
  EXPECT_EQ(ToVector(encoding.mrope().sections()), Ints(mrope, "section"));
  EXPECT_EQ(encoding.mrope().scheme(), Flag(mrope, "interleaved") ? "interleaved" : "contiguous");
}

// A table for every length that the line has rows of.
void ExpectRopeValues(const v1::ModelSource& model, const Json& line) {
  std::map<int64_t, v1::EncodingSpec> specs;
  for (const golden::RopeRow& row : golden::RowsOf(line)) {
    const int64_t length = row.sequence_length.value_or(0);
    if (!specs.contains(length)) {
      v1::ModelSource source = model;
      if (length > 0) source.set_sequence_length(length);
      const auto response = ResolveModelConfig(source);
      ASSERT_TRUE(response.ok()) << response.status();
      const v1::ResolvedEncoding* encoding = Find(*response, line);
      ASSERT_NE(encoding, nullptr);
      specs[length] = encoding->spec();
      golden::ExpectInvFreq(specs[length],
                            row.inv_freq.empty() ? golden::InvFreqOf(line) : row.inv_freq);
    }
    golden::ExpectRopeRow(specs[length], row);
  }
}

void ExpectRope(const v1::ModelSource& model, const v1::ResolvedEncoding& encoding,
                const Json& line) {
  EXPECT_EQ(encoding.rope_type(), Get(line, "rope_type").GetString());
  EXPECT_EQ(encoding.rotation(), RotationOf(line));
  if (Has(line, "axes")) {
    EXPECT_TRUE(Canonicalize(encoding.spec()).ok()) << Canonicalize(encoding.spec()).status();
    return ExpectAxial(encoding, line);
  }
  // Rows whose axes differ: axial_rope_golden_test.
  EXPECT_TRUE(!encoding.has_mrope() || Canonicalize(MropeSpecOf(encoding)).ok());
  ExpectRopeFacts(encoding, line);
  EXPECT_EQ(ToVector(encoding.layers()), Ints(line, "layers"));
  EXPECT_EQ(ToVector(encoding.nope_layers()), Ints(line, "nope_layers"));
  const auto canonical = Canonicalize(encoding.spec());
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  const double scaling = Get(line, "attention_scaling").GetDouble();
  EXPECT_NEAR(FamilyOf(canonical->proto()).MakePlan(*canonical)->attention_factor(), scaling,
              1e-15 * scaling);
  ExpectRopeValues(model, line);
}

void ExpectLearned(const v1::ResolvedEncoding& encoding, const Json& line) {
  const v1::LearnedTable& table = encoding.learned();
  EXPECT_EQ(table.rows(), Int(line, "rows"));
  EXPECT_EQ(table.offset(), Int(line, "offset"));
  EXPECT_EQ(table.prefix_tokens(), Int(line, "prefix_tokens"));
  EXPECT_EQ(ToVector(table.grid()), Ints(line, "grid"));
  if (Has(line, "usable")) {
    EXPECT_EQ(table.usable(), Int(line, "usable"));
  }
  if (Has(line, "dim")) {
    EXPECT_EQ(table.dim(), Int(line, "dim"));
  }
}

void ExpectT5(const v1::ResolvedEncoding& encoding, const Json& line) {
  const v1::T5BiasSpec& t5 = encoding.spec().t5();
  EXPECT_EQ(t5.num_buckets(), Int(line, "num_buckets"));
  EXPECT_EQ(t5.max_distance(), Int(line, "max_distance"));
  EXPECT_EQ(t5.bidirectional(), Flag(line, "bidirectional"));
  EXPECT_EQ(ToVector(encoding.relative().heads()), Ints(line, "heads"));
  EXPECT_EQ(encoding.relative().per_layer(), Flag(line, "per_layer"));
  EXPECT_TRUE(Canonicalize(encoding.spec()).ok());
}

void ExpectAlibi(const v1::ResolvedEncoding& encoding, const Json& line) {
  const v1::AlibiSpec& alibi = encoding.spec().alibi();
  EXPECT_EQ(alibi.num_heads(), Int(line, "heads"));
  EXPECT_EQ(alibi.alibi_bias_max(), Get(line, "bias_max").GetDouble());
  EXPECT_EQ(alibi.form() == v1::ALIBI_FORM_SYMMETRIC, Flag(line, "bidirectional"));
  EXPECT_EQ(encoding.max_position_embeddings(), Int(line, "max_position_embeddings"));
  EXPECT_TRUE(Canonicalize(encoding.spec()).ok());
}

void ExpectSinusoidal(const v1::ResolvedEncoding& encoding, const Json& line) {
  const v1::SinusoidalSpec& sinusoidal = encoding.spec().sinusoidal();
  EXPECT_EQ(sinusoidal.d_model(), Int(line, "dim"));
  EXPECT_EQ(sinusoidal.base(), Get(line, "base").GetDouble());
  EXPECT_EQ(sinusoidal.position_offset(), Int(line, "offset"));
  EXPECT_EQ(sinusoidal.layout(), v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS);
  EXPECT_EQ(encoding.max_position_embeddings(), Int(line, "rows"));
  EXPECT_TRUE(Canonicalize(encoding.spec()).ok());
}

void ExpectRelative(const v1::ResolvedEncoding& encoding, const Json& line) {
  const v1::RelativeTable& table = encoding.relative();
  EXPECT_TRUE(!encoding.has_spec() || Canonicalize(encoding.spec()).ok());
  EXPECT_EQ(ToVector(table.heads()), Ints(line, "heads"));
  if (Has(line, "entries")) {
    EXPECT_EQ(table.entries(), Int(line, "entries"));
  }
  if (Has(line, "grid")) {
    EXPECT_EQ(ToVector(table.window()), Ints(line, "grid"));
  }
  if (Has(line, "window")) {
    EXPECT_EQ(table.window(0), Int(line, "window"));
  }
  if (Has(line, "shared")) {
    EXPECT_EQ(table.per_layer(), !Flag(line, "shared"));
  }
  if (Has(line, "position_buckets")) {
    EXPECT_EQ(table.position_buckets(), Int(line, "position_buckets"));
    EXPECT_EQ(table.max_relative_positions(), Int(line, "max_relative_positions"));
    std::vector<std::string> terms;
    for (const Json& term : Get(line, "pos_att_type").GetArray()) {
      terms.emplace_back(term.GetString());
    }
    EXPECT_THAT(table.terms(), ::testing::UnorderedElementsAreArray(terms));
  }
  if (Has(line, "clamp_len")) {
    EXPECT_EQ(table.max_relative_positions(), Int(line, "clamp_len"));
  }
}

void ExpectLine(const v1::ModelSource& model, const v1::ResolvedEncoding& encoding,
                const Json& line) {
  const std::string kind = KindOf(line);
  if (kind == "rope") return ExpectRope(model, encoding, line);
  EXPECT_EQ(ToVector(encoding.nope_layers()), Ints(line, "nope_layers"));
  if (kind == "learned" || kind == "learned_2d") return ExpectLearned(encoding, line);
  if (kind == "t5") return ExpectT5(encoding, line);
  if (kind == "alibi") return ExpectAlibi(encoding, line);
  if (kind == "sinusoidal") return ExpectSinusoidal(encoding, line);
  if (kind == "conv_positional") {
    EXPECT_EQ(encoding.relative().kernel(), Int(line, "kernel"));
    EXPECT_EQ(encoding.relative().groups(), Int(line, "groups"));
  } else if (kind == "sine_2d") {
    EXPECT_EQ(2 * encoding.spec().detr_sine().num_position_features(), Int(line, "dim"));
    EXPECT_TRUE(Canonicalize(encoding.spec()).ok());
  } else if (kind != "none") {
    ExpectRelative(encoding, line);
  }
}

// What the line says that the reference warned of, or took from its defaults, is
// a finding here too.
void ExpectFindings(const v1::ResolveModelConfigResponse& response, const Json& line) {
  if (Has(line, "defaults_used")) {
    for (const Json& key : Get(line, "defaults_used").GetArray()) {
      const bool theta = absl::string_view(key.GetString()) == "rope_theta";
      const bool scaled = testing::FindingOf(response, "theta-defaulted-scaled") != nullptr;
      EXPECT_TRUE((theta && scaled) ||
                  testing::FindingOf(response, theta ? "theta-defaulted" : "size-defaulted"))
          << key.GetString();
    }
  }
  if (!Has(line, "warnings")) return;
  for (const Json& warning : Get(line, "warnings").GetArray()) {
    if (absl::StartsWith(warning.GetString(), "yarn_factor_mismatch")) {
      EXPECT_NE(testing::FindingOf(response, "factor-mismatch"), nullptr);
    }
    if (absl::StartsWith(warning.GetString(), "unrecognized_keys[yarn]")) {
      EXPECT_NE(testing::FindingOf(response, "rope-key-unknown"), nullptr);
    }
    if (absl::StartsWith(warning.GetString(), "longrope_factor_missing")) {
      EXPECT_NE(testing::FindingOf(response, "longrope-factor-implied"), nullptr);
    }
  }
}

TEST(ModelConfigGoldenTest, EveryConfigResolvesToItsLine) {
  golden::NotCovered skipped;
  int covered = 0;
  for (const auto& line : golden::ReadLines("rope.jsonl")) {
    if (Has(line, "expect")) continue;
    SCOPED_TRACE(golden::Id(line));
    const v1::ModelSource model = SourceOf(line);
    const auto response = ResolveModelConfig(model);
    if (!response.ok() && absl::StrContains(response.status().message(), "not supported yet")) {
      skipped[golden::Id(line)] = std::string(response.status().message());
      continue;
    }
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) continue;
    const v1::ResolvedEncoding* encoding = Find(*response, line);
    if (encoding == nullptr) continue;
    ExpectLine(model, *encoding, line);
    if (model.overrides_json().empty()) ExpectFindings(*response, line);
    ++covered;
  }
  EXPECT_GE(covered, 200);
  golden::ExpectNotYetCovered("configs", skipped);
}

TEST(ModelConfigGoldenTest, WhatTheReferenceRefusesIsRefused) {
  int refused = 0;
  for (const auto& line : golden::ReadLines("rope.jsonl")) {
    if (!Has(line, "expect")) continue;
    SCOPED_TRACE(golden::Id(line));
    v1::ModelSource model = SourceOf(line);
    EXPECT_EQ(ResolveModelConfig(model).status().code(), absl::StatusCode::kInvalidArgument);
    if (Has(line, "rope_type")) {
      // "Must be rejected whatever keys are assumed."
      model.set_overrides_json(
          R"({"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128})");
      EXPECT_THAT(std::string(ResolveModelConfig(model).status().message()),
                  ::testing::HasSubstr(Get(line, "rope_type").GetString()));
    }
    ++refused;
  }
  EXPECT_EQ(refused, 11);
}

}  // namespace
}  // namespace posenc
