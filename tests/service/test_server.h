// A server in this process, on a loopback port of its own, and how tests talk to it.
#ifndef POSENC_TESTS_SERVICE_TEST_SERVER_H_
#define POSENC_TESTS_SERVICE_TEST_SERVER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "posenc/v1/error_details.pb.h"
#include "posenc/v1/service.grpc.pb.h"
#include "server/server.h"

namespace posenc::testing {

// Options for tests: one loopback port, two threads.
server::ServerOptions TestOptions();

class TestServer {
 public:
  explicit TestServer(const server::ServerOptions& options = TestOptions());

  server::Server& server() { return *server_; }
  v1::PositionalEncodingService::Stub& stub() { return *stub_; }
  // A connection of its own: gRPC shares equal channels otherwise.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  v1::GetServerInfoResponse Info();

 private:
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<v1::PositionalEncodingService::Stub> stub_;
};

// A connection of its own, without retries, that takes messages of any size.
std::shared_ptr<grpc::Channel> Connect(const std::string& address);

// A place where pool threads stop until a test lets them go.
class Gate {
 public:
  // For ServerOptions::before_job: counts, and blocks while the gate is closed.
  std::function<void()> Hook();

  void Close();
  void Open();
  void WaitForArrivals(int count);  // so many threads stand at the closed gate
  int passed() const;               // jobs that went through, ever

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int standing_ = 0;
  int passed_ = 0;
};

// attention_bias [heads, queries, keys], f32.
v1::GetTableRequest AlibiBias(int64_t heads, int64_t queries, int64_t keys);
// A table of `bytes` bytes, whatever they are. REQUIRES: bytes is a multiple of 4096.
v1::GetTableRequest TableOf(uint64_t bytes);

struct ReadResult {
  std::vector<v1::GetTableResponse> messages;
  std::string data;  // of all messages
  grpc::Status status;

  const v1::TableHeader& header() const { return messages.front().header(); }
  const std::string& content_hash() const { return messages.back().content_hash(); }
};

// Reads a table to its end.
ReadResult Read(v1::PositionalEncodingService::StubInterface& stub,
                const v1::GetTableRequest& request, grpc::ClientContext* context = nullptr);

// A call with raw bytes, or without any message. `method` is its name in the
// service, or a whole path that begins with a slash.
grpc::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel, absl::string_view method,
                     const std::optional<std::string>& request,
                     std::vector<std::string>* responses = nullptr,
                     grpc::ClientContext* context = nullptr);

// How a call ends that is opened and whose message never comes.
grpc::Status CallSendingNothing(const std::shared_ptr<grpc::Channel>& channel,
                                absl::string_view method);

// The detail of type `Detail` in a status, if it has one.
template <typename Detail>
std::optional<Detail> DetailOf(const grpc::Status& status) {
  v1::RpcStatus wire;
  if (!wire.ParseFromString(status.error_details())) return std::nullopt;
  for (const auto& any : wire.details()) {
    Detail detail;
    if (any.type_url() == "type.googleapis.com/google.rpc." + Detail::descriptor()->name() &&
        detail.ParseFromString(any.value())) {
      return detail;
    }
  }
  return std::nullopt;
}

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SERVICE_TEST_SERVER_H_
