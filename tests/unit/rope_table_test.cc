// RoPE tables: tensors, layouts, selections, and the laws of rotations.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
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

Real DefaultFrequency(double theta, int64_t dim, size_t i) {
  return Pow(Real(theta), -(Real::FromInt(2 * static_cast<int64_t>(i)) / Real::FromInt(dim)));
}

constexpr char kSmall[] = "rope { head_dim: 12 rotary_dim: 10 arithmetic: ARITHMETIC_EXACT }";

TEST(RopeTableTest, TensorsHaveTheContractsNamesAndShapes) {
  const auto tensors = [](const char* layout) {
    std::vector<std::pair<std::string, std::vector<int64_t>>> result;
    const auto table = FillTable(Spec(kSmall), SelectRange(3, 10),
                                 Format(absl::StrCat("layout: LAYOUT_", layout)));
    EXPECT_TRUE(table.ok()) << table.status();
    for (const FilledTensor& filled : table->tensors) {
      EXPECT_EQ(filled.tensor.dtype, v1::DTYPE_F32);
      result.emplace_back(filled.tensor.name, filled.tensor.shape);
    }
    return result;
  };
  using Shape = std::vector<int64_t>;
  EXPECT_THAT(tensors("UNSPECIFIED"), ElementsAre(std::pair("cos_sin_cache", Shape{7, 10})));
  EXPECT_THAT(tensors("COS_SIN"), ElementsAre(std::pair("cos_sin_cache", Shape{7, 10})));
  EXPECT_THAT(tensors("COS_AND_SIN_HALF"), ElementsAre(std::pair("cos_cache", Shape{7, 5}),
                                                       std::pair("sin_cache", Shape{7, 5})));
  EXPECT_THAT(tensors("COS_AND_SIN_FULL"),
              ElementsAre(std::pair("cos", Shape{7, 10}), std::pair("sin", Shape{7, 10})));
  EXPECT_THAT(tensors("SIN_COS"), ElementsAre(std::pair("sin_cos_cache", Shape{7, 10})));
  EXPECT_THAT(tensors("ROTATION_MATRIX"),
              ElementsAre(std::pair("rotation_matrix", Shape{7, 5, 2, 2})));
  EXPECT_THAT(tensors("PAIRS"), ElementsAre(std::pair("freqs_cis", Shape{7, 5, 2})));
  EXPECT_THAT(tensors("INV_FREQ"), ElementsAre(std::pair("inv_freq", Shape{5})));
}

double ToDouble(double value) { return value; }
double ToDouble(F16 value) { return F16ToFloat(value.bits); }
double ToDouble(Bf16 value) { return Bf16ToFloat(value.bits); }

// A table by a function of (row, pair): the layouts say only where a value stands.
template <typename Element>
void ExpectLayouts(const std::string& dtype, v1::Pairing pairing, v1::Arithmetic arithmetic) {
  v1::EncodingSpec spec = Spec(kSmall);
  spec.mutable_rope()->set_pairing(pairing);
  spec.mutable_rope()->set_arithmetic(arithmetic);
  const auto table = [&](const char* layout) {
    return *FillTable(spec, SelectRange(100, 109),
                      Format(absl::StrCat("dtype: DTYPE_", dtype, " layout: LAYOUT_", layout)));
  };
  const std::vector<Element> cos_sin = table("COS_SIN").tensors[0].template As<Element>();
  const FilledTable half = table("COS_AND_SIN_HALF");
  const FilledTable full = table("COS_AND_SIN_FULL");
  const std::vector<Element> pairs = table("PAIRS").tensors[0].template As<Element>();
  const std::vector<Element> sin_cos = table("SIN_COS").tensors[0].template As<Element>();
  const std::vector<Element> matrices = table("ROTATION_MATRIX").tensors[0].template As<Element>();
  for (size_t row = 0; row < 9; ++row) {
    for (size_t i = 0; i < 5; ++i) {
      for (size_t part = 0; part < 2; ++part) {
        const Element value = cos_sin[row * 10 + part * 5 + i];
        EXPECT_EQ(half.tensors[part].template As<Element>()[row * 5 + i], value);
        EXPECT_EQ(pairs[row * 10 + 2 * i + part], value);
        EXPECT_EQ(sin_cos[row * 10 + (1 - part) * 5 + i], value);
        // [[cos, -sin], [sin, cos]]
        const Element* matrix = matrices.data() + (row * 5 + i) * 4;
        EXPECT_EQ(matrix[2 * part], value);
        EXPECT_EQ(ToDouble(matrix[1 + 2 * part]),
                  ToDouble(matrix[part == 0 ? 2 : 0]) * (part == 0 ? -1 : 1));
        const auto doubled = full.tensors[part].template As<Element>();
        const bool interleaved = pairing == v1::PAIRING_INTERLEAVED;
        EXPECT_EQ(doubled[row * 10 + (interleaved ? 2 * i : i)], value);
        EXPECT_EQ(doubled[row * 10 + (interleaved ? 2 * i + 1 : i + 5)], value);
      }
    }
  }
}

