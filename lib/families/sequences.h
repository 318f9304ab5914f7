// The selection of encodings that read a number a token: checked once here.
#ifndef POSENC_LIB_FAMILIES_SEQUENCES_H_
#define POSENC_LIB_FAMILIES_SEQUENCES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// What an encoding reads of a v1::Sequences; the rest must be unset.
struct SequenceFields {
  bool values = true;
  bool lengths = false;
  bool num_targets = false;  // is optional even where it is read
  bool past_length = false;
};

struct ResolvedSequences {
  v1::Selection selection;  // canonical: batch_size, length and past_length (if read) are set
  int64_t batch_size = 0;
  int64_t length = 0;
  int64_t past_length = 0;
  std::string coordinates_key;
};

// Checks that `selection` is sequences with a value a token and a length a sequence,
// as far as they are read. Errors name the field: `selection.sequences.values: must
// have batch_size * length (6) entries, got 5`.
absl::StatusOr<ResolvedSequences> ResolveSequences(const v1::Selection& selection,
                                                   const SequenceFields& fields);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_SEQUENCES_H_
