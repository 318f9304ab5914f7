// KERPLE, Sandwich, FIRE, RetNet and xPos: published values, correct rounding against
// MPFR, laws and refusals.
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/numeric/dtype.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> Bias(const std::string& spec, const v1::Selection& grid) {
  return FillOne(spec, grid).As<float>();
}

auto Near(std::vector<float> values, float tolerance) {
  return Pointwise(FloatNear(tolerance), std::move(values));
}

const char* const kLogKerple = "kerple { a: [0.5, 0.013, 7] p: [1, 0.25, 3.7] }";
const char* const kPowerKerple =
    "kerple { form: KERPLE_FORM_POWER a: [0.5, 0.013] p: [1.5, 0.37] }";
const char* const kNemoKerple =
    "kerple { form: KERPLE_FORM_LOG_POWER a: [0.5, 0] p: [1.5, 3] b: [0.7, 1] }";
const char* const kSandwich = "sandwich { num_heads: 3 d_model: 64 }";
const char* const kFire = "fire {}";
const char* const kRetnet = "retnet_decay { num_heads: 8 }";
const char* const kPlainRetnet = "retnet_decay { num_heads: 8 normalized: false }";

// Published values: reference/other-encodings.md, section 4.6 ------------------------

TEST(KerpleTest, PublishedRows) {
  EXPECT_THAT(Bias("kerple { a: 0.5 p: 1 }", SelectGrid(1, 4, 3)),
              Near({-.91629f, -.69315f, -.40547f, 0}, 5e-6f));
  EXPECT_THAT(Bias("kerple { form: KERPLE_FORM_POWER a: 0.5 p: 1.5 }", SelectGrid(1, 4, 3)),
              Near({-2.598076f, -1.414214f, -.5f, 0}, 5e-7f));
}

TEST(SandwichTest, PublishedRow) {
  const std::vector<float> bias = Bias("sandwich { num_heads: 2 d_model: 4 }", SelectGrid(1, 4, 3));
  EXPECT_THAT(std::vector<float>(bias.begin(), bias.begin() + 4),
              Near({-1.125e-4f, -5.0008e-5f, -1.25170e-5f, 0}, 2e-8f));
}

TEST(FireTest, PublishedRow) {
  EXPECT_THAT(Bias(kFire, SelectGrid(1, 4, 3)),
              Near({.06633595f, .04609804f, .02409815f, 0}, 2e-8f));
}

TEST(RetnetDecayTest, PublishedDecays) {
  EXPECT_THAT(FillOne("retnet_decay { num_heads: 4 }", {}, "layout: LAYOUT_LOG_DECAY").As<float>(),
              Near({-.0317487f, -.01574836f, -.00784318f, -.0039139f}, 5e-8f));
  EXPECT_THAT(Bias("retnet_decay { num_heads: 1 normalized: false }", SelectGrid(1, 3, 2)),
              ElementsAre(0.96875f * 0.96875f, 0.96875f, 1));
}

TEST(XposScaleTest, PublishedRow) {
  EXPECT_THAT(FillOne("xpos_scale { head_dim: 8 }", {}, "layout: LAYOUT_XPOS_ZETA").As<float>(),
              Near({.2857143f, .4642857f, .6428571f, .8214286f}, 1e-7f));
  const auto table = FillTable(Spec("xpos_scale { head_dim: 8 length: 4 }"), SelectRange(0, 4), {});
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<float> query = table->tensors[0].As<float>();
  EXPECT_THAT(std::vector<float>(query.begin(), query.begin() + 4),
              Near({1.0049056f, 1.0030016f, 1.0017273f, 1.0007687f}, 1e-7f));
}

// lucidrains/rotary-embedding-torch#34: a scale that was repeated the other way than the channels
// are paired. There is one number a pair here, so the norm of each is multiplied by it.
TEST(XposScaleTest, B91_TheScaleWasRepeatedTheWrongWay) {
  const auto table = FillTable(Spec("xpos_scale { head_dim: 8 length: 4 }"), SelectRange(0, 4), {});
  ASSERT_TRUE(table.ok()) << table.status();
  for (const auto& tensor : table->tensors) EXPECT_EQ(tensor.As<float>().size(), 4u * 8 / 2);
}

// Correct rounding -------------------------------------------------------------------

Real Real0(int64_t n) { return Real::FromInt(n); }

Real SlowKerple(const v1::KerpleSpec& spec, int head, int64_t d) {
  const Real a = spec.a(head);
  const Real p = spec.p(head);
  if (spec.form() == v1::KERPLE_FORM_POWER) return -(a * Pow(Real0(d), p));
  if (spec.form() == v1::KERPLE_FORM_LOG_POWER) {
    return -(Real(spec.b(head)) * Log(Real(1.0) + a * Pow(Real0(d), p)));
  }
  return -(p * Log(Real(1.0) + a * Real0(d)));
}

