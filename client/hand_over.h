// The reader's end of a hand-over in shared memory (hand_over.proto).
//
// It trusts nothing that comes: the server must run as this user, send exactly
// one descriptor, and that must be sealed memory of the size that the header says.
#ifndef POSENC_CLIENT_HAND_OVER_H_
#define POSENC_CLIENT_HAND_OVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/sealed_mapping.h"
#include "posenc/connection.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Thread-safe.
class HandOver {
 public:
  // For a server that listens on unix:`unix_path`.
  explicit HandOver(const std::string& unix_path) : path_(unix_path + ".memfd") {}

  // One attempt. Errors: what the server answered; UNAVAILABLE when it cannot be
  // reached (there is no socket where memory is not shared), PERMISSION_DENIED when it
  // runs as another user, DEADLINE_EXCEEDED, INTERNAL and DATA_LOSS for a peer
  // that does not keep to the protocol.
  absl::StatusOr<SharedTable> Get(const v1::GetTableRequest& request, const CallContext& context);

 private:
  const std::string path_;
  SealedMappings mappings_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_HAND_OVER_H_
