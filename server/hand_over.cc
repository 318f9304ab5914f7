#include "server/hand_over.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "server/accept.h"
#include "server/log.h"

namespace posenc::server {
namespace {

constexpr char kSuffix[] = ".memfd";

// Who connected, as the kernel saw it; nobody's ids when it does not say.
ucred PeerOf(int socket) {
  ucred peer = {.pid = 0, .uid = uid_t(-1), .gid = gid_t(-1)};
  socklen_t size = sizeof(peer);
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return peer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HandOver>> HandOver::Start(
    const std::vector<std::string>& unix_paths, std::chrono::nanoseconds patience,
    const ServiceParts& parts) {
  ASSIGN_OR_RETURN(std::shared_ptr<WakeUp> wake, WakeUp::Create());
  std::unique_ptr<HandOver> started(new HandOver(parts, patience, std::move(wake)));
  for (const std::string& path : unix_paths) RETURN_IF_ERROR(started->Listen(path + kSuffix));
  started->thread_ = std::thread([raw = started.get()] { raw->Run(); });
  return started;
}

absl::Status HandOver::Listen(const std::string& path) {
  constexpr size_t kMostBytes = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMostBytes) {
    return FieldError("share_memory", absl::StrCat("a Unix path takes at most ", kMostBytes,
                                                   " bytes, got ", path.size(), " in ", path));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<UnixPathLock> lock, UnixPathLock::Take(path));
  ASSIGN_OR_RETURN(FileDescriptor socket, ListenAtUnixPath(path, 0600));
  listeners_.push_back({std::move(lock), std::move(socket)});
  return absl::OkStatus();
}

HandOver::~HandOver() {
  stopping_ = true;
  wake_->Signal();
  if (thread_.joinable()) thread_.join();
}

// A peer that joins in a turn is polled from the next one on.
void HandOver::Run() {
  while (!stopping_) {
    std::vector<pollfd> polled = WhatToPoll();
    if (poll(polled.data(), polled.size(), PollTimeoutMillis()) < 0) {
      for (pollfd& one : polled) one.revents = 0;  // a signal; deadlines hold all the same
    }
    wake_->Clear();
    const size_t first_peer = 1 + listeners_.size();
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (!peers_[i]->Advance(polled[first_peer + i].revents)) peers_[i].reset();
    }
    std::erase(peers_, nullptr);
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (polled[1 + i].revents != 0) Accept(listeners_[i].socket.get());
    }
  }
  peers_.clear();
}

// The wake-up, the listeners, the peers, in this order.
std::vector<pollfd> HandOver::WhatToPoll() const {
  std::vector<pollfd> polled = {{wake_->fd(), POLLIN, 0}};
  const bool accepts = Clock::now() >= no_accept_before_;
  for (const Listener& listener : listeners_) {
    polled.push_back({accepts ? listener.socket.get() : -1, POLLIN, 0});
  }
  for (const auto& peer : peers_) polled.push_back(peer->Poll());
  return polled;
}

// Until the first deadline; rounded up, so that it has passed then.
int HandOver::PollTimeoutMillis() const {
  const Clock::time_point now = Clock::now();
  auto next = no_accept_before_ > now ? no_accept_before_ : Clock::time_point::max();
  for (const auto& peer : peers_) next = std::min(next, peer->deadline());
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

void HandOver::Accept(int listener) {
  if (!AcceptSome(listener, [this](FileDescriptor socket) { Welcome(std::move(socket)); })) {
    no_accept_before_ = Clock::now() + kPauseWithoutDescriptors;
  }
}

void HandOver::Welcome(FileDescriptor socket) {
  const ucred peer = PeerOf(socket.get());
  if (peer.uid != geteuid()) {
    return Log(LogLevel::kWarning, "no memory is shared with another user",
               {{"uid", int64_t{peer.uid}}, {"pid", int64_t{peer.pid}}});
  }
  if (peers_.size() >= kMaxPeers) {
    return Log(LogLevel::kWarning, "too many readers of shared memory",
               {{"pid", int64_t{peer.pid}}});
  }
  peers_.push_back(std::make_unique<HandOverPeer>(std::move(socket),
                                                  parts_.limits.max_request_bytes(), patience_,
                                                  std::make_shared<HandOverCall>(parts_, wake_)));
}

}  // namespace posenc::server