// As the paper has it, a sum of cosines less its value at distance 0.
Real SlowSandwich(const v1::SandwichSpec& spec, int head, int64_t d) {
  Real sum = -Real0(spec.d_model() / 2);
  for (int64_t k = 1; k <= spec.d_model() / 2; ++k) {
    const Real w = Pow(Real(10000.0), Real0(-2 * k) / Real0(spec.d_model()));
    sum = sum + Cos(Real0(d) * w);
  }
  return sum * Real0(spec.num_heads()) / Real0(8 * (head + 1));
}

Real SlowFire(int64_t query, int64_t d) {
  const Real c = 0.1;
  const Real extent = Real0(std::max<int64_t>(query, 512));
  return Log(c * Real0(d) + 1.0) / (Log(c * extent + 1.0) + 1e-6);
}

// The sum term by term.
Real SlowRetnet(bool normalized, int head, int64_t query, int64_t keys, int64_t d) {
  const Real gamma = Real(1.0) - Real(std::ldexp(1.0, -5 - head));
  Real sum = 0.0;
  for (int64_t key = 0; key <= query && key < keys; ++key) {
    sum = sum + Pow(gamma, Real0(query - key));
  }
  const Real power = Pow(gamma, Real0(d));
  return normalized ? power / Sqrt(sum) : power;
}

// Row `query` of every head in f64 against value(head, distance).
template <typename Value>
void ExpectCorrectlyRounded64(const std::string& spec, int64_t query, int64_t keys, Value value) {
  const auto got = FillOne(spec, SelectGrid(1, keys, query), "dtype: DTYPE_F64").As<double>();
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t distance = query - static_cast<int64_t>(i) % keys;
    const Real want = distance < 0
                          ? Real(0.0)
                          : value(static_cast<int>(static_cast<int64_t>(i) / keys), distance);
    ASSERT_EQ(got[i], want.ToDouble()) << spec << " element " << i;
  }
}

// Row `query` of every head in the other dtypes against value(head, distance).
template <typename Value>
void ExpectCorrectlyRounded(const std::string& spec, int64_t query, int64_t keys, Value value) {
  const FilledTensor f32 = FillOne(spec, SelectGrid(1, keys, query));
  const std::vector<float> got32 = f32.As<float>();
  const auto got16 = FillOne(spec, SelectGrid(1, keys, query), "dtype: DTYPE_F16").As<uint16_t>();
  const auto got_bf16 =
      FillOne(spec, SelectGrid(1, keys, query), "dtype: DTYPE_BF16").As<uint16_t>();
  for (size_t i = 0; i < got32.size(); ++i) {
    const int64_t distance = query - static_cast<int64_t>(i) % keys;
    if (distance < 0) {
      ASSERT_EQ(std::bit_cast<uint32_t>(got32[i]), 0u);
      continue;
    }
    const Real want = value(static_cast<int>(static_cast<int64_t>(i) / keys), distance);
    ASSERT_EQ(got32[i], want.ToFloat()) << spec << " element " << i;
    ASSERT_EQ(F16ToFloat(got16[i]), F16ToFloat(want.ToF16())) << spec << " element " << i;
    ASSERT_EQ(Bf16ToFloat(got_bf16[i]), Bf16ToFloat(want.ToBf16())) << spec << " element " << i;
  }
}

TEST(KerpleTest, IsCorrectlyRounded) {
  for (const char* text : {kLogKerple, kPowerKerple, kNemoKerple}) {
    const auto spec = Canonicalize(Spec(text));
    ASSERT_TRUE(spec.ok()) << spec.status();
    for (const int64_t query : {int64_t{60}, int64_t{2000000000}}) {
      const auto value = [&](int head, int64_t d) {
        return SlowKerple(spec->proto().kerple(), head, d);
      };
      ExpectCorrectlyRounded(text, query, 70, value);
      ExpectCorrectlyRounded64(text, query, 70, value);
    }
  }
}

TEST(SandwichTest, IsCorrectlyRounded) {
  for (const int64_t query : {int64_t{20}, int64_t{2000000000}}) {
    ExpectCorrectlyRounded(kSandwich, query, 24, [&](int head, int64_t d) {
      return SlowSandwich(Spec(kSandwich).sandwich(), head, d);
    });
  }
}

TEST(FireTest, IsCorrectlyRounded) {
  for (const int64_t query : {int64_t{100}, int64_t{700}, int64_t{2000000000}}) {
    const auto value = [&](int, int64_t d) { return SlowFire(query, d); };
    ExpectCorrectlyRounded(kFire, query, 120, value);
    ExpectCorrectlyRounded64(kFire, query, 120, value);
  }
}

