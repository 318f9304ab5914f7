// Relative positions of patches in an image window: Swin, SwinV2, BEiT.
//
// Patches are numbered row-major: token t sits at (y, x) = (t / width, t % width).
// A pair's offset (y_query - y_key, x_query - x_key) has 2 height - 1 by 2 width - 1
// values, and the index is its row-major number; so a row of the index is a row of
// the offset grid read backwards, a window at a time.
// Liu et al., arXiv:2103.14030 and arXiv:2111.09883; Bao et al., arXiv:2106.08254.
// reference/other-encodings.md, section 4.5.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/float_table.h"
#include "lib/families/layout_dtypes.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

using v1::WindowSpec;

// (2 * 4096 - 1)^2 + 3 rows fit an int32.
constexpr int64_t kMaxWindow = 4096;
constexpr int64_t kClassTokenRows = 3;

// Canonicalize -----------------------------------------------------------------

int64_t TableRows(const WindowSpec& window) {
  return (2 * window.window_height() - 1) * (2 * window.window_width() - 1) +
         (window.class_token() ? kClassTokenRows : 0);
}

absl::Status CheckPretrained(const WindowSpec& window) {
  const int64_t height = window.pretrained_window_height();
  const int64_t width = window.pretrained_window_width();
  RETURN_IF_ERROR(CheckInRange("window.pretrained_window_height", height, 0, kMaxWindow));
  RETURN_IF_ERROR(CheckInRange("window.pretrained_window_width", width, 0, kMaxWindow));
  if (height == 1 || width == 1) {
    // The reference divides by window - 1 here without a look.
    return FieldError(
        height == 1 ? "window.pretrained_window_height" : "window.pretrained_window_width",
        "must be 0 (none) or at least 2, got 1");
  }
  if ((height > 0 || width > 0) && window.coordinates() != v1::WINDOW_COORDINATES_SWIN_V2) {
    return FieldError("window.pretrained_window_height", "only SwinV2's coordinates have one");
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeWindow(WindowSpec* window) {
  RETURN_IF_ERROR(CheckPresent("window.window_height", window->has_window_height()));
  if (!window->has_window_width()) window->set_window_width(window->window_height());
  RETURN_IF_ERROR(CheckInRange("window.window_height", window->window_height(), 1, kMaxWindow));
  RETURN_IF_ERROR(CheckInRange("window.window_width", window->window_width(), 1, kMaxWindow));
  if (!window->has_class_token()) window->set_class_token(false);
  RETURN_IF_ERROR(CheckEnum("window.coordinates",
                            v1::WindowCoordinates_IsValid(window->coordinates()),
                            window->coordinates()));
  if (window->coordinates() == v1::WINDOW_COORDINATES_UNSPECIFIED) {
    window->set_coordinates(v1::WINDOW_COORDINATES_SWIN_V2);
  }
  if (!window->has_pretrained_window_height()) window->set_pretrained_window_height(0);
  if (!window->has_pretrained_window_width()) {
    window->set_pretrained_window_width(window->pretrained_window_height());
  }
  RETURN_IF_ERROR(CheckPretrained(*window));
  if (!window->has_bias_table()) return absl::OkStatus();
  return CanonicalizeFloatTable("window.bias_table", {TableRows(*window), kAnyLength},
                                window->mutable_bias_table());
}

// Plan -------------------------------------------------------------------------

// Input of SwinV2's bias network at offset -(window - 1) + i along one axis, each
// step rounded to float32 as the reference rounds it.
float SwinV2Coordinate(int64_t offset, int64_t window, int64_t pretrained) {
  if (offset == 0) return 0.0f;
  const int64_t steps = pretrained > 0 ? pretrained - 1 : window - 1;
  const float scaled = static_cast<float>(std::abs(offset)) / static_cast<float>(steps) * 8.0f;
  const float log2 =
      (Log(WideFloat::From(static_cast<double>(scaled + 1.0f))) / kWideLn2).ToFloat();
  return std::copysign(log2 / 3.0f, static_cast<float>(offset));
}

float SignedLog(int64_t offset) {
  return std::copysign(LogF(static_cast<float>(std::abs(offset)) + 1.0f),
                       static_cast<float>(offset));
}

// [2 window - 1], by ascending offset.
std::vector<float> AxisCoordinates(const WindowSpec& spec, int64_t window, int64_t pretrained) {
  std::vector<float> coordinates;
  for (int64_t offset = 1 - window; offset < window; ++offset) {
    coordinates.push_back(spec.coordinates() == v1::WINDOW_COORDINATES_SIGNED_LOG
                              ? SignedLog(offset)
                              : SwinV2Coordinate(offset, window, pretrained));
  }
  return coordinates;
}

class WindowPlan final : public Plan {
 public:
  explicit WindowPlan(const WindowSpec& window)
      : height_(window.window_height()),
        width_(window.window_width()),
        class_token_(window.class_token()),
        table_rows_(TableRows(window)),
        bias_table_(FloatsOf(window.bias_table())),
        y_(AxisCoordinates(window, height_, window.pretrained_window_height())),
        x_(AxisCoordinates(window, width_, window.pretrained_window_width())) {}

  size_t bytes() const override {
    return (bias_table_.capacity() + y_.capacity() + x_.capacity()) * sizeof(float);
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    switch (shape.format.layout()) {
      case v1::LAYOUT_BIAS:
        return StoreBlocks(dtype, out, [&](int64_t index, std::span<float> block) {
          FillBias(begin + index, block);
        });
      case v1::LAYOUT_RELATIVE_COORDINATES:
        return StoreBlocks(dtype, out, [&](int64_t index, std::span<float> block) {
          for (size_t i = 0; i < block.size(); ++i) {
            block[i] = Coordinate(begin + index + static_cast<int64_t>(i));
          }
        });
      default:
        return FillIndex(begin, out);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  int64_t tokens() const { return height_ * width_ + (class_token_ ? 1 : 0); }

  // Row of the table for element `pair` = query * tokens() + key.
  int64_t IndexAt(int64_t pair) const {
    int64_t query = pair / tokens();
    int64_t key = pair % tokens();
    if (class_token_) {
      if (query == 0) return table_rows_ - (key == 0 ? 1 : 3);
      if (key == 0) return table_rows_ - 2;
      --query;
      --key;
    }
    const int64_t y = query / width_ - key / width_ + height_ - 1;
    const int64_t x = query % width_ - key % width_ + width_ - 1;
    return y * (2 * width_ - 1) + x;
  }

  void FillIndex(int64_t begin, std::span<std::byte> out) const {
    for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
      const auto index = static_cast<int32_t>(IndexAt(begin + static_cast<int64_t>(i)));
      std::memcpy(out.data() + i * sizeof(index), &index, sizeof(index));
    }
  }

  void FillBias(int64_t begin, std::span<float> out) const {
    const int64_t pairs = tokens() * tokens();
    const int64_t heads = static_cast<int64_t>(bias_table_.size()) / table_rows_;
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t element = begin + static_cast<int64_t>(i);
      const int64_t row = IndexAt(element % pairs);
      out[i] = bias_table_[static_cast<size_t>(row * heads + element / pairs)];
    }
  }

  // Of element [0, y, x, axis], axis 0 being y.
  float Coordinate(int64_t element) const {
    const int64_t columns = 2 * width_ - 1;
    const int64_t cell = element / 2;
    return element % 2 == 0 ? y_[static_cast<size_t>(cell / columns)]
                            : x_[static_cast<size_t>(cell % columns)];
  }

  int64_t height_;
  int64_t width_;
  bool class_token_;
  int64_t table_rows_;
  std::vector<float> bias_table_;  // [table_rows_, heads]; empty when there is none
  std::vector<float> y_;           // [2 height_ - 1]
  std::vector<float> x_;           // [2 width_ - 1]
};

// Family -----------------------------------------------------------------------

const LayoutDTypes kFormats[] = {{v1::LAYOUT_RELATIVE_INDEX, {v1::DTYPE_I32}},
                                 {v1::LAYOUT_BIAS, FloatDTypes()},
                                 {v1::LAYOUT_RELATIVE_COORDINATES, FloatDTypes()}};

class WindowFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "window"; }
  absl::string_view numerics_version() const override { return "window-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return LayoutsOf(kFormats); }
  std::vector<v1::DType> dtypes() const override { return DTypesOf(kFormats); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeWindow(spec->mutable_window());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, kFormats, &shape.format));
    RETURN_IF_ERROR(ResolveNoSelection(selection));
    const WindowSpec& window = spec.proto().window();
    const v1::DType dtype = shape.format.dtype();
    const int64_t tokens =
        window.window_height() * window.window_width() + (window.class_token() ? 1 : 0);
    switch (shape.format.layout()) {
      case v1::LAYOUT_BIAS:
        if (!window.has_bias_table()) {
          return FieldError("window.bias_table", "is required for a bias");
        }
        shape.tensors = {{.name = "attention_bias",
                          .dtype = dtype,
                          .shape = {window.bias_table().shape(1), tokens, tokens},
                          .unit = 1}};
        break;
      case v1::LAYOUT_RELATIVE_COORDINATES:
        shape.tensors = {
            {.name = "relative_coords_table",
             .dtype = dtype,
             .shape = {1, 2 * window.window_height() - 1, 2 * window.window_width() - 1, 2},
             .unit = 1}};
        break;
      default:
        shape.tensors = {{.name = "relative_position_index",
                          .dtype = dtype,
                          .shape = {tokens, tokens},
                          .unit = 1}};
    }
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<WindowPlan>(spec.proto().window());
  }
};

}  // namespace

const Family& WindowFamily() {
  static const WindowFamilyImpl family;
  return family;
}

}  // namespace posenc
