// Huge pages of memory files, as the system tells of them.
#ifndef POSENC_TESTS_SUPPORT_HUGE_PAGES_H_
#define POSENC_TESTS_SUPPORT_HUGE_PAGES_H_

#include <cstdint>

namespace posenc::testing {

// Whether Linux makes a huge page of a memfd here when it is asked to: asked without the
// code under test.
bool SystemMakesHugePages();

// How many bytes of the mapping that begins at `address` have huge pages, once it was read.
uint64_t HugeBytesAt(const void* address);

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_HUGE_PAGES_H_
