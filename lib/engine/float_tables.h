// The tables of numbers inside a spec, wherever its message has them.
#ifndef POSENC_LIB_ENGINE_FLOAT_TABLES_H_
#define POSENC_LIB_ENGINE_FLOAT_TABLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "posenc/v1/encoding.pb.h"

namespace posenc {

// A header is read by clients that take messages of 4 MiB, so it names the numbers
// of a table larger than this by their hash.
inline constexpr size_t kMaxEchoedTableBytes = size_t{64} << 10;

struct FloatTableField {
  std::string path;  // as errors have it: table_resample.table
  v1::FloatTable* table;
};

// Those that are set, in field order: the order of an upload.
std::vector<FloatTableField> FindFloatTables(v1::EncodingSpec* spec);

// Puts content_hash in the place of f32 where that is larger than kMaxEchoedTableBytes.
void ShortenFloatTables(v1::EncodingSpec* spec);

}  // namespace posenc

#endif  // POSENC_LIB_ENGINE_FLOAT_TABLES_H_
