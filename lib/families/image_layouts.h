// The two layouts of an encoding of an image's pixels: channels first, as
// convolutional code has it, and a row a pixel, as a transformer flattens it.
#ifndef POSENC_LIB_FAMILIES_IMAGE_LAYOUTS_H_
#define POSENC_LIB_FAMILIES_IMAGE_LAYOUTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/families/family.h"
#include "lib/families/store.h"

namespace posenc {

// CHANNELS_FIRST, TABLE.
inline std::vector<v1::Layout> ImageLayouts() {
  return {v1::LAYOUT_CHANNELS_FIRST, v1::LAYOUT_TABLE};
}

// positional_encoding: [channels, height, width], or [height * width, channels].
// REQUIRES: the format is canonical.
inline Tensor ImageTensor(const v1::TensorFormat& format, int64_t channels, int64_t height,
                          int64_t width) {
  Tensor tensor{.name = "positional_encoding", .dtype = format.dtype(), .shape = {}, .unit = 1};
  if (format.layout() == v1::LAYOUT_CHANNELS_FIRST) {
    tensor.shape = {channels, height, width};
    tensor.unit = std::max<int64_t>(1, width);
  } else {
    tensor.shape = {height * width, channels};
    tensor.unit = channels;
  }
  return tensor;
}

// positional_encoding: [rows, width]. REQUIRES: the format is canonical.
inline Tensor RowsTensor(const v1::TensorFormat& format, int64_t rows, int64_t width) {
  return {.name = "positional_encoding",
          .dtype = format.dtype(),
          .shape = {rows, width},
          .unit = width};
}

// Fills elements begin, begin + 1, ... of a tensor [channels, pixels]:
// put(channel, pixel, where), channel by channel.
template <typename Put>
void FillChannelsFirst(int64_t pixels, v1::DType dtype, int64_t begin, std::span<std::byte> out,
                       const Put& put) {
  const auto element = static_cast<size_t>(ElementBytes(dtype));
  for (int64_t address = begin; !out.empty(); ++address, out = out.subspan(element)) {
    put(address / pixels, address % pixels, out.data());
  }
}

// Fills rows of a tensor [pixels, channels]: put(pixel, row).
template <typename Put>
void FillPixelRows(int64_t channels, v1::DType dtype, int64_t begin, std::span<std::byte> out,
                   const Put& put) {
  const auto row = static_cast<size_t>(channels * ElementBytes(dtype));
  for (int64_t pixel = begin / channels; !out.empty(); ++pixel, out = out.subspan(row)) {
    put(pixel, out.first(row));
  }
}

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_IMAGE_LAYOUTS_H_
