// M-RoPE: a rotary embedding whose positions have several axes.
//
// Each frequency of the RoPE turns by the position on one axis; which one is the
// scheme (mrope_schemes.h). Where a token's positions are equal, as in text, its row
// is that of the RoPE; position_range and position_ids ask for such rows.
//
//   INV_FREQ and the layouts of rows of rope_layout.h
//   POSITION_IDS  position_ids [axes, R] and rope_deltas [1]: largest + 1 - R
// Wang et al., arXiv:2409.12191; reference: hf-rope 3.3, serving-stacks 6.1.
// Frequencies: rope_frequencies.h. Positions of prompts: mrope_positions.h.
#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/canonical_key.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/grid_selection.h"
#include "lib/families/layout_dtypes.h"
#include "lib/families/mrope_positions.h"
#include "lib/families/mrope_schemes.h"
#include "lib/families/rope_frequencies.h"
#include "lib/families/rope_layout.h"
#include "lib/families/rope_scaling.h"
#include "lib/families/rotary_layout.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/rotation.h"

namespace posenc {
namespace {

// Canonicalize ----------------------------------------------------------------

// The RoPE's own errors name rope.x: here it is mrope.rope.x.
absl::Status CanonicalizeInner(v1::RopeSpec* rope) {
  v1::EncodingSpec wrapped;
  *wrapped.mutable_rope() = *rope;
  const absl::Status status = RopeFamily().Canonicalize(&wrapped);
  if (!status.ok()) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(status.message(), absl::MaxSplits(": ", 1));
    return FieldError(absl::StrCat("mrope.", parts.first), parts.second);
  }
  *rope = wrapped.rope();
  // Each axis has a rotation of its own, from one list of frequencies.
  const auto refuse = [](absl::string_view field) {
    return FieldError(absl::StrCat("mrope.rope.", field), "must be unset: M-RoPE has no such form");
  };
  if (rope->longrope().short_then_long()) return refuse("longrope.short_then_long");
  if (rope->longrope().divide_positions()) return refuse("longrope.divide_positions");
  if (rope->linear().divide_positions()) return refuse("linear.divide_positions");
  if (rope->scale_after_rounding()) return refuse("scale_after_rounding");
  return absl::OkStatus();
}

absl::Status CanonicalizeMrope(v1::MropeSpec* spec) {
  if (!spec->has_rope()) return FieldError("mrope.rope", "is required");
  RETURN_IF_ERROR(CanonicalizeInner(spec->mutable_rope()));
  if (spec->scheme() == v1::MROPE_SCHEME_UNSPECIFIED) {
    spec->set_scheme(v1::MROPE_SCHEME_CONTIGUOUS);
  }
  RETURN_IF_ERROR(CheckEnumUpTo("mrope.scheme", spec->scheme(), v1::MROPE_SCHEME_OPENPANGU));
  if (spec->scheme() == v1::MROPE_SCHEME_XDROPE && spec->rope().pairing() != v1::PAIRING_HALF) {
    return FieldError("mrope.rope.pairing", "must be half for xdrope");
  }
  return CheckMropeSections(*spec);
}

// Shapes ----------------------------------------------------------------------------

std::vector<Tensor> PositionTensors(int64_t axes, int64_t rows) {
  return {{.name = "position_ids", .dtype = v1::DTYPE_I32, .shape = {axes, rows}, .unit = 1},
          {.name = "rope_deltas", .dtype = v1::DTYPE_I32, .shape = {1}, .unit = 1}};
}

// Selection, its key, and the number of rows and the address of the first.
struct Rows {
  int64_t count = 0;
  int64_t first = 0;
};

absl::StatusOr<Rows> ResolveRows(const v1::MropeSpec& spec, const v1::Selection& selection,
                                 TableShape* shape) {
  const int64_t axes = spec.mrope_section_size();
  if (selection.has_position_range() || selection.has_position_ids()) {
    ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, 0));
    shape->selection = std::move(positions.selection);
    shape->coordinates_key = std::move(positions.coordinates_key);
    return Rows{positions.count, positions.origin};
  }
  v1::Selection ids = selection;
  if (selection.has_token_runs()) {
    if (axes != kMropeAxes) {
      return FieldError("selection.token_runs",
                        absl::StrCat("are positions on ", kMropeAxes, " axes, this encoding has ",
                                     axes, ": give axis_position_ids"));
    }
    ASSIGN_OR_RETURN(*ids.mutable_axis_position_ids(), PositionsOfRuns(selection.token_runs()));
  } else if (!selection.has_axis_position_ids()) {
    return WrongSelection(selection,
                          "axis_position_ids, token_runs, a position_range or position_ids");
  }
  ASSIGN_OR_RETURN(ResolvedAxisIds resolved, ResolveAxisIds(ids, axes));
  shape->selection = std::move(resolved.selection);
  shape->coordinates_key = std::move(resolved.coordinates_key);
  return Rows{resolved.count, 0};
}

