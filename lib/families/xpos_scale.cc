// xPos: what the rotated queries and keys are multiplied by, so that their product
// decays with distance.
//
//   XPOS_SCALE  query_scale, key_scale [R, head_dim / 2]: zeta[k]^(position / scale_base),
//               and one divided by it
//   XPOS_ZETA   xpos_zeta [head_dim / 2]: (2k + 0.4 head_dim) / (1.4 head_dim)
//
// torchscale counts positions from the middle of the sequence; `length` says how long it
// is. Rounded where its float32 code rounds: sums, quotients and powers.
// Sun et al., arXiv:2212.10554. reference/other-encodings.md, section 4.6.
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/log_exp.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

using v1::XposScaleSpec;

constexpr int64_t kMaxHeadDim = 65536;

absl::Status CanonicalizeXpos(XposScaleSpec* spec) {
  RETURN_IF_ERROR(CheckPresent("xpos_scale.head_dim", spec->has_head_dim()));
  RETURN_IF_ERROR(CheckInRange("xpos_scale.head_dim", spec->head_dim(), 2, kMaxHeadDim));
  if (spec->head_dim() % 2 != 0) {
    return FieldError("xpos_scale.head_dim", absl::StrCat("must be even, got ", spec->head_dim()));
  }
  if (!spec->has_scale_base()) spec->set_scale_base(512);
  RETURN_IF_ERROR(CheckInRange("xpos_scale.scale_base", spec->scale_base(), 0x1p-20, 0x1p40));
  if (!spec->has_length()) spec->set_length(0);
  RETURN_IF_ERROR(CheckInRange("xpos_scale.length", spec->length(), 0, kMaxPosition));
  RETURN_IF_ERROR(
      CheckEnum("xpos_scale.center", v1::XposCenter_IsValid(spec->center()), spec->center()));
  if (spec->center() == v1::XPOS_CENTER_UNSPECIFIED) {
    spec->set_center(v1::XPOS_CENTER_TORCHSCALE);
  }
  return absl::OkStatus();
}

std::vector<float> Zeta(int64_t head_dim) {
  const auto width = static_cast<double>(head_dim);
  const auto shift = static_cast<float>(0.4 * width);
  const auto divisor = static_cast<float>(1.4 * width);
  std::vector<float> zeta;
  for (int64_t k = 0; k < head_dim / 2; ++k) {
    zeta.push_back((static_cast<float>(2 * k) + shift) / divisor);
  }
  return zeta;
}

class XposScalePlan final : public Plan {
 public:
  explicit XposScalePlan(const XposScaleSpec& spec)
      : scale_base_(static_cast<float>(spec.scale_base())),
        center_(spec.center() == v1::XPOS_CENTER_HALF ? spec.length() / 2
                                                      : (spec.length() + 1) / 2),
        zeta_(Zeta(spec.head_dim())) {
    for (const float zeta : zeta_) {
      log_zeta_.push_back(DoubleDouble::From(Log(WideFloat::From(static_cast<double>(zeta)))));
    }
  }

  size_t bytes() const override {
    return zeta_.capacity() * sizeof(float) + log_zeta_.capacity() * sizeof(DoubleDouble);
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    if (shape.format.layout() == v1::LAYOUT_XPOS_ZETA) {
      const size_t count = out.size() / static_cast<size_t>(ElementBytes(dtype));
      return StoreFloats(std::span(zeta_).subspan(static_cast<size_t>(begin), count), dtype, out);
    }
    const auto width = static_cast<int64_t>(zeta_.size());
    const auto row_bytes = static_cast<size_t>(width * ElementBytes(dtype));
    std::vector<float> row(zeta_.size());
    for (int64_t r = begin / width; !out.empty(); ++r) {
      const auto position = static_cast<float>(PositionAt(shape.selection, r) - center_);
      FillRow(position / scale_base_, /*inverse=*/tensor == 1, row);
      StoreFloats(row, dtype, out.first(row_bytes));
      out = out.subspan(row_bytes);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  void FillRow(float exponent, bool inverse, std::vector<float>& row) const {
    for (size_t k = 0; k < row.size(); ++k) {
      const float scale = PowerOf(k, exponent);
      row[k] = inverse ? 1.0f / scale : scale;
    }
  }

  // PowF(zeta_[k], exponent), mostly without its cost.
  float PowerOf(size_t k, float exponent) const {
    const DoubleDouble x = log_zeta_[k] * static_cast<double>(exponent);
    if (x.hi > 90) return std::numeric_limits<float>::infinity();  // 2^128 is e^88.7
    if (x.hi < -105) return 0;                                     // 2^-150 is e^-103.98
    const double near = ExpOf(x);
    const auto low = static_cast<float>(near - near * 2 * kExpError);
    const auto high = static_cast<float>(near + near * 2 * kExpError);
    return low == high ? low : PowF(zeta_[k], exponent);
  }

  float scale_base_;
  int64_t center_;           // position of the row that is 1
  std::vector<float> zeta_;  // [head_dim / 2], in (0, 1)
  std::vector<DoubleDouble> log_zeta_;
};

const v1::Layout kLayouts[] = {v1::LAYOUT_XPOS_SCALE, v1::LAYOUT_XPOS_ZETA};

class XposScaleFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "xpos_scale"; }
  absl::string_view numerics_version() const override { return "xpos_scale-1"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override {
    return {std::begin(kLayouts), std::end(kLayouts)};
  }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeXpos(spec->mutable_xpos_scale());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const int64_t width = spec.proto().xpos_scale().head_dim() / 2;
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    const v1::DType dtype = shape.format.dtype();
    if (shape.format.layout() == v1::LAYOUT_XPOS_ZETA) {
      RETURN_IF_ERROR(ResolveNoSelection(selection));
      shape.tensors = {{.name = "xpos_zeta", .dtype = dtype, .shape = {width}, .unit = 1}};
      return shape;
    }
    ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, 1 - kMaxPosition));
    for (const char* name : {"query_scale", "key_scale"}) {
      shape.tensors.push_back({.name = name,
                               .dtype = dtype,
                               .shape = {positions.count, width},
                               .unit = width,
                               .origin = positions.origin * width});
    }
    shape.selection = std::move(positions.selection);
    shape.coordinates_key = std::move(positions.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<XposScalePlan>(spec.proto().xpos_scale());
  }
};

}  // namespace

const Family& XposScaleFamily() {
  static const XposScaleFamilyImpl family;
  return family;
}

}  // namespace posenc
