// RoPE over the patches of an image or a video: each axis of the grid turns
// channels of its own.
//
// A token at (t, y, x) has rotary_dim / 2 pairs. Axis a turns pair (a, k) by
//   coordinate_a · frequency_{a,k}
// and models differ in the coordinates (axial_coordinates.h), the frequencies,
// the order of the pairs, which channels a pair rotates, and the order of the
// tokens (token_order.h). Whose code chose what: axial_presets.cc.
//
//   INV_FREQ and the layouts of rows of rope_layout.h
// Rows are those of a patch_grid in the model's token order, between rows that
// are not rotated (class tokens, registers, text); or of explicit coordinates:
// axis_position_ids or points, in the order of the spec's axes.
// Reference: hf-rope 3.4, serving-stacks 6.2 and 6.3.
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/axial_coordinates.h"
#include "lib/families/axial_spec.h"
#include "lib/families/families.h"
#include "lib/families/frequencies.h"
#include "lib/families/grid_selection.h"
#include "lib/families/linspace.h"
#include "lib/families/rope_layout.h"
#include "lib/families/rotary_layout.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/token_order.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

TokenOrder OrderOf(const v1::AxialRopeSpec& spec) {
  return {spec.token_order(), std::max<int64_t>(1, spec.merge_size()),
          std::max<int64_t>(1, spec.window_size())};
}

int64_t PairsOf(const v1::AxialRopeSpec& spec) {
  int64_t channels = 0;
  for (const v1::AxialRopeAxis& axis : spec.axes()) channels += axis.dim();
  return channels / 2;
}

// Frequencies ---------------------------------------------------------------------

// timm's pixel mode: pi times linearly or logarithmically spaced numbers.
Frequencies Bands(const v1::AxialRopeSpec& spec, int64_t count) {
  const bool linear = spec.frequency_rule() == v1::AXIAL_FREQUENCY_RULE_LINEAR_BANDS;
  const WideFloat resolution = WideFloat::FromInt(spec.max_resolution());
  std::vector<float> rounded;
  std::vector<WideFloat> exact;
  const WideFloat one = WideFloat::FromInt(1);
  const WideFloat exact_last =
      linear ? resolution.TimesPowerOf2(-1) : Log(resolution) / kWideLn2 - one;
  const float last =
      linear ? exact_last.ToFloat()
             : static_cast<float>(Log(static_cast<double>(spec.max_resolution())) / Log(2.0) - 1);
  for (int64_t k = 0; k < count; ++k) {
    if (spec.arithmetic() == v1::ARITHMETIC_EXACT) {
      const WideFloat at = ExactLinspace(linear ? one : WideFloat(), exact_last, count, k);
      exact.push_back(kWidePi * (linear ? at : Exp(at * kWideLn2)));
    } else {
      const float at = Linspace(linear ? 1.0f : 0.0f, last, count, k);
      rounded.push_back(kWidePi.ToFloat() * (linear ? at : PowF(2, at)));
    }
  }
  return exact.empty() ? Frequencies(std::move(rounded)) : Frequencies(exact);
}

Frequencies FrequenciesOf(const v1::AxialRopeSpec& spec, int axis) {
  const int64_t count = spec.axes(axis).dim() / 2;
  switch (spec.frequency_rule()) {
    case v1::AXIAL_FREQUENCY_RULE_SHARED:
      return StridedPowerFrequencies(spec.rope_theta(), axis, spec.axes_size(), count,
                                     PairsOf(spec), spec.arithmetic());
    case v1::AXIAL_FREQUENCY_RULE_LINEAR_BANDS:
    case v1::AXIAL_FREQUENCY_RULE_LOG_BANDS:
      return Bands(spec, count);
    default:  // PER_AXIS
      return PowerFrequencies(spec.rope_theta(), count, count, spec.arithmetic());
  }
}

// Layout --------------------------------------------------------------------------

// The pair of frequency 0 of an axis, and the step to that of the next frequency.
struct PairRun {
  int64_t first;
  int64_t step;
};

std::vector<PairRun> PairRuns(const v1::AxialRopeSpec& spec) {
  std::vector<PairRun> runs;
  int64_t first = 0;
  for (int a = 0; a < spec.axes_size(); ++a) {
    if (spec.arrangement() == v1::AXIAL_ARRANGEMENT_ALTERNATING) {
      runs.push_back({a, spec.axes_size()});
    } else {
      runs.push_back({first, 1});
      first += spec.axes(a).dim() / 2;
    }
  }
  return runs;
}

RotaryLayout LayoutOf(const v1::AxialRopeSpec& spec) {
  switch (spec.pairing()) {
    case v1::AXIAL_PAIRING_INTERLEAVED:
      return RotaryLayout::Interleaved(PairsOf(spec));
    case v1::AXIAL_PAIRING_HALF_PER_AXIS: {
      RotaryLayout layout{.pairs = 0, .channel_pairs = {}};
      for (const v1::AxialRopeAxis& axis : spec.axes()) {
        for (const uint32_t pair : RotaryLayout::Half(axis.dim() / 2).channel_pairs) {
          layout.channel_pairs.push_back(static_cast<uint32_t>(layout.pairs) + pair);
        }
        layout.pairs += axis.dim() / 2;
      }
      return layout;
    }
    default:
      return RotaryLayout::Half(PairsOf(spec));
  }
}