// The position of row `row` on an axis.
int64_t PositionOn(const v1::Selection& selection, size_t axis, int64_t row) {
  if (!selection.has_axis_position_ids()) return PositionAt(selection, row);
  return selection.axis_position_ids().axes(static_cast<int>(axis)).ids(static_cast<int>(row));
}

int32_t DeltaOf(const v1::Selection& selection) {
  if (selection.has_axis_position_ids()) {
    return static_cast<int32_t>(RopeDelta(selection.axis_position_ids()));
  }
  if (selection.has_position_range()) {
    return static_cast<int32_t>(selection.position_range().begin());
  }
  v1::AxisPositionIds ids;
  *ids.add_axes()->mutable_ids() = selection.position_ids().ids();
  return static_cast<int32_t>(RopeDelta(ids));
}

// Plan --------------------------------------------------------------------------

using InvFreq = std::variant<std::vector<float>, std::vector<WideFloat>>;

InvFreq MakeInvFreq(const v1::RopeSpec& rope) {
  if (rope.arithmetic() == v1::ARITHMETIC_EXACT) return RopeInvFreqExact(rope);
  return RopeInvFreqFloat32(rope);
}

// One axis: its frequencies, and the slots that they belong to.
struct Axis {
  std::vector<uint32_t> slots;
  Rotation rotation;
};

Axis MakeAxis(const InvFreq& inv_freq, const std::vector<MropeSlot>& slots, size_t axis,
              double scale) {
  std::vector<uint32_t> mine;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].axis == axis) mine.push_back(static_cast<uint32_t>(s));
  }
  const auto select = [&](const auto& all) {
    std::remove_cvref_t<decltype(all)> selected;
    for (const uint32_t s : mine) selected.push_back(all[slots[s].frequency]);
    return selected;
  };
  Rotation rotation = std::holds_alternative<std::vector<float>>(inv_freq)
                          ? Rotation::Float32(select(std::get<0>(inv_freq)), scale)
                          : Rotation::Exact(select(std::get<1>(inv_freq)), scale);
  return {std::move(mine), std::move(rotation)};
}

class MropePlan final : public Plan {
 public:
  explicit MropePlan(const v1::MropeSpec& spec)
      : attention_factor_(RopeAttentionFactor(spec.rope())),
        inv_freq_(MakeInvFreq(spec.rope())),
        layout_(MropeLayout(spec)) {
    const std::vector<MropeSlot> slots = MropeSlots(spec);
    for (int axis = 0; axis < spec.mrope_section_size(); ++axis) {
      axes_.push_back(MakeAxis(inv_freq_, slots, static_cast<size_t>(axis), attention_factor_));
    }
  }

  double attention_factor() const override { return attention_factor_; }

  size_t bytes() const override {
    size_t bytes = sizeof(*this) + layout_.channel_pairs.size() * sizeof(uint32_t);
    for (const Axis& axis : axes_) bytes += axis.rotation.bytes();
    return bytes + std::visit([](const auto& f) { return f.size() * sizeof(f[0]); }, inv_freq_);
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    std::visit(
        [&](const auto& inv_freq) {
          for (const auto& f : inv_freq) response->add_inv_freq(RoundFrequency<double>(f));
        },
        inv_freq_);
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    switch (shape.tensors[tensor].dtype) {
      case v1::DTYPE_I32:
        return FillPositions(shape.selection, tensor, begin, shape.tensors[0].shape[1], out);
      case v1::DTYPE_F64:
        return FillAs<double>(shape, tensor, begin, out);
      case v1::DTYPE_F16:
        return FillAs<F16>(shape, tensor, begin, out);
      case v1::DTYPE_BF16:
        return FillAs<Bf16>(shape, tensor, begin, out);
      default:
        return FillAs<float>(shape, tensor, begin, out);
    }
  }

 private:
  template <typename Element, typename Number>
  static Element RoundFrequency(const Number& value) {
    if constexpr (std::is_same_v<Number, WideFloat>) {
      return RoundWideTo<Element>(value);
    } else {
      return RoundTo<Element>(value);
    }
  }

  static void FillPositions(const v1::Selection& selection, size_t tensor, int64_t begin,
                            int64_t rows, std::span<std::byte> out) {
    auto* ids = reinterpret_cast<int32_t*>(out.data());
    if (tensor == 1) {
      *ids = DeltaOf(selection);
      return;
    }
    // A range's rows are addressed from its begin on, these elements from 0.
    const int64_t first = selection.has_position_range() ? selection.position_range().begin() : 0;
    const auto count = static_cast<int64_t>(out.size() / sizeof(int32_t));
    for (int64_t a = begin; a < begin + count; ++a) {
      *ids++ = static_cast<int32_t>(
          PositionOn(selection, static_cast<size_t>(a / rows), first + a % rows));
    }
  }

