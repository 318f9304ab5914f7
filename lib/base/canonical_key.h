// A byte string that is equal for two messages exactly when their set fields are.
//
// Protobuf's own serialization is not canonical: it may differ between versions
// and languages. This encoding is ours, frozen, and the input of table ids:
//
//   message  = { field } 0x00000000                set fields, ascending number
//   field    = number:u32 count:u64 { value }      count is 1 unless repeated
//   value    = i64 | u64 | f64 bits | enum as i64 | bool as u64   8 bytes each
//            | length:u64 bytes                    strings and bytes
//            | message
//
// All integers are little-endian. -0.0 and 0.0 are different keys.
#ifndef POSENC_LIB_BASE_CANONICAL_KEY_H_
#define POSENC_LIB_BASE_CANONICAL_KEY_H_

#include <string>

#include "google/protobuf/message.h"

namespace posenc {

// Thread-safe. REQUIRES: no map fields, no groups.
std::string CanonicalKey(const google::protobuf::Message& message);

}  // namespace posenc

#endif  // POSENC_LIB_BASE_CANONICAL_KEY_H_
