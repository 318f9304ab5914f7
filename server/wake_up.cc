#include "server/wake_up.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace posenc::server {

absl::StatusOr<std::shared_ptr<WakeUp>> WakeUp::Create() {
  FileDescriptor fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd.get() < 0) {
    return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  }
  return std::shared_ptr<WakeUp>(new WakeUp(std::move(fd)));
}

void WakeUp::Signal() {
  const uint64_t one = 1;
  // Fails only when it is signalled already.
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof(one));
}

void WakeUp::Clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = read(fd_.get(), &count, sizeof(count));
}

}  // namespace posenc::server