  template <typename Element>
  void FillAs(const TableShape& shape, size_t tensor, int64_t begin,
              std::span<std::byte> out) const {
    auto* elements = reinterpret_cast<Element*>(out.data());
    const auto count = static_cast<int64_t>(out.size() / sizeof(Element));
    if (shape.format.layout() == v1::LAYOUT_INV_FREQ) {
      return std::visit(
          [&](const auto& inv_freq) {
            for (int64_t i = begin; i < begin + count; ++i) {
              *elements++ = RoundFrequency<Element>(inv_freq[static_cast<size_t>(i)]);
            }
          },
          inv_freq_);
    }
    const int64_t width = shape.tensors[tensor].unit;
    std::vector<Element> cos(static_cast<size_t>(layout_.pairs));
    std::vector<Element> sin(cos.size());
    std::vector<Element> scratch(2 * cos.size());
    for (int64_t row = begin / width; row < (begin + count) / width; ++row, elements += width) {
      FillSlots<Element>(shape.selection, row, cos, sin, scratch);
      WriteRotaryRow<Element>(shape.format.layout(), tensor, layout_, cos, sin, elements);
    }
  }

  // The cosines and sines of a row, slot by slot.
  template <typename Element>
  void FillSlots(const v1::Selection& selection, int64_t row, std::span<Element> cos,
                 std::span<Element> sin, std::span<Element> scratch) const {
    for (size_t a = 0; a < axes_.size(); ++a) {
      const Axis& axis = axes_[a];
      Element* axis_cos = scratch.data();
      Element* axis_sin = axis_cos + axis.slots.size();
      axis.rotation.Fill(PositionOn(selection, a, row),
                         RotationRows<Element>{.count = 1, .cos = axis_cos, .sin = axis_sin});
      for (size_t i = 0; i < axis.slots.size(); ++i) {
        cos[axis.slots[i]] = axis_cos[i];
        sin[axis.slots[i]] = axis_sin[i];
      }
    }
  }

  const double attention_factor_;
  const InvFreq inv_freq_;  // [rotary_dim / 2], radians per position
  const RotaryLayout layout_;
  std::vector<Axis> axes_;
};

// Family -------------------------------------------------------------------------

const std::vector<LayoutDTypes>& Formats() {
  static const std::vector<LayoutDTypes> formats = [] {
    std::vector<LayoutDTypes> all;
    for (const v1::Layout layout : RopeRowLayouts()) all.push_back({layout, FloatDTypes()});
    all.push_back({v1::LAYOUT_INV_FREQ, FloatDTypes()});
    all.push_back({v1::LAYOUT_POSITION_IDS, {v1::DTYPE_I32}});
    return all;
  }();
  return formats;
}

class MropeFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "mrope"; }
  absl::string_view numerics_version() const override { return "mrope-1"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override { return LayoutsOf(Formats()); }
  std::vector<v1::DType> dtypes() const override { return DTypesOf(Formats()); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeMrope(spec->mutable_mrope());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& canonical, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::MropeSpec& spec = canonical.proto().mrope();
    const bool xdrope = spec.scheme() == v1::MROPE_SCHEME_XDROPE;
    TableShape shape;
    shape.format = format;
    if (xdrope && format.layout() == v1::LAYOUT_UNSPECIFIED) {
      shape.format.set_layout(v1::LAYOUT_COS_AND_SIN_FULL);
    }
    RETURN_IF_ERROR(ResolveFormat(*this, Formats(), &shape.format));
    const v1::Layout layout = shape.format.layout();
    const v1::DType dtype = shape.format.dtype();
    if (layout == v1::LAYOUT_INV_FREQ) {
      // Frequencies have no coordinates: a selection is checked, then left out.
      if (selection.coordinates_case() != v1::Selection::COORDINATES_NOT_SET) {
        TableShape ignored;
        RETURN_IF_ERROR(ResolveRows(spec, selection, &ignored).status());
      }
      shape.tensors = {
          {.name = "inv_freq", .dtype = dtype, .shape = {spec.rope().rotary_dim() / 2}, .unit = 1}};
      return shape;
    }
    ASSIGN_OR_RETURN(const Rows rows, ResolveRows(spec, selection, &shape));
    if (layout == v1::LAYOUT_POSITION_IDS) {
      // Addressed by axis, not by position: a range decides them too.
      shape.coordinates_key = CanonicalKey(shape.selection);
      shape.tensors = PositionTensors(spec.mrope_section_size(), rows.count);
      return shape;
    }
    if (xdrope && layout != v1::LAYOUT_COS_AND_SIN_FULL) {
      return FieldError("format.layout",
                        "must be cos_and_sin_full for xdrope, where the two channels of a pair "
                        "may turn by different axes");
    }
    Positions positions;
    positions.count = rows.count;
    positions.origin = rows.first;
    shape.tensors = RopeTensors(layout, dtype, spec.rope().rotary_dim(), positions);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<MropePlan>(spec.proto().mrope());
  }
};

}  // namespace

const Family& MropeFamily() {
  static const MropeFamilyImpl family;
  return family;
}

}  // namespace posenc
