// DETR's sines: positions counted over the pixels that are not padding.
//
//   Y(y, x) = valid pixels of column x in rows 0 … y, so the first has 1
//   v = (Y + offset) / (Y of the last row + eps) · scale     (or Y itself)
//   each step rounded to float32, or to compute_dtype
//   channel c of y: sin (c even) or cos (c odd) of v / temperature^(2⌊c/2⌋/num_position_features)
//
// and X along the rows. The channels of y come before those of x.
//   CHANNELS_FIRST  positional_encoding [2·num_position_features, H, W], as DETR has it
//   TABLE           positional_encoding [H·W, 2·num_position_features], as it is flattened
// Carion et al., arXiv:2005.12872; reference: other-encodings 1.9.
#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
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

namespace posenc {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p2;
constexpr double kEps = 1e-6;

struct Preset {
  v1::DetrPreset preset;
  double temperature;
  double offset;
};

constexpr Preset kPresets[] = {
    {v1::DETR_PRESET_DETR, 10000, 0},
    {v1::DETR_PRESET_DEFORMABLE_DETR, 10000, -0.5},
    {v1::DETR_PRESET_DAB_DETR, 20, 0},
};

// Canonicalize ----------------------------------------------------------------

absl::Status CanonicalizeNormalization(v1::DetrSineSpec* spec, const Preset& preset) {
  if (!spec->has_normalize()) spec->set_normalize(true);
  if (!spec->normalize()) {
    for (const auto& [is_set, field] : {std::pair{spec->has_scale(), "detr_sine.scale"},
                                        std::pair{spec->has_offset(), "detr_sine.offset"},
                                        std::pair{spec->has_eps(), "detr_sine.eps"}}) {
      if (is_set) return FieldError(field, "has no effect without normalize");
    }
    return absl::OkStatus();
  }
  if (!spec->has_scale()) spec->set_scale(kTwoPi);
  if (!spec->has_offset()) spec->set_offset(preset.offset);
  if (!spec->has_eps()) spec->set_eps(kEps);
  RETURN_IF_ERROR(CheckInRange("detr_sine.scale", spec->scale(), -0x1p20, 0x1p20));
  RETURN_IF_ERROR(CheckInRange("detr_sine.offset", spec->offset(), -0x1p20, 0x1p20));
  return CheckInRange("detr_sine.eps", spec->eps(), 1e-12, 1.0);
}

// In 16 bits the channel's own index is rounded too; where it is not exact, a sine and
// its cosine have different periods, which no model is wide enough to meet.
absl::Status CanonicalizeComputeDType(v1::DetrSineSpec* spec) {
  RETURN_IF_ERROR(CheckEnum("detr_sine.compute_dtype",
                            v1::ComputeDType_IsValid(spec->compute_dtype()),
                            spec->compute_dtype()));
  if (spec->compute_dtype() == v1::COMPUTE_DTYPE_F32) spec->clear_compute_dtype();
  if (spec->compute_dtype() == v1::COMPUTE_DTYPE_UNSPECIFIED) return absl::OkStatus();
  if (spec->arithmetic() == v1::ARITHMETIC_EXACT) {
    return FieldError("detr_sine.compute_dtype", "is for float32 arithmetic only");
  }
  const int64_t exact_integers = spec->compute_dtype() == v1::COMPUTE_DTYPE_BF16 ? 256 : 2048;
  if (spec->num_position_features() <= exact_integers) return absl::OkStatus();
  return FieldError("detr_sine.num_position_features",
                    absl::StrCat("must be at most ", exact_integers, " with this compute_dtype, ",
                                 "got ", spec->num_position_features()));
}

absl::Status CanonicalizeDetr(v1::DetrSineSpec* spec) {
  if (spec->preset() == v1::DETR_PRESET_UNSPECIFIED) spec->set_preset(v1::DETR_PRESET_DETR);
  RETURN_IF_ERROR(CheckEnumUpTo("detr_sine.preset", spec->preset(), v1::DETR_PRESET_DAB_DETR));
  const Preset& preset = kPresets[spec->preset() - 1];
  RETURN_IF_ERROR(CheckPositionFeatures("detr_sine.num_position_features",
                                        spec->has_num_position_features(),
                                        spec->num_position_features()));
  if (!spec->has_temperature_height()) spec->set_temperature_height(preset.temperature);
  if (!spec->has_temperature_width()) spec->set_temperature_width(spec->temperature_height());
  RETURN_IF_ERROR(CheckFrequencyBase("detr_sine.temperature_height", spec->temperature_height()));
  RETURN_IF_ERROR(CheckFrequencyBase("detr_sine.temperature_width", spec->temperature_width()));
  if (spec->arithmetic() == 0) spec->set_arithmetic(v1::ARITHMETIC_FLOAT32);
  RETURN_IF_ERROR(CheckEnumUpTo("detr_sine.arithmetic", spec->arithmetic(), v1::ARITHMETIC_EXACT));
  RETURN_IF_ERROR(CanonicalizeComputeDType(spec));
  return CanonicalizeNormalization(spec, preset);
}

// Counts --------------------------------------------------------------------------

// A pixel's place along an axis: how many valid pixels there are up to it, and
// in its whole line.
struct Count {
  int64_t at = 0;
  int64_t last = 0;

