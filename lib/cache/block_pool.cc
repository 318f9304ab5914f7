#include "lib/cache/block_pool.h"

#include <sys/mman.h>

#include <new>

namespace posenc {
namespace {

std::byte* Allocate(size_t bytes) {
  return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{BlockPool::kAlignment}));
}

void Free(std::byte* data) { ::operator delete (data, std::align_val_t{BlockPool::kAlignment}); }

// Faulted in by one call of the kernel, not page by page by the first writer.
std::byte* MapBlock(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}

}  // namespace

BlockPool::BlockPool(size_t block_bytes, size_t max_free_bytes)
    : block_bytes_(block_bytes), max_free_blocks_(max_free_bytes / block_bytes) {
  free_.reserve(max_free_blocks_);
}

BlockPool::~BlockPool() {
  for (std::byte* block : free_) munmap(block, block_bytes_);
}

std::byte* BlockPool::Take(size_t bytes) {
  if (!IsBlock(bytes)) return Allocate(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      std::byte* block = free_.back();  // the warmest
      free_.pop_back();
      return block;
    }
  }
  return MapBlock(block_bytes_);
}

void BlockPool::Give(std::byte* data, size_t bytes) {
  if (!IsBlock(bytes)) return Free(data);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() < max_free_blocks_) {
      free_.push_back(data);
      return;
    }
  }
  munmap(data, block_bytes_);
}

size_t BlockPool::free_blocks() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return free_.size();
}

}  // namespace posenc
