// The processes at the other end of the wire, made once for all cases.
#ifndef POSENC_TESTS_BENCH_WIRE_PEERS_H_
#define POSENC_TESTS_BENCH_WIRE_PEERS_H_

#include <string>

#include "tests/bench/children.h"
#include "tests/bench/read_table.h"
#include "tests/support/process.h"

namespace posenc::bench {

// A TCP and a Unix address, as gRPC takes them.
struct Addresses {
  std::string tcp;
  std::string unix_path;  // without "unix:"

  std::string on(bool is_unix) const { return is_unix ? "unix:" + unix_path : tcp; }
};

// A child that serves on both.
class BothChild {
 public:
  BothChild(void (*serve)(int, const std::string&), const std::string& name)
      : path_(testing::TemporaryPath(name + ".sock")),
        child_([&](int port_pipe) { serve(port_pipe, path_); }) {}

  pid_t pid() const { return child_.pid(); }
  Addresses addresses() const { return {"127.0.0.1:" + std::to_string(child_.port()), path_}; }

 private:
  const std::string path_;
  Child child_;
};

// posenc-server on both.
class BothServer {
 public:
  BothServer(const std::string& name, const std::string& page_cache_bytes)
      : path_(testing::TemporaryPath(name + ".sock")),
        server_({"--listen", "127.0.0.1:0", "--listen", "unix:" + path_, "--page-cache-bytes",
                 page_cache_bytes, "--log-level", "error"}) {}

  pid_t pid() const { return server_.pid(); }
  Addresses addresses() const { return {tcp_, path_}; }

 private:
  const std::string path_;
  testing::ServerProcess server_;
  const std::string tcp_ = server_.address();
};

// REQUIRES: made before this process uses gRPC.
struct WirePeers {
  std::string raw_path = testing::TemporaryPath("raw.sock");
  Child raw_tcp{[](int pipe) { ServeRawSocket(pipe, ""); }};
  Child raw_unix{[this](int pipe) { ServeRawSocket(pipe, raw_path); }};
  Child ping_unix{[this](int pipe) { ServeRawSocket(pipe, raw_path + ".ping"); }};
  BothChild naive{ServeNaively, "naive"};
  BothChild empty_queue{ServeEmptyFromQueue, "queue"};
  BothChild empty_callbacks{ServeEmptyFromCallbacks, "callbacks"};
  BothServer server{"cached", "1500mb"};
  BothServer uncached{"uncached", "0"};
  Worker naive_tcp_client{NaiveReaderOf(naive.addresses().on(false))};
  Worker naive_unix_client{NaiveReaderOf(naive.addresses().on(true))};
  Worker untuned_client{TableReaderOf(server.addresses().tcp)};
};

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_WIRE_PEERS_H_