// Plan ----------------------------------------------------------------------------

class AxialPlan final : public Plan {
 public:
  explicit AxialPlan(const v1::AxialRopeSpec& spec)
      : spec_(spec), order_(OrderOf(spec)), layout_(LayoutOf(spec)), runs_(PairRuns(spec)) {
    for (int a = 0; a < spec.axes_size(); ++a) frequencies_.push_back(FrequenciesOf(spec, a));
  }

  size_t bytes() const override {
    size_t bytes = sizeof(*this) + layout_.channel_pairs.size() * sizeof(uint32_t);
    for (const Frequencies& frequencies : frequencies_) bytes += frequencies.bytes();
    return bytes;
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    response->mutable_inv_freq()->Resize(static_cast<int>(layout_.pairs), 0);
    ForEachPair([&](size_t a, size_t k, size_t pair) {
      response->set_inv_freq(static_cast<int>(pair), frequencies_[a].at(k));
    });
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    if (shape.format.layout() == v1::LAYOUT_INV_FREQ) {
      return FillInvFreq(shape.tensors[tensor].dtype, begin, out);
    }
    // Only bits are moved: a type of the element's size does.
    switch (ElementBytes(shape.tensors[tensor].dtype)) {
      case 8:
        return FillAs<uint64_t>(shape, tensor, begin, out);
      case 2:
        return FillAs<uint16_t>(shape, tensor, begin, out);
      default:
        return FillAs<uint32_t>(shape, tensor, begin, out);
    }
  }

 private:
  template <typename Visit>
  void ForEachPair(const Visit& visit) const {
    for (size_t a = 0; a < frequencies_.size(); ++a) {
      for (size_t k = 0; k < frequencies_[a].size(); ++k) {
        visit(a, k, static_cast<size_t>(runs_[a].first) + k * static_cast<size_t>(runs_[a].step));
      }
    }
  }

  void FillInvFreq(v1::DType dtype, int64_t begin, std::span<std::byte> out) const {
    const auto element = static_cast<size_t>(ElementBytes(dtype));
    std::vector<std::byte> all(static_cast<size_t>(layout_.pairs) * element);
    ForEachPair([&](size_t a, size_t k, size_t pair) {
      frequencies_[a].Store(k, dtype, all.data() + pair * element);
    });
    std::copy_n(all.data() + static_cast<size_t>(begin) * element, out.size(), out.data());
  }

  template <typename Bits>
  void FillAs(const TableShape& shape, size_t tensor, int64_t begin,
              std::span<std::byte> out) const {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const int64_t tokens = TokensOf(shape.selection);
    std::vector<SinCosRows> rows;
    for (const Frequencies& frequencies : frequencies_) rows.emplace_back(frequencies, dtype);
    std::vector<Bits> cos(static_cast<size_t>(layout_.pairs));
    std::vector<Bits> sin(cos.size());

    auto* elements = reinterpret_cast<Bits*>(out.data());
    const int64_t width = shape.tensors[tensor].unit;
    const auto end = begin / width + static_cast<int64_t>(out.size() / sizeof(Bits)) / width;
    for (int64_t row = begin / width; row < end; ++row, elements += width) {
      const int64_t token = row - spec_.prefix_identity_rows();
      if (token < 0 || token >= tokens) {
        FillIdentity<Bits>(dtype, cos, sin);
      } else {
        FillToken<Bits>(shape.selection, token, rows, cos, sin);
      }
      WriteRotaryRow<Bits>(shape.format.layout(), tensor, layout_, cos, sin, elements);
    }
  }

  template <typename Bits>
  static void FillIdentity(v1::DType dtype, std::span<Bits> cos, std::span<Bits> sin) {
    Bits one;
    StoreElement(1.0f, dtype, reinterpret_cast<std::byte*>(&one));
    std::fill(cos.begin(), cos.end(), one);
    std::fill(sin.begin(), sin.end(), Bits{0});
  }

  template <typename Bits>
  void FillToken(const v1::Selection& selection, int64_t token, std::vector<SinCosRows>& rows,
                 std::span<Bits> cos, std::span<Bits> sin) const {
    for (size_t a = 0; a < rows.size(); ++a) {
      const auto [key, coordinate] = CoordinateOf(selection, token, static_cast<int>(a));
      const SinCosRows::Row values = rows[a].At(key, coordinate);
      const auto* axis_cos = reinterpret_cast<const Bits*>(values.cos.data());
      const auto* axis_sin = reinterpret_cast<const Bits*>(values.sin.data());
      auto pair = static_cast<size_t>(runs_[a].first);
      for (size_t k = 0; k < frequencies_[a].size(); ++k) {
        cos[pair] = axis_cos[k];
        sin[pair] = axis_sin[k];
        pair += static_cast<size_t>(runs_[a].step);
      }
    }
  }

