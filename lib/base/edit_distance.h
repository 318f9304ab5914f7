// How many slips of a finger lie between two words.
#ifndef POSENC_LIB_BASE_EDIT_DISTANCE_H_
#define POSENC_LIB_BASE_EDIT_DISTANCE_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace posenc {

// Bytes put in, left out, replaced or exchanged with their neighbour: the optimal string
// alignment distance. Takes time in a.size() · b.size().
size_t EditDistance(absl::string_view a, absl::string_view b);

}  // namespace posenc

#endif  // POSENC_LIB_BASE_EDIT_DISTANCE_H_
