// KERPLE: a bias that falls with the logarithm or a power of distance, one kernel a
// head, with parameters that the caller's model has learned.
//
//   LOG        -p ln(1 + a distance)
//   POWER      -a distance^p
//   LOG_POWER  -b ln(1 + a distance^p)
//
// distance = query - key; keys after the query have 0, and masking them is the
// caller's. The real number, rounded once to the dtype. Chi et al., arXiv:2205.09921;
// NeMo's form is LOG_POWER. reference/other-encodings.md, section 4.6.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
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

using v1::KerpleSpec;
using Parameters = google::protobuf::RepeatedField<double>;

constexpr int kMaxHeads = 65536;
constexpr double kMaxFactor = 0x1p40;  // of a and b: no result leaves double's range
constexpr double kMaxPower = 16;
// The reference keeps its parameters at least this large, and powers at most 2.
constexpr double kLeastParameter = 0.01;
constexpr double kLargestPower = 2;

// Canonicalize -----------------------------------------------------------------

absl::Status CheckParameters(absl::string_view name, int heads, double max,
                             const Parameters& values) {
  const std::string field = absl::StrCat("kerple.", name);
  if (values.size() != heads) {
    return FieldError(
        field, absl::StrCat("must have one number a head (", heads, "), got ", values.size()));
  }
  for (int i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(CheckInRange(absl::StrCat(field, "[", i, "]"), values[i], 0.0, max));
  }
  return absl::OkStatus();
}

void Clamp(double least, double most, Parameters* values) {
  for (double& value : *values) value = std::clamp(value, least, most);
}

absl::Status CanonicalizeKerple(KerpleSpec* spec) {
  RETURN_IF_ERROR(CheckEnum("kerple.form", v1::KerpleForm_IsValid(spec->form()), spec->form()));
  if (spec->form() == v1::KERPLE_FORM_UNSPECIFIED) spec->set_form(v1::KERPLE_FORM_LOG);
  const int heads = spec->a_size();
  if (heads == 0) return FieldError("kerple.a", "is required: one number a head");
  RETURN_IF_ERROR(CheckInRange("kerple.a", int64_t{heads}, 1, kMaxHeads));
  RETURN_IF_ERROR(CheckParameters("a", heads, kMaxFactor, spec->a()));
  const bool is_power = spec->form() != v1::KERPLE_FORM_LOG;
  RETURN_IF_ERROR(CheckParameters("p", heads, is_power ? kMaxPower : kMaxFactor, spec->p()));
  if (spec->form() == v1::KERPLE_FORM_LOG_POWER) {
    return CheckParameters("b", heads, kMaxFactor, spec->b());
  }
  if (spec->b_size() > 0) return FieldError("kerple.b", "only LOG_POWER has one");
  Clamp(kLeastParameter, kMaxFactor, spec->mutable_a());
  Clamp(kLeastParameter, is_power ? kLargestPower : kMaxFactor, spec->mutable_p());
  return absl::OkStatus();
}

// Values -----------------------------------------------------------------------

class KerpleFunction final : public DistanceFunction {
 public:
  explicit KerpleFunction(const KerpleSpec& spec) : spec_(spec) {}

  NearValue Near(int64_t head, int64_t distance) const override {
    const auto [a, p, b] = ParametersOf(head);
    const NearValue power = PowerOf(static_cast<double>(distance), p);
    if (spec_.form() == v1::KERPLE_FORM_POWER) {
      const double value = a * power.value;
      return {0 - value, a * power.error + kRounding * value};
    }
    // ln(1 + u) is off by no more than u is, relatively.
    const DoubleDouble u = TwoProduct(a, power.value);
    const double relative = power.value == 0 ? 0 : power.error / power.value;
    const double value = b * LogOfOnePlus(u);
    return {0 - value, value * (kLogError + relative + kRounding)};
  }

  WideFloat Exact(int64_t head, int64_t distance) const override {
    const auto [a, p, b] = ParametersOf(head);
    if (distance == 0) return Real(spec_.form(), a, b, WideFloat::FromInt(p == 0 ? 1 : 0));
    const WideFloat power = p == 1 ? WideFloat::FromInt(distance)
                                   : Pow(WideFloat::FromInt(distance), WideFloat::From(p));
    return Real(spec_.form(), a, b, power);
  }

  size_t bytes() const override { return spec_.SpaceUsedLong(); }

 private:
  struct HeadParameters {
    double a, p, b;
  };

  // Relative, of the roundings around the functions.
  static constexpr double kRounding = 0x1p-50;

  // LOG is -p ln(1 + a d): p is the factor, and the power is 1.
  HeadParameters ParametersOf(int64_t head) const {
    const int i = static_cast<int>(head);
    if (spec_.form() == v1::KERPLE_FORM_LOG) return {spec_.a(i), 1, spec_.p(i)};
    return {spec_.a(i), spec_.p(i), spec_.form() == v1::KERPLE_FORM_POWER ? 1 : spec_.b(i)};
  }

  // distance^p.
  static NearValue PowerOf(double distance, double p) {
    if (p == 1) return {distance, 0};
    if (distance == 0) return {p == 0 ? 1.0 : 0.0, 0};
    const double log = LogOf({distance, 0});
    const DoubleDouble exponent = TwoProduct(p, log);
    const double value = ExpOf(exponent);
    return {value, value * (2 * kExpError + 2 * kLogError * exponent.hi)};
  }

  static WideFloat Real(v1::KerpleForm form, double a, double b, const WideFloat& power) {
    const WideFloat u = WideFloat::From(a) * power;
    if (form == v1::KERPLE_FORM_POWER) return -u;
    return -(WideFloat::From(b) * Log(WideFloat::FromInt(1) + u));
  }

  const KerpleSpec spec_;
};

class KerpleFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "kerple"; }
  absl::string_view numerics_version() const override { return "kerple-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_BIAS, v1::LAYOUT_BIAS_VECTOR};
  }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeKerple(spec->mutable_kerple());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    v1::TensorFormat resolved = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &resolved));
    return ResolveDistanceBias("attention_bias", spec.proto().kerple().a_size(), selection,
                               std::move(resolved));
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return MakeDistanceBiasPlan(std::make_unique<KerpleFunction>(spec.proto().kerple()));
  }
};

}  // namespace

const Family& KerpleFamily() {
  static const KerpleFamilyImpl family;
  return family;
}

}  // namespace posenc
