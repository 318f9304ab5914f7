// A table through shared memory, against reading private memory of the same size.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "posenc/client.h"
#include "tests/bench/cases.h"
#include "tests/support/process.h"

namespace posenc::bench {
namespace {

constexpr size_t kRowBytes = 128 * sizeof(float);
constexpr size_t kGiB = size_t{1} << 30;

v1::GetTableRequest TableOf(size_t bytes) {
  v1::GetTableRequest request;
  request.mutable_spec()->mutable_sinusoidal()->set_d_model(128);
  request.mutable_selection()->mutable_position_range()->set_end(
      static_cast<int64_t>(bytes / kRowBytes));
  return request;
}

// Touches every byte as fast as memory gives them: 8 sums, which vectors can hold.
uint64_t SumOf(std::span<const std::byte> bytes) {
  uint64_t sums[8] = {};
  for (size_t at = 0; at + sizeof(sums) <= bytes.size(); at += sizeof(sums)) {
    uint64_t words[8];
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (size_t i = 0; i < 8; ++i) sums[i] += words[i];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

volatile uint64_t sink;  // so that no sum is left out

class Sharing {
 public:
  Sharing()
      : server_({"--listen", "unix:" + testing::TemporaryPath("bench.sock"), "--share-memory",
                 "--share-memory-bytes", "3gb", "--page-cache-bytes", "0", "--log-level",
                 "error"}) {
    options_.share_memory = true;
  }

  // A client of its own has mappings of its own.
  Client NewClient() { return Client(MakeConnection(server_.address(), options_)); }

 private:
  testing::ServerProcess server_;
  ClientOptions options_;
};

TableReader Open(const Client& client, size_t bytes) {
  absl::StatusOr<TableReader> reader = client.GetTable(TableOf(bytes));
  if (!reader.ok() || reader->transport() != Transport::kSharedMemory) std::abort();
  return *std::move(reader);
}

std::span<const std::byte> View(const TableReader& reader) {
  return reader.ViewTensor("positional_encoding")->bytes;
}

// Seconds of a request and `read`, whose mapping ends with it unless another
// reader of the same client keeps it.
double Read(const Client& client, size_t bytes,
            const std::function<uint64_t(std::span<const std::byte>)>& read) {
  return Timed([&] {
    const TableReader reader = Open(client, bytes);
    sink = read(View(reader));
  });
}

uint64_t FirstByte(std::span<const std::byte> bytes) { return static_cast<uint64_t>(bytes[0]); }

// The median of a few: one run that meets another process's turn says nothing.
double Median(size_t count, const Run& run) {
  std::vector<double> seconds(count);
  std::generate(seconds.begin(), seconds.end(), run);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

// The whole table with a mapping that is kept, and as much private memory.
void AddKept(Rounds* rounds, const std::shared_ptr<Sharing>& sharing, const std::string& size,
             size_t bytes, size_t runs) {
  const auto client = std::make_shared<Client>(sharing->NewClient());
  const auto kept = std::make_shared<TableReader>(Open(*client, bytes));
  const auto own = std::make_shared<Region>(bytes);
  rounds->Add("shared, kept " + size, [=] {
    static_cast<void>(kept);
    return Median(runs, [&] { return Read(*client, bytes, SumOf); });
  });
  rounds->Add("private " + size, [=] {
    return Median(runs, [&] { return Timed([&] { sink = SumOf(own->bytes()); }); });
  });
}

// Twice 1 GiB and what else runs.
bool HasMemoryForGibibytes() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) > 4 * kGiB;
}

}  // namespace

void AddHandOverCases(Rounds* rounds) {
  const auto sharing = std::make_shared<Sharing>();
  constexpr size_t k64MiB = size_t{64} << 20;
  const auto client = std::make_shared<Client>(sharing->NewClient());
  rounds->Add("shared, first byte",
              [=] { return Median(15, [&] { return Read(*client, k64MiB, FirstByte); }); });
  rounds->Add("shared, mapped anew 64 MiB", [=] { return Read(*client, k64MiB, SumOf); });
  rounds->Add("0.3 ms", [sharing] { return 0.3e-3; });
  AddKept(rounds, sharing, "64 MiB", k64MiB, 5);
  if (HasMemoryForGibibytes()) AddKept(rounds, sharing, "1 GiB", kGiB, 1);
}

std::vector<Goal> HandOverGoals() {
  return {
      {"G17", "shared memory: request to first byte of 64 MiB / 0.3 ms", "shared, first byte",
       "0.3 ms", 1.0},
      {"G17", "the same read whole, mapping kept, 64 MiB / private", "shared, kept 64 MiB",
       "private 64 MiB", 0.75},
      {"G17", "the same read whole, mapping kept, 1 GiB / private", "shared, kept 1 GiB",
       "private 1 GiB", 0.90},
      {"", "the same read whole, mapped anew, 64 MiB / private", "shared, mapped anew 64 MiB",
       "private 64 MiB", 0},
  };
}

}  // namespace posenc::bench
