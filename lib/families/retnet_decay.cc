// RetNet's decay: what retention multiplies scores by, in place of a softmax.
//
//   DECAY      decay_mask [H, Q, K]: gamma^(query - key), 0 after the query; normalized:
//              divided by the square root of the sum over the query's keys
//   LOG_DECAY  log_decay [H]: ln gamma
//
// gamma of head h is 1 - 2^(-5 - h). A query's sum is a geometric series, so a row
// needs none of the others. The real number, rounded once to the dtype.
// Sun et al., arXiv:2307.08621. reference/other-encodings.md, section 4.6.
#include <algorithm>
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

using v1::RetnetDecaySpec;

// 1 - gamma stays far above the last of WideFloat's bits.
constexpr int64_t kMaxHeads = 64;
// e^x is below half of the smallest number from here down: of float64's, and of
// float32's, which is below the others'.
constexpr double kVanishing64 = -746;
constexpr double kVanishing = -105;

absl::Status CanonicalizeRetnet(RetnetDecaySpec* spec) {
  RETURN_IF_ERROR(CheckPresent("retnet_decay.num_heads", spec->has_num_heads()));
  if (!spec->has_normalized()) spec->set_normalized(true);
  return CheckInRange("retnet_decay.num_heads", spec->num_heads(), 1, kMaxHeads);
}

// One head's gamma, and the sums of its powers.
class Decay {
 public:
  explicit Decay(int64_t head)
      : one_minus_gamma_exponent_(-5 - head),
        wide_log_(Log(WideFloat::FromInt(1) -
                      WideFloat::FromInt(1).TimesPowerOf2(one_minus_gamma_exponent_))),
        log_(DoubleDouble::From(wide_log_)) {}

  const WideFloat& wide_log() const { return wide_log_; }

  // Largest power of gamma in halves: gamma^(half_steps / 2).
  DoubleDouble Exponent(int64_t half_steps) const {
    return log_ * (0.5 * static_cast<double>(half_steps));
  }

  // 1 + gamma + ... + gamma^(terms - 1).
  double PowerSum(int64_t terms) const {
    const DoubleDouble exponent = Exponent(2 * terms);
    const double rest = exponent.hi < -kMaxExpArgument ? -1 : ExpMinusOneOf(exponent);
    return std::ldexp(-rest, static_cast<int>(-one_minus_gamma_exponent_));
  }

  WideFloat WidePower(int64_t half_steps) const {
    const WideFloat exponent = wide_log_ * WideFloat::FromInt(half_steps).TimesPowerOf2(-1);
    // e^-2048 is nothing beside 1, nor in any dtype.
    if (exponent < WideFloat::FromInt(-2048)) return WideFloat();
    return Exp(exponent);
  }

  WideFloat WidePowerSum(int64_t terms) const {
    return (WideFloat::FromInt(1) - WidePower(2 * terms)).TimesPowerOf2(-one_minus_gamma_exponent_);
  }

 private:
  int64_t one_minus_gamma_exponent_;
  WideFloat wide_log_;
  DoubleDouble log_;
};

class RetnetDecayPlan final : public Plan {
 public:
  explicit RetnetDecayPlan(const RetnetDecaySpec& spec) : normalized_(spec.normalized()) {
    for (int64_t head = 0; head < spec.num_heads(); ++head) heads_.emplace_back(head);
  }

  size_t bytes() const override { return heads_.capacity() * sizeof(Decay); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const int64_t width = ElementBytes(dtype);
    const int64_t end = begin + static_cast<int64_t>(out.size()) / width;
    if (shape.format.layout() == v1::LAYOUT_LOG_DECAY) {
      for (int64_t head = begin; head < end; ++head) {
        StoreElement(heads_[static_cast<size_t>(head)].wide_log(), dtype,
                     out.data() + (head - begin) * width);
      }
      return;
    }
    const v1::AttentionGrid& grid = shape.selection.attention_grid();
    const int64_t keys = grid.key_length();
    for (int64_t row = begin / keys; row * keys < end; ++row) {
      const int64_t first = std::max(begin, row * keys);
      const int64_t last = std::min(end, (row + 1) * keys);
      const Row query = {heads_[static_cast<size_t>(row / grid.query_length())],
                         grid.query_offset() + row % grid.query_length(), keys};
      FillRow(query, first - row * keys, last - row * keys, dtype,
              out.data() + (first - begin) * width);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  struct Row {
    const Decay& decay;
    int64_t query;
    int64_t keys;

    // Of its keys up to the query: how many, and the distance of the nearest.
    int64_t terms() const { return std::min(query + 1, keys); }
    int64_t nearest() const { return query + 1 - terms(); }
  };

  // gamma^(distance - nearest / 2) / sqrt(1 + gamma + ...), where the sum of the row is
  // gamma^nearest times that: nothing vanishes where keys end far before the query.
  int64_t HalfSteps(const Row& row, int64_t distance) const {
    return 2 * distance - (normalized_ ? row.nearest() : 0);
  }

  void FillRow(const Row& row, int64_t key_begin, int64_t key_end, v1::DType dtype,
               std::byte* out) const {
    const int64_t width = ElementBytes(dtype);
    const double norm = normalized_ ? std::sqrt(row.decay.PowerSum(row.terms())) : 1;
    const double vanishing = dtype == v1::DTYPE_F64 ? kVanishing64 : kVanishing;
    for (int64_t key = key_begin; key < key_end; ++key, out += width) {
      const int64_t distance = row.query - key;
      const DoubleDouble exponent = row.decay.Exponent(HalfSteps(row, distance));
      if (distance < 0 || exponent.hi < vanishing) {
        StoreElement(0.0f, dtype, out);
        continue;
      }
      const double value = ExpOf(exponent) / norm;
      StoreNear(
          {value, value * kValueError}, dtype, [&] { return Exact(row, distance); }, out);
    }
  }

  // Relative: of e^x, of half of e^x - 1 under the root, and four roundings.
  static constexpr double kValueError = 0x1p-48;
  static_assert(kValueError >= kExpError + kExpMinusOneError + 4 * 0x1p-53);

  WideFloat Exact(const Row& row, int64_t distance) const {
    const WideFloat power = row.decay.WidePower(HalfSteps(row, distance));
    return normalized_ ? power / Sqrt(row.decay.WidePowerSum(row.terms())) : power;
  }

  bool normalized_;
  std::vector<Decay> heads_;
};

const v1::Layout kLayouts[] = {v1::LAYOUT_DECAY, v1::LAYOUT_LOG_DECAY};

class RetnetDecayFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "retnet_decay"; }
  absl::string_view numerics_version() const override { return "retnet_decay-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {std::begin(kLayouts), std::end(kLayouts)};
  }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeRetnet(spec->mutable_retnet_decay());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    v1::TensorFormat resolved = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &resolved));
    const int64_t num_heads = spec.proto().retnet_decay().num_heads();
    if (resolved.layout() == v1::LAYOUT_DECAY) {
      return ResolveDistanceBias("decay_mask", num_heads, selection, std::move(resolved));
    }
    RETURN_IF_ERROR(ResolveNoSelection(selection));
    TableShape shape;
    shape.tensors = {
        {.name = "log_decay", .dtype = resolved.dtype(), .shape = {num_heads}, .unit = 1}};
    shape.format = std::move(resolved);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<RetnetDecayPlan>(spec.proto().retnet_decay());
  }
};

}  // namespace

const Family& RetnetDecayFamily() {
  static const RetnetDecayFamilyImpl family;
  return family;
}

}  // namespace posenc