TEST(RopeTableTest, LayoutsArePermutationsOfOneAnother) {
  for (const v1::Pairing pairing : {v1::PAIRING_HALF, v1::PAIRING_INTERLEAVED}) {
    for (const v1::Arithmetic arithmetic : {v1::ARITHMETIC_FLOAT32, v1::ARITHMETIC_EXACT}) {
      ExpectLayouts<float>("F32", pairing, arithmetic);
      ExpectLayouts<double>("F64", pairing, arithmetic);
      ExpectLayouts<F16>("F16", pairing, arithmetic);
      ExpectLayouts<Bf16>("BF16", pairing, arithmetic);
    }
  }
}

TEST(RopeTableTest, AnySelectionIsTheConcatenationOfItsRows) {
  const std::vector<int64_t> ids = {5, 6, 7, 7, 3, 131071, 0, 2147483647, 64, 65};
  for (const char* layout : {"COS_SIN", "SIN_COS", "COS_AND_SIN_HALF", "COS_AND_SIN_FULL",
                             "COS_AND_SIN_REPEATED", "PAIRS", "ROTATION_MATRIX"}) {
    for (const char* dtype : {"F32", "F64", "F16", "BF16"}) {
      for (const char* spec : {kSmall, "rope { head_dim: 10 pairing: PAIRING_INTERLEAVED }"}) {
        const v1::TensorFormat format =
            Format(absl::StrCat("dtype: DTYPE_", dtype, " layout: LAYOUT_", layout));
        const FilledTable all = *FillTable(Spec(spec), SelectIds(ids), format);
        std::vector<std::vector<std::byte>> rows(all.tensors.size());
        for (const int64_t id : ids) {
          const FilledTable one = *FillTable(Spec(spec), SelectRange(id, id + 1), format);
          for (size_t t = 0; t < rows.size(); ++t) {
            rows[t].insert(rows[t].end(), one.tensors[t].bytes.begin(), one.tensors[t].bytes.end());
          }
        }
        for (size_t t = 0; t < rows.size(); ++t) EXPECT_EQ(all.tensors[t].bytes, rows[t]) << layout;
        ExpectPartsEqualWhole(Spec(spec), SelectRange(60, 140), format, 7);
        ExpectPartsEqualWhole(Spec(spec), SelectIds(ids), format, 3);
      }
    }
  }
}

TEST(RopeTableTest, EmptySelectionsAreValid) {
  EXPECT_TRUE(FillOne(kSmall, SelectRange(5, 5)).bytes.empty());
  EXPECT_TRUE(FillOne(kSmall, SelectIds({})).bytes.empty());
}

