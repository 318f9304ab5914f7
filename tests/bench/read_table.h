// Reading a table of a real server, and the usual gRPC code that it is compared with.
#ifndef POSENC_TESTS_BENCH_READ_TABLE_H_
#define POSENC_TESTS_BENCH_READ_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "posenc/client.h"

namespace posenc::bench {

inline constexpr size_t kTableBytes = size_t{64} << 20;

// Seconds that a table of `bytes` bytes took to come, through `out` if it is
// larger than that; infinity when it failed.
double ReadTable(const Client& client, uint64_t bytes, std::span<std::byte> out);

// For a Worker: reads a table of as many bytes as the argument says (at most
// kTableBytes) from posenc-server into memory that is there already.
std::function<double(uint64_t)> TableReaderOf(const std::string& address);

// For a Worker: reads kTableBytes from ServeNaively, in chunks as large as the
// argument says.
std::function<double(uint64_t)> NaiveReaderOf(const std::string& address);

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_READ_TABLE_H_
