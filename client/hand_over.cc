#include "client/hand_over.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/request_parts.h"
#include "client/status_from_grpc.h"
#include "lib/base/file_descriptor.h"
#include "posenc/v1/hand_over.pb.h"

namespace posenc {
namespace {

// As the largest message of a stream: a header may echo a million position ids.
constexpr uint32_t kMaxReplyBytes = 16 << 20;
constexpr size_t kMaxDescriptors = 2;  // one too many; the kernel drops the rest

absl::Status Errno(const char* what) {
  return absl::UnavailableError(absl::StrCat("shared memory: ", what, ": ", std::strerror(errno)));
}

// A conversation with an end.
class Exchange {
 public:
  Exchange(FileDescriptor socket, absl::Time deadline)
      : socket_(std::move(socket)), deadline_(deadline) {}

  absl::Status Connect(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
      return absl::UnavailableError(absl::StrCat("shared memory: the path is too long: ", path));
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    // At once or not at all: a full backlog is EAGAIN.
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      return Errno(path.c_str());
    }
    return CheckUser();
  }

  absl::Status Send(std::span<const char> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes = bytes.subspan(static_cast<size_t>(count));
      } else if (absl::Status status = Await(POLLOUT, "send"); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Receive(std::span<char> out) {
    while (!out.empty()) {
      const absl::StatusOr<size_t> count = ReceiveSome(out);
      if (!count.ok()) return count.status();
      out = out.subspan(*count);
    }
    return absl::OkStatus();
  }

  // Those that came so far.
  const std::vector<FileDescriptor>& descriptors() const { return descriptors_; }

 private:
  absl::Status CheckUser() const {
    ucred peer = {};
    socklen_t size = sizeof(peer);
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      return Errno("SO_PEERCRED");
    }
    if (peer.uid == geteuid()) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("shared memory: the server's user id is ", peer.uid, ", ours is ", geteuid()));
  }

  // After a call that failed: OK when it is worth another try.
  absl::Status Await(short event, const char* what) const {
    if (errno == EINTR) return absl::OkStatus();
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Errno(what);
    const absl::Duration left = deadline_ - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("shared memory: no answer in time");
    }
    pollfd one = {socket_.get(), event, 0};
    constexpr absl::Duration kLongest = absl::Hours(1);  // poll() counts in an int
    const absl::Duration wait = std::min(left, kLongest) + absl::Milliseconds(1);
    poll(&one, 1, static_cast<int>(absl::ToInt64Milliseconds(wait)));
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> ReceiveSome(std::span<char> out) {
    iovec bytes = {out.data(), out.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    msghdr message = {};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t count = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (count < 0) {
      if (absl::Status status = Await(POLLIN, "recvmsg"); !status.ok()) return status;
      return size_t{0};
    }
    TakeDescriptors(message);
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
      return absl::InternalError("shared memory: the server sent too many descriptors");
    }
    if (count == 0) return absl::UnavailableError("shared memory: the server hung up");
    return static_cast<size_t>(count);
  }

  // They are ours to close, whatever comes next.
  void TakeDescriptors(const msghdr& message) {
    for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(part))) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
      const size_t size = part->cmsg_len - CMSG_LEN(0);
      for (size_t at = 0; at + sizeof(int) <= size; at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
        descriptors_.emplace_back(fd);
      }
    }
  }

  const FileDescriptor socket_;
  const absl::Time deadline_;
  std::vector<FileDescriptor> descriptors_;
};

absl::Status SendRequest(const v1::GetTableRequest& request, Exchange* exchange) {
  const auto length = static_cast<uint32_t>(request.ByteSizeLong());
  std::string frame(reinterpret_cast<const char*>(&length), sizeof(length));
  request.AppendToString(&frame);
  return exchange->Send(frame);
}

absl::StatusOr<v1::HandOverReply> ReceiveReply(Exchange* exchange) {
  uint32_t length = 0;
  absl::Status status = exchange->Receive({reinterpret_cast<char*>(&length), sizeof(length)});
  if (!status.ok()) return status;
  if (length > kMaxReplyBytes) {
    return absl::InternalError(absl::StrCat("shared memory: a reply of ", length, " bytes"));
  }
  std::string bytes(length, '\0');
  if (status = exchange->Receive(bytes); !status.ok()) return status;
  v1::HandOverReply reply;
  if (!reply.ParseFromString(bytes)) {
    return absl::InternalError("shared memory: the reply is no HandOverReply");
  }
  if (reply.has_error()) status = StatusFromRpc(reply.error());
  if (!status.ok()) return status;
  return reply;
}

}  // namespace

absl::StatusOr<SharedTable> HandOver::Get(const v1::GetTableRequest& request,
                                          const CallContext& context) {
  if (request.ByteSizeLong() > kMaxRequestMessageBytes) {
    return absl::UnavailableError("shared memory: the request is so large that it is uploaded");
  }
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return Errno("socket");
  Exchange exchange(std::move(socket),
                    std::min(context.deadline, absl::Now() + context.progress_timeout));
  if (absl::Status status = exchange.Connect(path_); !status.ok()) return status;
  if (absl::Status status = SendRequest(request, &exchange); !status.ok()) return status;
  absl::StatusOr<v1::HandOverReply> reply = ReceiveReply(&exchange);
  if (!reply.ok()) return reply.status();
  if (exchange.descriptors().size() != 1) {
    return absl::InternalError(absl::StrCat("shared memory: the server sent ",
                                            exchange.descriptors().size(),
                                            " descriptors, expected 1"));
  }
  const auto mapping =
      mappings_.Find(exchange.descriptors().front().get(), reply->header().total_bytes());
  if (!mapping.ok()) return mapping.status();
  return SharedTable{std::move(*reply->mutable_header()), reply->content_hash(),
                     (*mapping)->bytes(), *mapping};
}

}  // namespace posenc