TEST(RopeTableTest, FrequenciesNeedNoSelectionAndDoNotDependOnOne) {
  const std::string format = "layout: LAYOUT_INV_FREQ dtype: DTYPE_F64";
  const FilledTensor alone = FillOne(kSmall, v1::Selection(), format);
  EXPECT_EQ(alone.bytes, FillOne(kSmall, SelectRange(0, 9), format).bytes);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(alone.As<double>()[i], DefaultFrequency(1e4, 10, i).ToDouble());
  }
  ExpectPartsEqualWhole(Spec(kSmall), v1::Selection(), Format(format), 2);
  EXPECT_EQ(TableRefusal(kSmall, SelectRange(9, 3), format),
            "selection.position_range.end: must be at least begin (9), got 3");
}

TEST(RopeTableTest, DescriptionListsTheFrequencies) {
  const FilledTable table = *FillTable(Spec("rope { head_dim: 4 }"), SelectRange(0, 1), Format(""));
  EXPECT_THAT(table.description.inv_freq(), ElementsAre(1.0, 0.01f));
}

// The numbers of the founding text ------------------------------------------------

// A pair that turns by 10 degrees a position: rotary_dim 2 has the frequency 1,
// and linear scaling by 18/pi makes it pi/18.
constexpr char kTenDegrees[] =
    "rope { head_dim: 2 arithmetic: ARITHMETIC_EXACT linear { factor: 5.729577951308232 } }";

struct Vector2 {
  double x;
  double y;
};

Vector2 Rotate(Vector2 v, double cos, double sin) {
  return {v.x * cos - v.y * sin, v.x * sin + v.y * cos};
}

TEST(RopeTableTest, ScoresOfTenDegreesAStepDependOnTheDistanceOnly) {
  const std::vector<double> rows =
      FillOne(kTenDegrees, SelectRange(0, 9), "layout: LAYOUT_PAIRS dtype: DTYPE_F64").As<double>();
  const auto rotated = [&](size_t position) {
    return Rotate({1, 0}, rows[2 * position], rows[2 * position + 1]);
  };
  const double cos20 = Cos(Real::Pi() / Real(9.0)).ToDouble();
  for (const auto& [query, key] : {std::pair<size_t, size_t>{3, 5}, {6, 8}}) {
    const Vector2 q = rotated(query);
    const Vector2 k = rotated(key);
    EXPECT_NEAR(q.x * k.x + q.y * k.y, cos20, 4e-16);
  }
  EXPECT_NEAR(rotated(3).x, std::sqrt(3.0) / 2, 2e-16);
  EXPECT_NEAR(rotated(3).y, 0.5, 2e-16);
}

// cos and sin are within half an ulp, so two rotations and one differ by a few.
constexpr double kComposition = 4 * 0x1p-53;

TEST(RopeTableTest, RotatingByPThenQIsRotatingByPPlusQ) {
  const std::string spec = "rope { head_dim: 64 rope_theta: 5e5 arithmetic: ARITHMETIC_EXACT }";
  const std::string format = "layout: LAYOUT_PAIRS dtype: DTYPE_F64";
  for (const auto& [p, q] : {std::pair<int64_t, int64_t>{0, 0},
                             {1, 1},
                             {1000, 24},
                             {131071, 1},
                             {999999937, 1147483710}}) {
    const std::vector<double> rows = FillOne(spec, SelectIds({p, q, p + q}), format).As<double>();
    for (size_t i = 0; i < 32; ++i) {
      const Vector2 both =
          Rotate({rows[2 * i], rows[2 * i + 1]}, rows[64 + 2 * i], rows[65 + 2 * i]);
      EXPECT_NEAR(both.x, rows[128 + 2 * i], kComposition) << p << " + " << q << ", pair " << i;
      EXPECT_NEAR(both.y, rows[129 + 2 * i], kComposition) << p << " + " << q << ", pair " << i;
    }
  }
}

}  // namespace
}  // namespace posenc::testing
