// How the cosines and sines of a token's rotation stand in a row of a tensor,
// for rotations whose pairs differ in axis. Layouts and tensors are RoPE's own
// (rope_layout.h), with rotary_dim channels.
#ifndef POSENC_LIB_FAMILIES_ROTARY_LAYOUT_H_
#define POSENC_LIB_FAMILIES_ROTARY_LAYOUT_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "posenc/v1/table.pb.h"

namespace posenc {

// Channel c of the doubled row (COS_AND_SIN_FULL) holds the value of pair
// channel_pairs[c]; 2 * pairs channels. Where the two channels of a pair have
// values of their own (xdrope), a "pair" is a channel, channel_pairs is 0, 1, ...,
// and no other layout makes sense.
struct RotaryLayout {
  int64_t pairs = 0;
  std::vector<uint32_t> channel_pairs;

  int64_t rotary_dim() const { return static_cast<int64_t>(channel_pairs.size()); }

  // Channels i and i + pairs.
  static RotaryLayout Half(int64_t pairs) {
    RotaryLayout layout{.pairs = pairs, .channel_pairs = {}};
    for (int64_t c = 0; c < 2 * pairs; ++c) {
      layout.channel_pairs.push_back(static_cast<uint32_t>(c % pairs));
    }
    return layout;
  }

  // Channels 2i and 2i + 1.
  static RotaryLayout Interleaved(int64_t pairs) {
    RotaryLayout layout{.pairs = pairs, .channel_pairs = {}};
    for (int64_t c = 0; c < 2 * pairs; ++c) {
      layout.channel_pairs.push_back(static_cast<uint32_t>(c / 2));
    }
    return layout;
  }
};

// Any float type, or its bits: the sign is the top bit of the last byte.
template <typename T>
T Negated(T value) {
  auto bytes = std::bit_cast<std::array<uint8_t, sizeof(T)>>(value);
  bytes.back() ^= 0x80;
  return std::bit_cast<T>(bytes);
}

// Writes the row of tensor number `tensor` from the cosines and sines of a
// token's pairs. T is an element type, or a type of its size.
template <typename T>
void WriteRotaryRow(v1::Layout layout, size_t tensor, const RotaryLayout& rotary,
                    std::span<const T> cos, std::span<const T> sin, T* out) {
  switch (layout) {
    case v1::LAYOUT_COS_AND_SIN_HALF:
      std::copy_n(tensor == 0 ? cos.data() : sin.data(), cos.size(), out);
      return;
    case v1::LAYOUT_COS_AND_SIN_FULL:
      for (const uint32_t pair : rotary.channel_pairs) *out++ = tensor == 0 ? cos[pair] : sin[pair];
      return;
    case v1::LAYOUT_COS_AND_SIN_REPEATED: {
      const std::span<const T> values = tensor == 0 ? cos : sin;
      std::copy_n(values.data(), values.size(), std::copy_n(values.data(), values.size(), out));
      return;
    }
    case v1::LAYOUT_PAIRS_FULL:
    case v1::LAYOUT_PAIRS:
      for (int times = layout == v1::LAYOUT_PAIRS ? 1 : 2; times > 0; --times) {
        for (size_t i = 0; i < cos.size(); ++i) {
          *out++ = cos[i];
          *out++ = sin[i];
        }
      }
      return;
    case v1::LAYOUT_ROTATION_MATRIX:
      for (size_t i = 0; i < cos.size(); ++i) {
        *out++ = cos[i];
        *out++ = Negated(sin[i]);
        *out++ = sin[i];
        *out++ = cos[i];
      }
      return;
    case v1::LAYOUT_SIN_COS:
      std::copy_n(cos.data(), cos.size(), std::copy_n(sin.data(), sin.size(), out));
      return;
    default:  // COS_SIN
      std::copy_n(sin.data(), sin.size(), std::copy_n(cos.data(), cos.size(), out));
  }
}

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ROTARY_LAYOUT_H_
