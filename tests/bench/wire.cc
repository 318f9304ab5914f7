// Streaming a table and answering small calls, with a real server process.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "posenc/client.h"
#include "posenc/v1/service.grpc.pb.h"
#include "tests/bench/cases.h"
#include "tests/bench/children.h"
#include "tests/support/process.h"

namespace posenc::bench {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();

// 131072 x 128 x f32: 64 MiB.
v1::GetTableRequest RopeRequest(int64_t positions) {
  v1::GetTableRequest request;
  v1::RopeSpec* rope = request.mutable_spec()->mutable_rope();
  rope->set_head_dim(128);
  rope->set_rope_theta(500000);
  rope->set_arithmetic(v1::ARITHMETIC_EXACT);
  request.mutable_selection()->mutable_position_range()->set_end(positions);
  return request;
}

class RawSocket {
 public:
  RawSocket() : child_(ServeRawSocket), socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    // The raw limit that the goals name: cubic, where the system has it.
    setsockopt(socket_, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(child_.port()));
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      std::abort();
    }
  }
  ~RawSocket() { close(socket_); }

  double Read(std::span<std::byte> out) {
    return Timed([&] {
      const uint64_t bytes = out.size();
      if (send(socket_, &bytes, sizeof(bytes), 0) != sizeof(bytes)) std::abort();
      for (size_t at = 0; at < out.size();) {
        const ssize_t count = recv(socket_, out.data() + at, out.size() - at, 0);
        if (count <= 0) std::abort();
        at += static_cast<size_t>(count);
      }
    });
  }

 private:
  Child child_;
  int socket_;
};

class NaiveClient {
 public:
  explicit NaiveClient(int port)
      : stub_(v1::PositionalEncodingService::NewStub(grpc::CreateChannel(
            "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()))) {}

  double Read(uint64_t chunk, std::span<std::byte> out) {
    return Timed([&] {
      grpc::ClientContext context;
      v1::GetTableRequest request;
      request.set_read_offset(chunk);
      const auto reader = stub_->GetTable(&context, request);
      v1::GetTableResponse response;
      while (reader->Read(&response)) {
        std::memcpy(out.data() + response.offset(), response.data().data(), response.data().size());
      }
      reader->Finish().ok();
    });
  }

 private:
  std::unique_ptr<v1::PositionalEncodingService::Stub> stub_;
};

double ReadTable(const Client& client, int64_t positions, std::span<std::byte> out) {
  bool ok = true;
  const double seconds = Timed([&] {
    absl::StatusOr<TableReader> table = client.GetTable(RopeRequest(positions));
    ok = table.ok() && table->ReadAll(out.first(table->header().total_bytes())).ok();
  });
  return ok ? seconds : kFailed;
}

// `count` calls by each of 8 threads.
double CallManyTimes(int count, const std::function<bool()>& call) {
  bool ok = true;
  const double seconds = Timed([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < count; ++i) ok = call() && ok;
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  return ok ? seconds : kFailed;
}

// What the wire cases keep alive. The children come before anything of gRPC.
struct Peers {
  RawSocket raw;
  Child naive_server{ServeNaively};
  NaiveClient naive{naive_server.port()};
  testing::ServerProcess server{
      {"--listen", "127.0.0.1:0", "--page-cache-bytes", "256mb", "--log-level", "error"}};
  testing::ServerProcess uncached{
      {"--listen", "127.0.0.1:0", "--page-cache-bytes", "0", "--log-level", "error"}};
  Client client{MakeConnection(server.address())};
  Client uncached_client{MakeConnection(uncached.address())};
};

}  // namespace

void AddWireCases(Rounds* rounds, const Region& region) {
  const auto peers = std::make_shared<Peers>();
  const std::span<std::byte> out = region.bytes();
  rounds->Add("raw tcp", [=] { return peers->raw.Read(out); });
  rounds->Add("naive 1 MiB", [=] { return peers->naive.Read(1 << 20, out); });
  rounds->Add("naive 64 KiB", [=] { return peers->naive.Read(64 << 10, out); });
  rounds->Add("stream cached", [=] { return ReadTable(peers->client, 131072, out); });
  rounds->Add("stream generated", [=] { return ReadTable(peers->uncached_client, 131072, out); });
  rounds->Add("stream 4 MiB cached", [=] { return ReadTable(peers->client, 8192, out); });
  rounds->Add("stream 4 MiB generated",
              [=] { return ReadTable(peers->uncached_client, 8192, out); });
  rounds->Add("empty calls",
              [=] { return CallManyTimes(50, [&] { return peers->client.CheckHealth().ok(); }); });
  v1::DescribeTableRequest describe;
  *describe.mutable_spec() = RopeRequest(1).spec();
  describe.mutable_spec()->mutable_rope()->set_rotary_dim(64);
  rounds->Add("describe calls", [=] {
    return CallManyTimes(50, [&] { return peers->client.DescribeTable(describe).ok(); });
  });
}

std::vector<Goal> WireGoals() {
  return {
      {"G11", "stream of 64 MiB, cached / raw TCP cubic", "stream cached", "raw tcp", 0.70},
      {"G11", "stream of 64 MiB, generated / raw TCP cubic", "stream generated", "raw tcp", 0.70},
      {"G12", "stream of 64 MiB, cached / usual gRPC code, 1 MiB", "stream cached", "naive 1 MiB",
       2.0},
      {"G12", "stream of 64 MiB, cached / usual gRPC code, 64 KiB", "stream cached", "naive 64 KiB",
       2.5},
      {"G15", "DescribeTable, 8 callers / empty calls", "describe calls", "empty calls", 0.90},
      {"G18", "64 MiB generated / cached", "stream generated", "stream cached", 1 / 1.1},
      {"G18", "4 MiB generated / cached", "stream 4 MiB generated", "stream 4 MiB cached",
       1 / 1.25},
  };
}

}  // namespace posenc::bench
