#include "server/hand_over_peer.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "server/log.h"

namespace posenc::server {
namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);
constexpr size_t kReadBytes = size_t{64} << 10;  // at once, so that peers take turns

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

HandOverPeer::HandOverPeer(FileDescriptor socket, uint64_t max_request_bytes,
                           std::chrono::nanoseconds patience, std::shared_ptr<HandOverCall> call)
    : socket_(std::move(socket)),
      max_request_bytes_(max_request_bytes),
      patience_(patience),
      call_(std::move(call)),
      begin_(Clock::now()) {
  Enter(State::kReading);
}

HandOverPeer::~HandOverPeer() {
  const bool answered = call_->answered();
  call_->End();
  if (answered) {
    LogAnswer();
  } else {
    Log(LogLevel::kInfo, "a reader of shared memory left, or was given up");
  }
}

void HandOverPeer::LogAnswer() const {
  const bool refused = call_->table() == nullptr;
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin_);
  Log(LogLevel::kInfo, refused ? call_->status().message() : "handed over",
      {{"method", "HandOver"},
       {"code", absl::StatusCodeToString(call_->status().code())},
       {"bytes", refused ? 0 : static_cast<int64_t>(call_->table()->file.bytes())},
       {"micros", took.count()}});
}

void HandOverPeer::Enter(State state) {
  state_ = state;
  const bool for_ever = state == State::kWaiting || patience_.count() == 0;
  deadline_ = for_ever ? Clock::time_point::max() : Clock::now() + patience_;
}

pollfd HandOverPeer::Poll() const {
  switch (state_) {
    case State::kReading:
      return {socket_.get(), POLLIN, 0};
    case State::kWaiting:
      return {socket_.get(), 0, 0};  // whether it hangs up
    case State::kWriting:
      return {socket_.get(), POLLOUT, 0};
  }
  return {};
}

bool HandOverPeer::Advance(short revents) {
  if ((revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return false;  // nobody is there
  if (Clock::now() >= deadline_) return false;
  if (state_ == State::kReading && (revents & POLLIN) != 0 && !Read()) return false;
  if (state_ == State::kWaiting && call_->answered()) Enter(State::kWriting);
  return state_ != State::kWriting || Write();
}

// What has come of the request; starts the call when that is all.
bool HandOverPeer::Read() {
  char buffer[kReadBytes];
  const ssize_t count = recv(socket_.get(), buffer, sizeof(buffer), 0);
  if (count < 0) return WouldBlock();
  if (count == 0) return false;  // half a request
  received_.append(buffer, static_cast<size_t>(count));
  if (received_.size() < kLengthBytes) return true;
  uint32_t length = 0;
  std::memcpy(&length, received_.data(), kLengthBytes);
  if (length > max_request_bytes_) {
    Enter(State::kWaiting);
    call_->Refuse(
        QuotaError("request", absl::StrCat("its ", length, " bytes exceed max_request_bytes (",
                                           max_request_bytes_, ")")));
    return true;
  }
  if (received_.size() - kLengthBytes < length) return true;
  Enter(State::kWaiting);
  call_->Start(received_.substr(kLengthBytes, length));
  received_.clear();
  return true;
}

// As much of the answer as the peer takes. False when that was the last of it.
bool HandOverPeer::Write() {
  const std::string& frame = call_->frame();
  const int table_fd = call_->table() == nullptr ? -1 : call_->table()->file.fd();
  while (sent_ < frame.size()) {
    const ssize_t count = SendSome(frame, sent_ == 0 ? table_fd : -1);
    if (count < 0) return WouldBlock();
    sent_ += static_cast<size_t>(count);
  }
  return false;
}

// With the descriptor, unless that is negative. Like send().
ssize_t HandOverPeer::SendSome(const std::string& frame, int table_fd) {
  iovec bytes = {const_cast<char*>(frame.data()) + sent_, frame.size() - sent_};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (table_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &table_fd, sizeof(table_fd));
  }
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
}

}  // namespace posenc::server
