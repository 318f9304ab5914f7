#include "lib/cache/page.h"

#include <new>

namespace posenc {

Page::Page(size_t bytes)
    : bytes_(bytes),
      data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}))) {}

void Page::AlignedDelete::operator()(std::byte* data) const {
  ::operator delete (data, std::align_val_t{kAlignment});
}

}  // namespace posenc
