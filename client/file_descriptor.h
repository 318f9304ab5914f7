// A file descriptor that is closed with its owner.
#ifndef POSENC_CLIENT_FILE_DESCRIPTOR_H_
#define POSENC_CLIENT_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace posenc {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }  // negative: none

 private:
  int fd_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_FILE_DESCRIPTOR_H_
