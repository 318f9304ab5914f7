// FIRE's input: the distance of a key, as a share of the query's position, on a
// logarithmic scale. What FIRE's network turns into a bias a head.
//
//   NORMALIZED_DISTANCE  normalized_distance [Q, K]:
//     psi(query - key) / (psi(max(query, threshold)) + epsilon), psi(x) = ln(|c| x + 1)
//
// It depends on the query's own position and not on the distance alone, so there is no
// vector form; keys after the query have 0. The real number, rounded once to the dtype.
// Li et al., arXiv:2310.04418. reference/other-encodings.md, section 4.6.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/distance_bias.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/numeric/log_exp.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

using v1::FireSpec;

// Of c and threshold: no product leaves what the logarithm takes.
constexpr double kMaxParameter = 0x1p40;

absl::Status CanonicalizeFire(FireSpec* spec) {
  if (!spec->has_c()) spec->set_c(0.1);
  if (!spec->has_threshold()) spec->set_threshold(512);
  if (!spec->has_epsilon()) spec->set_epsilon(1e-6);
  RETURN_IF_ERROR(CheckInRange("fire.c", spec->c(), -kMaxParameter, kMaxParameter));
  RETURN_IF_ERROR(CheckInRange("fire.threshold", spec->threshold(), 0.0, kMaxParameter));
  return CheckInRange("fire.epsilon", spec->epsilon(), 1e-30, 1.0);
}

class FirePlan final : public Plan {
 public:
  explicit FirePlan(const FireSpec& spec)
      : c_(std::fabs(spec.c())), threshold_(spec.threshold()), epsilon_(spec.epsilon()) {}

  size_t bytes() const override { return sizeof(*this); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const v1::AttentionGrid& grid = shape.selection.attention_grid();
    const int64_t width = ElementBytes(dtype);
    const int64_t end = begin + static_cast<int64_t>(out.size()) / width;
    for (int64_t row = begin / grid.key_length(); row * grid.key_length() < end; ++row) {
      const int64_t row_begin = row * grid.key_length();
      const int64_t first = std::max(begin, row_begin);
      const int64_t last = std::min(end, row_begin + grid.key_length());
      FillRow(grid.query_offset() + row, first - row_begin, last - row_begin, dtype,
              out.data() + (first - begin) * width);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  // Keys key_begin ... key_end - 1 of one query.
  void FillRow(int64_t query, int64_t key_begin, int64_t key_end, v1::DType dtype,
               std::byte* out) const {
    const int64_t width = ElementBytes(dtype);
    const double norm = Psi(Extent(query)) + epsilon_;
    for (int64_t key = key_begin; key < key_end; ++key, out += width) {
      if (key >= query) {
        StoreElement(0.0f, dtype, out);
        continue;
      }
      const double value = Psi(static_cast<double>(query - key)) / norm;
      StoreNear(
          {value, value * kValueError}, dtype, [&] { return Exact(query, key); }, out);
    }
  }

  // Relative: two logarithms, a sum, a quotient.
  static constexpr double kValueError = 0x1p-48;
  static_assert(kValueError >= 2 * kLogError + 4 * 0x1p-53);

  double Psi(double x) const { return LogOfOnePlus(TwoProduct(c_, x)); }

  double Extent(int64_t query) const { return std::fmax(static_cast<double>(query), threshold_); }

  WideFloat WidePsi(double x) const {
    return Log(WideFloat::FromInt(1) + WideFloat::From(c_) * WideFloat::From(x));
  }

  WideFloat Exact(int64_t query, int64_t key) const {
    return WidePsi(static_cast<double>(query - key)) /
           (WidePsi(Extent(query)) + WideFloat::From(epsilon_));
  }

  double c_;  // its magnitude
  double threshold_;
  double epsilon_;
};

class FireFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "fire"; }
  absl::string_view numerics_version() const override { return "fire-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_NORMALIZED_DISTANCE}; }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeFire(spec->mutable_fire());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec&, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
    shape.tensors = {{.name = "normalized_distance",
                      .dtype = shape.format.dtype(),
                      .shape = {grid.query_length, grid.key_length},
                      .unit = 1}};
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<FirePlan>(spec.proto().fire());
  }
};

}  // namespace

const Family& FireFamily() {
  static const FireFamilyImpl family;
  return family;
}

}  // namespace posenc