  static int64_t TokensOf(const v1::Selection& selection) {
    if (selection.has_patch_grid()) return PatchGridOf(selection).tokens();
    if (selection.has_points()) {
      return selection.points().coordinates_size() / selection.points().dimensions();
    }
    return selection.axis_position_ids().axes(0).ids_size();
  }

  // A token's coordinate on an axis, and a number that names it.
  std::pair<int64_t, WideFloat> CoordinateOf(const v1::Selection& selection, int64_t token,
                                             int a) const {
    if (selection.has_patch_grid()) {
      const PatchGrid grid = PatchGridOf(selection);
      const v1::AxialRopeAxis& axis = spec_.axes(a);
      const int64_t i = order_.At(grid, token).on(axis.axis());
      return {i, AxialCoordinate(spec_, axis, i, LengthOn(axis.axis(), grid))};
    }
    if (selection.has_points()) {
      const v1::Points& points = selection.points();
      const double at = points.coordinates(static_cast<int>(token * points.dimensions() + a));
      return {std::bit_cast<int64_t>(at), GivenCoordinate(spec_, at)};
    }
    const int64_t id = selection.axis_position_ids().axes(a).ids(static_cast<int>(token));
    return {id, GivenCoordinate(spec_, static_cast<double>(id))};
  }

  const v1::AxialRopeSpec spec_;
  const TokenOrder order_;
  const RotaryLayout layout_;
  const std::vector<PairRun> runs_;       // of each axis
  std::vector<Frequencies> frequencies_;  // of each axis
};

// Family --------------------------------------------------------------------------

absl::Status CheckAxes(const v1::AxialRopeSpec& spec, const PatchGrid& grid) {
  const bool has_frames = std::any_of(spec.axes().begin(), spec.axes().end(), [](const auto& axis) {
    return axis.axis() == v1::GRID_AXIS_T;
  });
  // Frames of a tower that turns no channel by them are images one after the
  // other, as Qwen-VL encodes them.
  if (has_frames || spec.token_order() >= v1::GRID_TOKEN_ORDER_MERGE_BLOCKS) {
    return absl::OkStatus();
  }
  return CheckOneFrame(grid);
}

// Takes the canonical selection and its key; the number of tokens.
absl::StatusOr<int64_t> ResolveTokens(const v1::AxialRopeSpec& spec, const v1::Selection& selection,
                                      TableShape* shape) {
  if (selection.has_points()) {
    ASSIGN_OR_RETURN(ResolvedPoints points,
                     ResolvePoints(selection, spec.axes_size(), spec.axes_size()));
    shape->selection = std::move(points.selection);
    shape->coordinates_key = std::move(points.coordinates_key);
    return points.count;
  }
  if (selection.has_axis_position_ids()) {
    ASSIGN_OR_RETURN(ResolvedAxisIds ids, ResolveAxisIds(selection, spec.axes_size()));
    shape->selection = std::move(ids.selection);
    shape->coordinates_key = std::move(ids.coordinates_key);
    return ids.count;
  }
  if (!selection.has_patch_grid()) {
    return WrongSelection(selection, "a patch_grid, axis_position_ids or points");
  }
  ASSIGN_OR_RETURN(ResolvedGrid grid, ResolvePatchGrid(selection));
  RETURN_IF_ERROR(OrderOf(spec).Check(grid.grid));
  RETURN_IF_ERROR(CheckAxes(spec, grid.grid));
  shape->selection = std::move(grid.selection);
  shape->coordinates_key = std::move(grid.coordinates_key);
  return grid.grid.tokens();
}

class AxialRopeFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "axial_rope"; }
  absl::string_view numerics_version() const override { return "axial_rope-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    std::vector<v1::Layout> layouts = RopeRowLayouts();
    layouts.push_back(v1::LAYOUT_INV_FREQ);
    return layouts;
  }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeAxialRope(spec->mutable_axial_rope());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& canonical, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::AxialRopeSpec& spec = canonical.proto().axial_rope();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    const v1::DType dtype = shape.format.dtype();
    if (shape.format.layout() == v1::LAYOUT_INV_FREQ) {
      // Frequencies have no coordinates: a selection is checked, then left out.
      if (selection.coordinates_case() != v1::Selection::COORDINATES_NOT_SET) {
        TableShape ignored;
        RETURN_IF_ERROR(ResolveTokens(spec, selection, &ignored).status());
      }
      shape.tensors = {{.name = "inv_freq", .dtype = dtype, .shape = {PairsOf(spec)}, .unit = 1}};
      return shape;
    }
    ASSIGN_OR_RETURN(const int64_t tokens, ResolveTokens(spec, selection, &shape));
    Positions rows;
    rows.count = spec.prefix_identity_rows() + tokens + spec.suffix_identity_rows();
    shape.tensors = RopeTensors(shape.format.layout(), dtype, 2 * PairsOf(spec), rows);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<AxialPlan>(spec.proto().axial_rope());
  }
};

}  // namespace

const Family& AxialRopeFamily() {
  static const AxialRopeFamilyImpl family;
  return family;
}

}  // namespace posenc
