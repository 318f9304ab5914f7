// Sandwich: the dot product of two sinusoidal encodings, without its mean, as a bias.
//
//   bias(head n, distance) = (sum over k of cos(distance w_k) - d_model / 2)
//                            / (8 n / num_heads),  n = 1 ... num_heads
//   w_k = 10000^(-2k / d_model),  k = 1 ... d_model / 2 (from 1 on)
//
// distance = query - key; keys after the query have 0, and masking them is the
// caller's. The real number, rounded once to the dtype; near the diagonal it is a small
// difference of large numbers, so it is summed as -2 sin^2(distance w_k / 2).
// Chi et al., arXiv:2212.10356, as NeMo has it. reference/other-encodings.md, 4.6.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/distance_bias.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/numeric/sin_cos.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

using v1::SandwichSpec;

constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxDModel = 65536;
constexpr int64_t kBase = 10000;

absl::Status CanonicalizeSandwich(SandwichSpec* spec) {
  RETURN_IF_ERROR(CheckPresent("sandwich.num_heads", spec->has_num_heads()));
  RETURN_IF_ERROR(CheckInRange("sandwich.num_heads", spec->num_heads(), 1, kMaxHeads));
  RETURN_IF_ERROR(CheckPresent("sandwich.d_model", spec->has_d_model()));
  RETURN_IF_ERROR(CheckInRange("sandwich.d_model", spec->d_model(), 2, kMaxDModel));
  if (spec->d_model() % 2 != 0) {
    return FieldError("sandwich.d_model", absl::StrCat("must be even, got ", spec->d_model()));
  }
  return absl::OkStatus();
}

class SandwichFunction final : public DistanceFunction {
 public:
  explicit SandwichFunction(const SandwichSpec& spec) : num_heads_(spec.num_heads()) {
    // Half of each frequency, in turns per unit of distance.
    const WideFloat quarter_pi_inverse = kWideInverseTwoPi * WideFloat::From(0.5);
    for (int64_t k = 1; k <= spec.d_model() / 2; ++k) {
      const WideFloat exponent = WideFloat::FromInt(-2 * k) / WideFloat::FromInt(spec.d_model());
      wide_turns_.push_back(Pow(WideFloat::FromInt(kBase), exponent) * quarter_pi_inverse);
      turns_.push_back(DoubleDouble::From(wide_turns_.back()));
    }
  }

  NearValue Near(int64_t head, int64_t distance) const override {
    const auto x = static_cast<double>(distance);
    double sum = 0;
    double error = 0;  // absolute
    for (const DoubleDouble& turns : turns_) {
      const double sine = SinCosOfTurns(x, turns).sin;
      sum += sine * sine;
      error += std::fabs(sine) * kReductionError * x;
    }
    // Of each square, and of adding as many of one sign.
    error = 2 * error + sum * (4 * kSinCosError + static_cast<double>(turns_.size()) * 0x1p-52);
    const double scale = Scale(head);
    return {0 - scale * sum, 2 * scale * error};
  }

  WideFloat Exact(int64_t head, int64_t distance) const override {
    WideFloat sum;
    for (const WideFloat& turns : wide_turns_) {
      const WideFloat sine = SinCosOfTurns(turns * WideFloat::FromInt(distance)).sin;
      sum = sum + sine * sine;
    }
    return -(sum * WideFloat::FromInt(num_heads_) / WideFloat::FromInt(4 * (head + 1)));
  }

  size_t bytes() const override {
    return turns_.capacity() * sizeof(DoubleDouble) + wide_turns_.capacity() * sizeof(WideFloat);
  }

 private:
  // 2 / (8 n / num_heads).
  double Scale(int64_t head) const {
    return static_cast<double>(num_heads_) / static_cast<double>(4 * (head + 1));
  }

  int64_t num_heads_;
  std::vector<DoubleDouble> turns_;    // [d_model / 2]
  std::vector<WideFloat> wide_turns_;  // the same
};

class SandwichFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "sandwich"; }
  absl::string_view numerics_version() const override { return "sandwich-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_BIAS, v1::LAYOUT_BIAS_VECTOR};
  }
  // Not f64: an element is a sum of d_model / 2 sines, each 10 us to 200 bits.
  std::vector<v1::DType> dtypes() const override {
    return {v1::DTYPE_F32, v1::DTYPE_F16, v1::DTYPE_BF16};
  }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeSandwich(spec->mutable_sandwich());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    v1::TensorFormat resolved = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &resolved));
    return ResolveDistanceBias("attention_bias", spec.proto().sandwich().num_heads(), selection,
                               std::move(resolved));
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return MakeDistanceBiasPlan(std::make_unique<SandwichFunction>(spec.proto().sandwich()));
  }
};

}  // namespace

const Family& SandwichFamily() {
  static const SandwichFamilyImpl family;
  return family;
}

}  // namespace posenc
