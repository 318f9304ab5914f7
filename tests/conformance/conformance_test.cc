// The same bytes whichever way they are asked for: one suite, run against the
// embedded engine with every kind of cache, an in-process server, and a real
// server process over TCP, over a Unix socket and through shared memory.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "posenc/client.h"
#include "posenc/connection.h"
#include "posenc/embedded_connection.h"
#include "server/server.h"
#include "tests/conformance/cases.h"
#include "tests/support/process.h"

namespace posenc::testing {
namespace {

struct Bytes {
  Transport transport;
  std::string table_id;
  std::string content_hash;
  std::vector<std::byte> bytes;
};

Bytes ReadTable(const Client& client, const v1::GetTableRequest& request) {
  absl::StatusOr<TableReader> table = client.GetTable(request);
  EXPECT_TRUE(table.ok()) << table.status();
  if (!table.ok()) return {};
  Bytes result;
  result.transport = table->transport();
  result.table_id = table->header().table_id();
  result.bytes.resize(table->header().total_bytes() - request.read_offset());
  const absl::Status status = table->ReadAll(result.bytes);
  EXPECT_TRUE(status.ok()) << status;
  result.content_hash = table->content_hash();
  return result;
}

// What all others are compared with: one engine, nothing cached between cases.
const Bytes& Expected(const Case& c) {
  static auto* const kKnown = new std::map<std::string, Bytes>;
  auto found = kKnown->find(c.name);
  if (found == kKnown->end()) {
    const Client client(MakeEmbeddedConnection({.plan_cache_bytes = 0, .page_cache_bytes = 0}));
    found = kKnown->emplace(c.name, ReadTable(client, c.request)).first;
  }
  return found->second;
}

// A way to posenc. What it needs lives as long as it.
struct Way {
  std::shared_ptr<void> owner;
  std::shared_ptr<Connection> connection;
};

struct WayTo {
  std::string name;
  std::function<Way()> make;
  Transport transport = Transport::kStream;
};

// GoogleTest names parameters in its messages with this.
void PrintTo(const WayTo& way, std::ostream* out) { *out << way.name; }

Way Embedded(size_t page_cache_bytes) {
  return {nullptr, MakeEmbeddedConnection({.page_cache_bytes = page_cache_bytes})};
}

Way InProcess(size_t page_bytes) {
  server::ServerOptions options;
  options.engine.page_bytes = page_bytes;
  options.compute_threads = 2;
  std::shared_ptr<server::Server> running = *server::Server::Start(options);
  return {running, MakeConnection(running->InProcessChannel())};
}

Way RealServer(const std::string& listen) {
  auto process = std::make_shared<ServerProcess>(std::vector<std::string>{"--listen", listen});
  return {process, MakeConnection(process->address())};
}

Way SharedMemory() {
  auto process = std::make_shared<ServerProcess>(std::vector<std::string>{
      "--listen", "unix:" + TemporaryPath("posenc.sock"), "--share-memory"});
  ClientOptions options;
  options.share_memory = true;
  return {process, MakeConnection(process->address(), options)};
}

const WayTo kWays[] = {
    {"embedded", [] { return Embedded(size_t{256} << 20); }},
    {"embedded_without_cache", [] { return Embedded(0); }},
    {"embedded_evicting", [] { return Embedded(size_t{3} << 20); }},
    {"in_process_server", [] { return InProcess(size_t{1} << 20); }},
    {"in_process_server_small_pages", [] { return InProcess(size_t{64} << 10); }},
    {"server_over_tcp", [] { return RealServer("127.0.0.1:0"); }},
    {"server_over_unix_socket", [] { return RealServer("unix:" + TemporaryPath("posenc.sock")); }},
    {"shared_memory", [] { return SharedMemory(); }, Transport::kSharedMemory},
};

class ConformanceTest : public ::testing::TestWithParam<WayTo> {
 protected:
  ConformanceTest() : way_(GetParam().make()), client_(way_.connection) {}

  const Way way_;
  const Client client_;
};

TEST_P(ConformanceTest, GivesTheSameBytesTwice) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    for (int round = 0; round < 2; ++round) {
      const Bytes got = ReadTable(client_, c.request);
      EXPECT_EQ(got.transport, GetParam().transport);
      EXPECT_EQ(got.table_id, Expected(c).table_id);
      EXPECT_EQ(got.content_hash, Expected(c).content_hash);
      EXPECT_TRUE(got.bytes == Expected(c).bytes);
    }
  }
}

TEST_P(ConformanceTest, ResumedAtAnyOffsetGivesTheRest) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const std::vector<std::byte>& all = Expected(c).bytes;
    const size_t size = all.size();
    for (const size_t offset : {size_t{0}, size_t{1}, size / 3, size / 2 + 1, size - size / 7,
                                size - (size != 0), size}) {
      if (offset > size) continue;
      v1::GetTableRequest request = c.request;
      request.set_read_offset(offset);
      request.set_if_table_id(Expected(c).table_id);
      EXPECT_TRUE(
          std::ranges::equal(ReadTable(client_, request).bytes, std::span(all).subspan(offset)))
          << "from " << offset;
    }
  }
}

TEST_P(ConformanceTest, GivesTheSameBytesToEightThreadsAtOnce) {
  for (const Case& c : Cases()) Expected(c);  // before the threads
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < Cases().size(); ++i) {
        const Case& c = Cases()[(i + t) % Cases().size()];
        EXPECT_TRUE(ReadTable(client_, c.request).bytes == Expected(c).bytes) << c.name;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Ways, ConformanceTest, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace posenc::testing
