#include "lib/memory/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// Compiled once for each instruction set; the best is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/memory/stream_copy.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLine = 64;

// A line at a time: each is then written as a whole.
void CopyLines(const uint8_t* HWY_RESTRICT from, size_t lines, uint8_t* HWY_RESTRICT to) {
  const hn::CappedTag<uint8_t, kLine> d;
  const size_t step = hn::Lanes(d);
  for (size_t at = 0; at < lines * kLine; at += kLine) {
    for (size_t part = at; part < at + kLine; part += step) {
      hn::Stream(hn::LoadU(d, from + part), d, to + part);
    }
  }
}

void Copy(const uint8_t* from, size_t bytes, uint8_t* to) {
  const size_t past_line = reinterpret_cast<uintptr_t>(to) % kLine;
  const size_t head = std::min(bytes, (kLine - past_line) % kLine);
  std::memcpy(to, from, head);
  const size_t lines = (bytes - head) / kLine;
  CopyLines(from + head, lines, to + head);
  const size_t done = head + lines * kLine;
  std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc {

HWY_EXPORT(Copy);

void StreamCopy(std::span<const std::byte> from, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(Copy)
  (reinterpret_cast<const uint8_t*>(from.data()), from.size(), reinterpret_cast<uint8_t*>(to));
}

void FinishStreams() { hwy::FlushStream(); }

}  // namespace posenc
#endif
