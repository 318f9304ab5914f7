// A file descriptor that is closed with its owner.
#ifndef POSENC_LIB_BASE_FILE_DESCRIPTOR_H_
#define POSENC_LIB_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace posenc {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }  // negative: none
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace posenc

#endif  // POSENC_LIB_BASE_FILE_DESCRIPTOR_H_
