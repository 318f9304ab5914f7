// Sinusoids of a grid of patches: images (MAE and its kin) and videos.
//
// The row of a token at (t, y, x) has a block per axis,
//   E(p) = [sin(p·w_0) … sin(p·w_{n-1}) | cos(p·w_0) … cos(p·w_{n-1})],
// and codes differ in which axis comes first, in the frequencies, in the order of
// the tokens, and in what is in front of them. Those are the options; whose code
// chose which is the table of presets below.
// He et al., arXiv:2111.06377; reference: other-encodings 1.2 (n-D), 1.8, 1.11.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/frequencies.h"
#include "lib/families/grid_selection.h"
#include "lib/families/image_layouts.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/token_order.h"

namespace posenc {
namespace {

constexpr int64_t kMaxWidth = 65536;

// A block's share of d_model: numerator / denominator, rounded down to a multiple of 2.
struct Share {
  v1::GridAxis axis;
  int64_t numerator;
  int64_t denominator;
};

struct Preset {
  v1::SinusoidalGridPreset preset;
  std::vector<Share> shares;
  int64_t divides_d_model;  // the reference asserts it; 1 when what is left is zeros
  v1::GridBlockLayout block_layout;
  v1::GridFrequencyRule frequency_rule;
  v1::GridTokenOrder token_order;
  int64_t prefix_zero_rows;
  v1::Arithmetic arithmetic;
};

constexpr auto kT = v1::GRID_AXIS_T;
constexpr auto kY = v1::GRID_AXIS_Y;
constexpr auto kX = v1::GRID_AXIS_X;
constexpr auto kPerAxis = v1::GRID_BLOCK_LAYOUT_SIN_COS_PER_AXIS;
constexpr auto kAllSinFirst = v1::GRID_BLOCK_LAYOUT_ALL_SIN_THEN_ALL_COS;
constexpr auto kTheta = v1::GRID_FREQUENCY_RULE_THETA;
constexpr auto kShifted = v1::GRID_FREQUENCY_RULE_SHIFTED;
constexpr auto kShiftedExp = v1::GRID_FREQUENCY_RULE_SHIFTED_EXP;
constexpr auto kRowMajor = v1::GRID_TOKEN_ORDER_ROW_MAJOR;
constexpr auto kColumnMajor = v1::GRID_TOKEN_ORDER_COLUMN_MAJOR;
constexpr auto kFloat32 = v1::ARITHMETIC_FLOAT32;
constexpr auto kExact = v1::ARITHMETIC_EXACT;

const std::vector<Preset>& Presets() {
  static const std::vector<Preset> presets = {
      {v1::SINUSOIDAL_GRID_PRESET_MAE,
       {{kX, 1, 2}, {kY, 1, 2}},
       4,
       kPerAxis,
       kTheta,
       kRowMajor,
       0,
       kExact},
      {v1::SINUSOIDAL_GRID_PRESET_MOCO_V3,
       {{kX, 1, 2}, {kY, 1, 2}},
       4,
       kPerAxis,
       kTheta,
       kColumnMajor,
       1,
       kFloat32},
      {v1::SINUSOIDAL_GRID_PRESET_HF,
       {{kY, 1, 2}, {kX, 1, 2}},
       4,
       kPerAxis,
       kTheta,
       kRowMajor,
       0,
       kExact},
      {v1::SINUSOIDAL_GRID_PRESET_BIG_VISION,
       {{kX, 1, 2}, {kY, 1, 2}},
       4,
       kPerAxis,
       kShifted,
       kRowMajor,
       0,
       kFloat32},
      {v1::SINUSOIDAL_GRID_PRESET_TIMM,
       {{kY, 1, 2}, {kX, 1, 2}},
       4,
       kAllSinFirst,
       kTheta,
       kRowMajor,
       0,
       kFloat32},
      {v1::SINUSOIDAL_GRID_PRESET_DIFFUSERS,
       {{kX, 1, 2}, {kY, 1, 2}},
       4,
       kPerAxis,
       kTheta,
       kRowMajor,
       0,
       kExact},
      {v1::SINUSOIDAL_GRID_PRESET_COGVIDEOX,
       {{kT, 1, 4}, {kX, 3, 8}, {kY, 3, 8}},
       16,
       kPerAxis,
       kTheta,
       kRowMajor,
       0,
       kExact},
      {v1::SINUSOIDAL_GRID_PRESET_T2T_2D,
       {{kY, 1, 2}, {kX, 1, 2}},
       1,
       kPerAxis,
       kShiftedExp,
       kRowMajor,
       0,
       kFloat32},
      {v1::SINUSOIDAL_GRID_PRESET_T2T_3D,
       {{kT, 1, 3}, {kY, 1, 3}, {kX, 1, 3}},
       1,
       kPerAxis,
       kShiftedExp,
       kRowMajor,
       0,
       kFloat32},
  };
  return presets;
}

const Preset* FindPreset(v1::SinusoidalGridPreset preset) {
  for (const Preset& row : Presets()) {
    if (row.preset == preset) return &row;
  }
  return nullptr;
}

// Canonicalize ----------------------------------------------------------------

absl::Status FillBlocks(const Preset& preset, v1::SinusoidalGridSpec* spec) {
  if (spec->blocks_size() > 0) return absl::OkStatus();
  if (spec->d_model() % preset.divides_d_model != 0) {
    return FieldError("sinusoidal_grid.d_model",
                      absl::StrCat("must be a multiple of ", preset.divides_d_model,
                                   " for this preset, got ", spec->d_model()));
  }
  for (const Share& share : preset.shares) {
    v1::SinusoidalGridSpec::Block* block = spec->add_blocks();
    block->set_axis(share.axis);
    block->set_width(spec->d_model() * share.numerator / (2 * share.denominator) * 2);
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(const v1::SinusoidalGridSpec& spec) {
  int64_t left = spec.d_model();
  for (int i = 0; i < spec.blocks_size(); ++i) {
    const v1::SinusoidalGridSpec::Block& block = spec.blocks(i);
    const std::string path = absl::StrCat("sinusoidal_grid.blocks[", i, "]");
    RETURN_IF_ERROR(CheckGridAxis(absl::StrCat(path, ".axis"), block.axis()));
    const std::string width = absl::StrCat(path, ".width");
    const int64_t least = spec.frequency_rule() == kTheta ? 2 : 4;
    if (block.width() < least || block.width() % 2 != 0 || block.width() > left) {
      return FieldError(width, absl::StrCat("must be even, at least ", least,
                                            " and fit in what is left of d_model (", left,
                                            "), got ", block.width()));
    }
    left -= block.width();
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeGrid(v1::SinusoidalGridSpec* spec) {
  if (spec->preset() == v1::SINUSOIDAL_GRID_PRESET_UNSPECIFIED) {
    spec->set_preset(v1::SINUSOIDAL_GRID_PRESET_MAE);
  }
  const Preset* preset = FindPreset(spec->preset());
  RETURN_IF_ERROR(CheckEnum("sinusoidal_grid.preset", preset != nullptr, spec->preset()));
  if (!spec->has_d_model()) return FieldError("sinusoidal_grid.d_model", "is required");
  RETURN_IF_ERROR(CheckInRange("sinusoidal_grid.d_model", spec->d_model(), 1, kMaxWidth));
  RETURN_IF_ERROR(FillBlocks(*preset, spec));
  if (spec->block_layout() == 0) spec->set_block_layout(preset->block_layout);
  if (spec->frequency_rule() == 0) spec->set_frequency_rule(preset->frequency_rule);
  if (spec->token_order() == 0) spec->set_token_order(preset->token_order);
  if (spec->arithmetic() == 0) spec->set_arithmetic(preset->arithmetic);
  if (!spec->has_base()) spec->set_base(10000);
  if (!spec->has_prefix_zero_rows()) spec->set_prefix_zero_rows(preset->prefix_zero_rows);
  if (!spec->has_interpolation_scale()) spec->set_interpolation_scale(1);
  if (!spec->has_temporal_interpolation_scale()) spec->set_temporal_interpolation_scale(1);

  RETURN_IF_ERROR(CheckEnumUpTo("sinusoidal_grid.block_layout", spec->block_layout(),
                                v1::GRID_BLOCK_LAYOUT_ALL_SIN_THEN_ALL_COS));
  RETURN_IF_ERROR(
      CheckEnumUpTo("sinusoidal_grid.frequency_rule", spec->frequency_rule(), kShiftedExp));
  // Orders that merge patches are those of rotary vision towers.
  RETURN_IF_ERROR(CheckEnumUpTo("sinusoidal_grid.token_order", spec->token_order(), kColumnMajor));
  RETURN_IF_ERROR(CheckEnumUpTo("sinusoidal_grid.arithmetic", spec->arithmetic(), kExact));
  RETURN_IF_ERROR(CheckFrequencyBase("sinusoidal_grid.base", spec->base()));
  RETURN_IF_ERROR(
      CheckInRange("sinusoidal_grid.prefix_zero_rows", spec->prefix_zero_rows(), 0, kMaxGridSide));
  RETURN_IF_ERROR(
      CheckCoordinateScale("sinusoidal_grid.interpolation_scale", spec->interpolation_scale()));
  RETURN_IF_ERROR(CheckCoordinateScale("sinusoidal_grid.temporal_interpolation_scale",
                                       spec->temporal_interpolation_scale()));
  if (spec->has_base_size()) {
    RETURN_IF_ERROR(CheckInRange("sinusoidal_grid.base_size", spec->base_size(), 1, kMaxGridSide));
  }
  if (spec->has_max_grid_size()) {
    RETURN_IF_ERROR(
        CheckInRange("sinusoidal_grid.max_grid_size", spec->max_grid_size(), 1, kMaxGridSide));
  }
  return CheckBlocks(*spec);
}

// Coordinates -----------------------------------------------------------------

// In float32, a division at a time, as the references have it.
float Coordinate(const v1::SinusoidalGridSpec& spec, v1::GridAxis axis, int64_t index,
                 int64_t length) {
  if (axis == kT) {
    return static_cast<float>(index) / static_cast<float>(spec.temporal_interpolation_scale());
  }
  if (spec.has_max_grid_size()) {
    index += (spec.max_grid_size() - length) / 2;
    length = spec.max_grid_size();
  }
  float coordinate = static_cast<float>(index);
  if (spec.has_base_size()) {
    coordinate /=
        static_cast<float>(static_cast<double>(length) / static_cast<double>(spec.base_size()));
  }
  return coordinate / static_cast<float>(spec.interpolation_scale());
}

absl::Status CheckSize(const v1::SinusoidalGridSpec& spec, const PatchGrid& grid) {
  const bool has_frames = std::any_of(spec.blocks().begin(), spec.blocks().end(),
                                      [](const auto& block) { return block.axis() == kT; });
  if (!has_frames) RETURN_IF_ERROR(CheckOneFrame(grid));
  for (const v1::GridAxis axis : {kY, kX}) {
    const int64_t length = LengthOn(axis, grid);
    if (spec.has_max_grid_size() && length > spec.max_grid_size()) {
      return FieldError(
          absl::StrCat("selection.patch_grid.", axis == kY ? "height" : "width"),
          absl::StrCat("must be at most max_grid_size (", spec.max_grid_size(), "), got ", length));
    }
  }
  return absl::OkStatus();
}

// Plan --------------------------------------------------------------------------

// Where a block's sines and cosines stand in a row, in elements.
struct Columns {
  v1::GridAxis axis;
  size_t sin;
  size_t cos;
};

class GridPlan final : public Plan {
 public:
  explicit GridPlan(const v1::SinusoidalGridSpec& spec) : spec_(spec), order_{spec.token_order()} {
    const bool per_axis = spec.block_layout() == kPerAxis;
    size_t all_sines = 0;
    for (const auto& block : spec.blocks()) all_sines += static_cast<size_t>(block.width()) / 2;
    size_t before = 0;  // sines of the blocks before this one
    for (const auto& block : spec.blocks()) {
      const int64_t n = block.width() / 2;
      const int64_t denominator = spec.frequency_rule() == kTheta ? n : n - 1;
      frequencies_.push_back(
          spec.frequency_rule() == kShiftedExp
              ? ExpFrequencies(spec.base(), n, denominator, spec.arithmetic())
              : PowerFrequencies(spec.base(), n, denominator, spec.arithmetic()));
      const size_t sines = static_cast<size_t>(n);
      columns_.push_back(per_axis ? Columns{block.axis(), 2 * before, 2 * before + sines}
                                  : Columns{block.axis(), before, all_sines + before});
      before += sines;
    }
  }

  size_t bytes() const override {
    size_t bytes = sizeof(*this);
    for (const Frequencies& frequencies : frequencies_) bytes += frequencies.bytes();
    return bytes;
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const PatchGrid grid = PatchGridOf(shape.selection);
    const v1::DType dtype = shape.tensors[tensor].dtype;
    std::vector<SinCosRows> rows;
    for (const Frequencies& frequencies : frequencies_) rows.emplace_back(frequencies, dtype);

    const size_t row_bytes = static_cast<size_t>(spec_.d_model() * ElementBytes(dtype));
    std::fill(out.begin(), out.end(), std::byte{0});
    int64_t token = begin / spec_.d_model() - spec_.prefix_zero_rows();
    for (; !out.empty(); out = out.subspan(row_bytes), ++token) {
      if (token >= 0) FillRow(grid, order_.At(grid, token), dtype, rows, out.first(row_bytes));
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    for (const Frequencies& frequencies : frequencies_) {
      for (size_t k = 0; k < frequencies.size(); ++k) response->add_inv_freq(frequencies.at(k));
    }
  }

 private:
  void FillRow(const PatchGrid& grid, const GridPoint& point, v1::DType dtype,
               std::vector<SinCosRows>& rows, std::span<std::byte> row) const {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto& [axis, sin, cos] = columns_[i];
      const float coordinate = Coordinate(spec_, axis, point.on(axis), LengthOn(axis, grid));
      const SinCosRows::Row values =
          rows[i].At(point.on(axis), WideFloat::From(static_cast<double>(coordinate)));
      const auto element = static_cast<size_t>(ElementBytes(dtype));
      std::copy(values.sin.begin(), values.sin.end(), row.subspan(sin * element).begin());
      std::copy(values.cos.begin(), values.cos.end(), row.subspan(cos * element).begin());
    }
  }

  const v1::SinusoidalGridSpec spec_;
  const TokenOrder order_;
  std::vector<Frequencies> frequencies_;  // of each block
  std::vector<Columns> columns_;          // of each block
};

class SinusoidalGridFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "sinusoidal_grid"; }
  absl::string_view numerics_version() const override { return "sinusoidal_grid-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeGrid(spec->mutable_sinusoidal_grid());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& canonical, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::SinusoidalGridSpec& spec = canonical.proto().sinusoidal_grid();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(ResolvedGrid resolved, ResolvePatchGrid(selection));
    RETURN_IF_ERROR(CheckSize(spec, resolved.grid));
    shape.selection = std::move(resolved.selection);
    shape.coordinates_key = std::move(resolved.coordinates_key);
    const int64_t rows = spec.prefix_zero_rows() + resolved.grid.tokens();
    shape.tensors = {RowsTensor(shape.format, rows, spec.d_model())};
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<GridPlan>(spec.proto().sinusoidal_grid());
  }
};

}  // namespace

const Family& SinusoidalGridFamily() {
  static const SinusoidalGridFamilyImpl family;
  return family;
}

}  // namespace posenc
