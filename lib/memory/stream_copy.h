// Copies into memory that is in no cache and is not read soon: non-temporal stores
// write whole lines of it, where others would read each line first and write it twice.
#ifndef POSENC_LIB_MEMORY_STREAM_COPY_H_
#define POSENC_LIB_MEMORY_STREAM_COPY_H_

#include <cstddef>
#include <span>

namespace posenc {

// Copies all of `from` to `to`. Both may lie anywhere; they do not overlap. Other
// threads see the bytes once FinishStreams() was called after it.
void StreamCopy(std::span<const std::byte> from, std::byte* to);

void FinishStreams();

}  // namespace posenc

#endif  // POSENC_LIB_MEMORY_STREAM_COPY_H_
