// One turn at a listening socket, for threads that poll several.
#ifndef POSENC_SERVER_ACCEPT_H_
#define POSENC_SERVER_ACCEPT_H_

#include <chrono>
#include <functional>

#include "lib/base/file_descriptor.h"

namespace posenc::server {

// How long to leave listeners alone after AcceptSome was false: what waits there stays
// readable, so poll() would spin.
inline constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

// Accepts what waits at `listener`, a few at most, so that a flood holds nobody else up.
// False when the process or the system has no descriptor or no memory left for one.
// REQUIRES: `listener` does not block.
bool AcceptSome(int listener, const std::function<void(FileDescriptor)>& welcome);

}  // namespace posenc::server

#endif  // POSENC_SERVER_ACCEPT_H_