  // Sides are at most 2^20, so this is one to one.
  int64_t key() const { return at << 21 | last; }
};

// [H, W] each.
struct Counts {
  std::vector<Count> y;
  std::vector<Count> x;
};

// Along lines that start at first_of(line) and go in steps of `step`.
void CountLines(const std::string& valid, size_t lines, size_t line_step, size_t length,
                size_t step, std::vector<Count>& counts) {
  counts.resize(valid.size());
  for (size_t line = 0; line < lines; ++line) {
    int64_t count = 0;
    for (size_t i = 0; i < length; ++i) {
      const size_t pixel = line * line_step + i * step;
      count += valid[pixel];
      counts[pixel].at = count;
    }
    for (size_t i = 0; i < length; ++i) counts[line * line_step + i * step].last = count;
  }
}

Counts CountValid(const v1::TokenMask& mask) {
  const auto height = static_cast<size_t>(mask.height());
  const auto width = static_cast<size_t>(mask.width());
  Counts counts;
  CountLines(mask.valid(), width, 1, height, width, counts.y);
  CountLines(mask.valid(), height, width, width, 1, counts.x);
  return counts;
}

// Plan --------------------------------------------------------------------------

class DetrPlan final : public Plan {
 public:
  explicit DetrPlan(const v1::DetrSineSpec& spec)
      : spec_(spec),
        y_(Axis(spec, spec.temperature_height())),
        x_(Axis(spec, spec.temperature_width())) {}

  size_t bytes() const override { return sizeof(*this) + y_.bytes() + x_.bytes(); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::TokenMask& mask = shape.selection.token_mask();
    const Counts counts = CountValid(mask);
    const v1::DType dtype = shape.tensors[tensor].dtype;
    if (shape.format.layout() == v1::LAYOUT_CHANNELS_FIRST) {
      return FillChannels(counts, dtype, begin, out);
    }
    SinCosRows y(y_, dtype);
    SinCosRows x(x_, dtype);
    FillPixelRows(2 * spec_.num_position_features(), dtype, begin, out,
                  [&](int64_t pixel, std::span<std::byte> row) {
                    const auto half = row.size() / 2;
                    const Count& at_y = counts.y[static_cast<size_t>(pixel)];
                    const Count& at_x = counts.x[static_cast<size_t>(pixel)];
                    WriteInterleaved(y.At(at_y.key(), Coordinate(at_y)), dtype, row.first(half));
                    WriteInterleaved(x.At(at_x.key(), Coordinate(at_x)), dtype, row.last(half));
                  });
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    for (const Frequencies* axis : {&y_, &x_}) {
      for (size_t k = 0; k < axis->size(); ++k) response->add_inv_freq(axis->at(k));
    }
  }

 private:
  static Frequencies Axis(const v1::DetrSineSpec& spec, double temperature) {
    // Frequency k of n: the exponent 2k / num_position_features.
    const int64_t n = spec.num_position_features() / 2;
    return PowerPeriods(temperature, n, n, spec.arithmetic(), spec.compute_dtype());
  }

  // A channel has few different counts: each is computed once a channel.
  void FillChannels(const Counts& counts, v1::DType dtype, int64_t begin,
                    std::span<std::byte> out) const {
    struct SinCosBytes {
      std::byte sin[8];
      std::byte cos[8];
    };
    std::unordered_map<int64_t, SinCosBytes> values;
    int64_t values_channel = -1;
    const auto element = static_cast<size_t>(ElementBytes(dtype));
    FillChannelsFirst(static_cast<int64_t>(counts.y.size()), dtype, begin, out,
                      [&](int64_t channel, int64_t pixel, std::byte* where) {
                        if (values_channel != channel) values.clear();
                        values_channel = channel;
                        const bool is_y = channel < spec_.num_position_features();
                        const int64_t c = channel % spec_.num_position_features();
                        const Count& count =
                            (is_y ? counts.y : counts.x)[static_cast<size_t>(pixel)];
                        auto [it, inserted] = values.try_emplace(count.key());
                        if (inserted) {
                          (is_y ? y_ : x_)
                              .SinCosAt(static_cast<size_t>(c / 2), Coordinate(count), dtype,
                                        it->second.sin, it->second.cos);
                        }
                        std::memcpy(where, c % 2 == 0 ? it->second.sin : it->second.cos, element);
                      });
  }

  WideFloat Coordinate(const Count& count) const {
    if (!spec_.normalize() && spec_.compute_dtype() == v1::COMPUTE_DTYPE_UNSPECIFIED) {
      return WideFloat::FromInt(count.at);
    }
    if (spec_.arithmetic() == v1::ARITHMETIC_EXACT) {
      return (WideFloat::FromInt(count.at) + WideFloat::From(spec_.offset())) /
             (WideFloat::FromInt(count.last) + WideFloat::From(spec_.eps())) *
             WideFloat::From(spec_.scale());
    }
    const auto round = [&](float value) {
      return RoundToComputeDType(spec_.compute_dtype(), value);
    };
    const float at = round(static_cast<float>(count.at));
    if (!spec_.normalize()) return WideFloat::From(static_cast<double>(at));
    const float part = round(at + static_cast<float>(spec_.offset()));
    const float last = round(static_cast<float>(count.last));
    const float whole = round(last + static_cast<float>(spec_.eps()));
    const float scaled = round(round(part / whole) * static_cast<float>(spec_.scale()));
    return WideFloat::From(static_cast<double>(scaled));
  }

  const v1::DetrSineSpec spec_;
  const Frequencies y_;
  const Frequencies x_;
};

class DetrSineFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "detr_sine"; }
  absl::string_view numerics_version() const override { return "detr_sine-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return ImageLayouts(); }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeDetr(spec->mutable_detr_sine());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(ResolvedMask mask, ResolveMask(selection));
    shape.selection = std::move(mask.selection);
    shape.coordinates_key = std::move(mask.coordinates_key);
    shape.tensors = {ImageTensor(shape.format, 2 * spec.proto().detr_sine().num_position_features(),
                                 mask.height, mask.width)};
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<DetrPlan>(spec.proto().detr_sine());
  }
};

}  // namespace

const Family& DetrSineFamily() {
  static const DetrSineFamilyImpl family;
  return family;
}

}  // namespace posenc
