// How many values of a table are wrongly rounded, of a sample that MPFR computes too.
// rotation_full_table_test looks at every value of whole tables.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "posenc/client.h"
#include "posenc/embedded_connection.h"
#include "tests/bench/cases.h"
#include "tests/support/reference.h"

namespace posenc::bench {
namespace {

using testing::Real;

constexpr int64_t kPositions = 131072;
constexpr int64_t kPairs = 64;
constexpr int64_t kStep = 4099;  // prime: every pair and all of the positions
constexpr double kTheta = 500000;

std::vector<float> CosSinTable() {
  v1::GetTableRequest request;
  v1::RopeSpec* rope = request.mutable_spec()->mutable_rope();
  rope->set_head_dim(2 * kPairs);
  rope->set_rope_theta(kTheta);
  rope->set_arithmetic(v1::ARITHMETIC_EXACT);
  request.mutable_selection()->mutable_position_range()->set_end(kPositions);
  std::vector<float> values(kPositions * 2 * kPairs);
  absl::StatusOr<TableReader> table = Client(MakeEmbeddedConnection()).GetTable(request);
  if (!table.ok() || !table->Read(std::as_writable_bytes(std::span(values))).ok()) std::abort();
  return values;
}

double WronglyRounded() {
  const std::vector<float> table = CosSinTable();
  double wrong = 0;
  for (int64_t i = 0; i < kPositions * kPairs; i += kStep) {
    const int64_t position = i / kPairs;
    const int64_t pair = i % kPairs;
    const Real exponent = Real::FromInt(-pair) / Real::FromInt(kPairs);
    const Real angle = Real::FromInt(position) * Pow(Real(kTheta), exponent);
    const float* const row = table.data() + position * 2 * kPairs;
    wrong += row[pair] != Cos(angle).ToFloat();
    wrong += row[kPairs + pair] != Sin(angle).ToFloat();
  }
  return wrong;
}

}  // namespace

void AddAccuracyCases(Rounds* rounds) { rounds->Add("wrong exact", WronglyRounded); }

std::vector<Goal> AccuracyGoals() {
  return {{"G3", "RoPE EXACT f32 131072 x 64: wrongly rounded of 4094 sampled values",
           "wrong exact", "", 0}};
}

}  // namespace posenc::bench