TEST(RetnetDecayTest, IsCorrectlyRounded) {
  for (const char* spec : {kRetnet, kPlainRetnet}) {
    // The last has its keys far before the query.
    for (const auto& [query, keys] : {std::pair<int64_t, int64_t>(30, 40), {900, 20}, {5000, 8}}) {
      const auto value = [&, q = query, k = keys](int head, int64_t d) {
        return SlowRetnet(spec == std::string(kRetnet), head, q, k, d);
      };
      ExpectCorrectlyRounded(spec, query, keys, value);
      ExpectCorrectlyRounded64(spec, query, keys, value);
    }
  }
}

TEST(RetnetDecayTest, ManyHeadsDecayTooLittleToSee) {
  const std::vector<float> decay = Bias("retnet_decay { num_heads: 64 }", SelectGrid(1, 4, 3));
  EXPECT_EQ(decay[63 * 4], 0.5f) << "four keys, each 1 / sqrt(4)";
}

TEST(XposScaleTest, PowersAreCorrectlyRoundedOfTheirFloat32Arguments) {
  const auto table = FillTable(Spec("xpos_scale { head_dim: 12 scale_base: 100 }"),
                               SelectIds({-700, -1, 0, 1, 33, 4096, 300000}), {});
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<float> zeta =
      FillOne("xpos_scale { head_dim: 12 }", {}, "layout: LAYOUT_XPOS_ZETA").As<float>();
  const std::vector<float> query = table->tensors[0].As<float>();
  const std::vector<float> key = table->tensors[1].As<float>();
  size_t i = 0;
  for (const int64_t position : {-700, -1, 0, 1, 33, 4096, 300000}) {
    const float exponent = static_cast<float>(position) / 100.0f;
    for (const float z : zeta) {
      ASSERT_EQ(query[i],
                Pow(Real(static_cast<double>(z)), Real(static_cast<double>(exponent))).ToFloat());
      ASSERT_EQ(key[i], 1.0f / query[i]);
      ++i;
    }
  }
}

// Laws -----------------------------------------------------------------------------

TEST(DistanceBiasTest, FallsWithDistance) {
  for (const char* spec : {kLogKerple, kPowerKerple}) {
    const std::vector<float> bias = Bias(spec, SelectGrid(1, 500, 499));
    for (size_t key = 1; key < 500; ++key) ASSERT_GT(bias[key], bias[key - 1]) << spec;
  }
}

TEST(DistanceBiasTest, TheVectorHoldsEveryDiagonal) {
  for (const char* spec : {kLogKerple, kPowerKerple, kSandwich}) {
    const std::vector<float> matrix = Bias(spec, SelectGrid(5, 9, 4));
    const std::vector<float> vector =
        FillOne(spec, SelectGrid(5, 9, 4), "layout: LAYOUT_BIAS_VECTOR").As<float>();
    const size_t heads = vector.size() / 13;
    for (size_t h = 0; h < heads; ++h) {
      for (size_t q = 0; q < 5; ++q) {
        for (size_t k = 0; k < 9; ++k) {
          ASSERT_EQ(matrix[(h * 5 + q) * 9 + k], vector[h * 13 + 4 - q + k]) << spec;
        }
      }
    }
  }
}

TEST(DistanceBiasTest, AnySplitOfTheTableGivesTheSameBytes) {
  for (const char* spec : {kLogKerple, kPowerKerple, kNemoKerple, kSandwich, kFire, kRetnet}) {
    for (const int64_t units : {1, 7, 50}) {
      ExpectPartsEqualWhole(Spec(spec), SelectGrid(5, 9, 4), {}, units);
    }
  }
  ExpectPartsEqualWhole(Spec("xpos_scale { head_dim: 6 length: 9 }"), SelectRange(2, 9), {}, 3);
}

TEST(RetnetDecayTest, SquaresOfANormalizedRowSumToAtMostOne) {
  // The sum of gamma^(2d) is at most that of gamma^d.
  const std::vector<float> decay = Bias(kRetnet, SelectGrid(6, 6));
  for (size_t row = 0; row < 48; ++row) {
    float sum = 0;
    for (size_t k = 0; k < 6; ++k) sum += decay[row * 6 + k] * decay[row * 6 + k];
    ASSERT_LE(sum, 1.000001f);
  }
}

