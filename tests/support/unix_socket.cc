#include "tests/support/unix_socket.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>

#include "gtest/gtest.h"

namespace posenc::testing {
namespace {

constexpr size_t kMaxDescriptors = 8;  // in one message

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int NewSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor MakeMemory(const std::string& bytes, int seals) {
  Descriptor fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  // For reading only, as a server gives it away (server/memory_file.cc).
  return Descriptor(
      open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_RDONLY | O_CLOEXEC));
}

int OpenDescriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd");
  return static_cast<int>(std::distance(begin, std::filesystem::directory_iterator()));
}

std::string Framed(const std::string& bytes) {
  const auto length = static_cast<uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + bytes;
}

std::string Framed(const google::protobuf::Message& message) {
  return Framed(message.SerializeAsString());
}

Descriptor BindUnix(const std::string& path) {
  Descriptor socket(NewSocket());
  const sockaddr_un address = AddressOf(path);
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return socket;
}

UnixSocket::UnixSocket(const std::string& path) : fd_(NewSocket()) {
  const sockaddr_un address = AddressOf(path);
  EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0)
      << path << ": " << std::strerror(errno);
}

bool UnixSocket::Send(const std::string& bytes, const std::vector<int>& descriptors) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    iovec part = {const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control = {};
    if (sent == 0 && !descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    const ssize_t count = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

void UnixSocket::EndSending() { shutdown(fd_.get(), SHUT_WR); }

std::string UnixSocket::Receive(size_t bytes) {
  std::string received;
  while (received.size() < bytes) {
    std::array<char, 65536> buffer;
    iovec part = {buffer.data(), std::min(buffer.size(), bytes - received.size())};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
    if (count <= 0) break;
    received.append(buffer.data(), static_cast<size_t>(count));
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    if (rights == nullptr) continue;
    for (size_t at = 0; at < rights->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(rights) + at, sizeof(fd));
      descriptors_.emplace_back(fd);
    }
  }
  return received;
}

bool UnixSocket::Receive(google::protobuf::Message* message) {
  uint32_t length = 0;
  const std::string head = Receive(sizeof(length));
  if (head.size() < sizeof(length)) return false;
  std::memcpy(&length, head.data(), sizeof(length));
  const std::string bytes = Receive(length);
  return bytes.size() == length && message->ParseFromString(bytes);
}

UnixServer::UnixServer(const std::string& path, std::function<void(UnixSocket*)> serve)
    : listener_(BindUnix(path)) {
  EXPECT_EQ(listen(listener_.get(), 8), 0);
  thread_ = std::thread([this, serve = std::move(serve)] {
    for (int fd = 0; (fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      UnixSocket socket{Descriptor(fd)};
      serve(&socket);
    }
  });
}

UnixServer::~UnixServer() {
  shutdown(listener_.get(), SHUT_RDWR);  // accept fails from here on
  thread_.join();
}

}  // namespace posenc::testing