TEST(XposScaleTest, CentersTellTheirRoundingApart) {
  // torchscale: five rows run from -3 to 1; ports from -2 to 2.
  const auto first_one = [](const std::string& fields) {
    const auto table = FillTable(Spec("xpos_scale { head_dim: 2 length: 5 " + fields + " }"),
                                 SelectRange(0, 5), {});
    const std::vector<float> scale = table->tensors[0].As<float>();
    return std::find(scale.begin(), scale.end(), 1.0f) - scale.begin();
  };
  EXPECT_EQ(first_one(""), 3);
  EXPECT_EQ(first_one("center: XPOS_CENTER_HALF"), 2);
}

TEST(DistanceBiasTest, CanonicalizeIsIdempotent) {
  for (const char* spec : {kLogKerple, kPowerKerple, kNemoKerple, kSandwich, kFire, kRetnet,
                           "xpos_scale { head_dim: 8 }"}) {
    ExpectIdempotent(spec);
  }
}

TEST(KerpleTest, ParametersAreKeptWhereTheReferenceKeepsThem) {
  const auto spec = Canonicalize(Spec("kerple { form: KERPLE_FORM_POWER a: [0, 1] p: [0, 3] }"));
  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(spec->proto().kerple().a(), ElementsAre(0.01, 1));
  EXPECT_THAT(spec->proto().kerple().p(), ElementsAre(0.01, 2));
}

TEST(DistanceBiasTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"kerple {}", "kerple.a: is required: one number a head"},
      {"kerple { form: 7 }", "kerple.form: unknown value 7"},
      {"kerple { a: 1 }", "kerple.p: must have one number a head (1), got 0"},
      {"kerple { a: 1 p: [1, 2] }", "kerple.p: must have one number a head (1), got 2"},
      {"kerple { a: 1 p: 1 b: 1 }", "kerple.b: only LOG_POWER has one"},
      {"kerple { form: KERPLE_FORM_LOG_POWER a: 1 p: 1 }",
       "kerple.b: must have one number a head (1), got 0"},
      {"kerple { a: [1, -1] p: [1, 1] }", "kerple.a[1]: must be in [0, 1.09951e+12], got -1"},
      {"kerple { a: nan p: 1 }", "kerple.a[0]: must be in [0, 1.09951e+12], got nan"},
      {"kerple { form: KERPLE_FORM_POWER a: 1 p: 17 }", "kerple.p[0]: must be in [0, 16], got 17"},
      {"sandwich {}", "sandwich.num_heads: is required"},
      {"sandwich { num_heads: 0 }", "sandwich.num_heads: must be in [1, 65536], got 0"},
      {"sandwich { num_heads: 1 }", "sandwich.d_model: is required"},
      {"sandwich { num_heads: 1 d_model: 65 }", "sandwich.d_model: must be even, got 65"},
      {"fire { c: inf }", "fire.c: must be in [-1.09951e+12, 1.09951e+12], got inf"},
      {"fire { threshold: -1 }", "fire.threshold: must be in [0, 1.09951e+12], got -1"},
      {"fire { epsilon: 0 }", "fire.epsilon: must be in [1e-30, 1], got 0"},
      {"retnet_decay {}", "retnet_decay.num_heads: is required"},
      {"retnet_decay { num_heads: 65 }", "retnet_decay.num_heads: must be in [1, 64], got 65"},
      {"xpos_scale {}", "xpos_scale.head_dim: is required"},
      {"xpos_scale { head_dim: 7 }", "xpos_scale.head_dim: must be even, got 7"},
      {"xpos_scale { head_dim: 8 scale_base: 0 }",
       "xpos_scale.scale_base: must be in [9.53674e-07, 1.09951e+12], got 0"},
      {"xpos_scale { head_dim: 8 length: -1 }",
       "xpos_scale.length: must be in [0, 2147483648], got -1"},
      {"xpos_scale { head_dim: 8 center: 9 }", "xpos_scale.center: unknown value 9"}};
  for (const auto& [spec, message] : cases) EXPECT_EQ(SpecRefusal(spec), message);
}

TEST(DistanceBiasTest, BadTablesAreRefused) {
  EXPECT_EQ(TableRefusal(kSandwich, SelectGrid(2, 2), "dtype: DTYPE_F64"),
            "format.dtype: sandwich has f32, f16, bf16, got f64");
  EXPECT_EQ(TableRefusal(kFire, SelectGrid(2, 2), "layout: LAYOUT_BIAS_VECTOR"),
            "format.layout: fire has normalized_distance, got bias_vector");
  EXPECT_EQ(TableRefusal(kRetnet, SelectGrid(2, 2), "layout: LAYOUT_LOG_DECAY"),
            "selection: must be unset: this encoding has no coordinates but its own");
  EXPECT_EQ(TableRefusal("xpos_scale { head_dim: 8 }", SelectGrid(2, 2)),
            "selection: needs a position_range or position_ids for this encoding, got "
            "attention_grid");
}

}  // namespace
}  // namespace posenc::testing
