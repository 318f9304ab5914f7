#include "tests/service/test_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"

namespace posenc::testing {

using v1::PositionalEncodingService;

namespace {

constexpr std::chrono::seconds kTimeToConnect{10};

}  // namespace

server::ServerOptions TestOptions() {
  server::ServerOptions options;
  options.listen = {"127.0.0.1:0"};
  options.compute_threads = 2;
  return options;
}

TestServer::TestServer(const server::ServerOptions& options) {
  // As main() does: the last grpc_shutdown can wait 10 s for a poller.
  static const bool kept = (grpc_init(), true);
  EXPECT_TRUE(kept);
  auto started = server::Server::Start(options);
  if (!started.ok()) {
    ADD_FAILURE() << started.status();
    std::abort();  // nothing of the test makes sense
  }
  server_ = *std::move(started);
  stub_ = PositionalEncodingService::NewStub(NewChannel());
}

// Connected: gRPC 1.51 takes a connection under way for failed when another thread's first
// wait for a lock sets errno meanwhile (seen: "No such file or directory"), and tries again.
std::shared_ptr<grpc::Channel> TestServer::NewChannel() const {
  auto channel = Connect(server_->addresses().front());
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + kTimeToConnect));
  return channel;
}

v1::GetServerInfoResponse TestServer::Info() {
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  const grpc::Status status = stub_->GetServerInfo(&context, {}, &info);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return info;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::function<void()> Gate::Hook() {
  return [this] {
    std::unique_lock<std::mutex> lock(mutex_);
    ++standing_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !closed_; });
    --standing_;
    ++passed_;
  };
}

void Gate::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
}

void Gate::Open() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = false;
  }
  changed_.notify_all();
}

void Gate::WaitForArrivals(int count) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return standing_ >= count; });
}

int Gate::passed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return passed_;
}

v1::GetTableRequest AlibiBias(int64_t heads, int64_t queries, int64_t keys) {
  v1::GetTableRequest request;
  request.mutable_spec()->mutable_alibi()->set_num_heads(heads);
  v1::AttentionGrid* grid = request.mutable_selection()->mutable_attention_grid();
  grid->set_query_length(queries);
  grid->set_key_length(keys);
  return request;
}

v1::GetTableRequest TableOf(uint64_t bytes) {
  return AlibiBias(1, static_cast<int64_t>(bytes / 4096), 1024);
}

ReadResult Read(PositionalEncodingService::StubInterface& stub, const v1::GetTableRequest& request,
                grpc::ClientContext* context) {
  grpc::ClientContext own;
  const auto reader = stub.GetTable(context != nullptr ? context : &own, request);
  ReadResult result;
  v1::GetTableResponse message;
  while (reader->Read(&message)) {
    result.data += message.data();
    result.messages.push_back(std::move(message));
  }
  result.status = reader->Finish();
  return result;
}

namespace {

std::string PathOf(absl::string_view method) {
  if (absl::StartsWith(method, "/")) return std::string(method);
  return absl::StrCat("/", PositionalEncodingService::service_full_name(), "/", method);
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

}  // namespace

grpc::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel, absl::string_view method,
                     const std::optional<std::string>& request, std::vector<std::string>* responses,
                     grpc::ClientContext* context) {
  grpc::ClientContext own;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto call = stub.PrepareCall(context != nullptr ? context : &own, PathOf(method), &queue);
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  wait();
  if (request.has_value()) {
    const grpc::Slice slice(*request);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  } else {
    call->WritesDone(nullptr);
  }
  wait();
  grpc::ByteBuffer response;
  for (call->Read(&response, nullptr); wait(); call->Read(&response, nullptr)) {
    if (responses != nullptr) responses->push_back(BytesOf(response));
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  return status;
}

grpc::Status CallSendingNothing(const std::shared_ptr<grpc::Channel>& channel,
                                absl::string_view method) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto call = stub.PrepareCall(&context, PathOf(method), &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  return status;
}

}  // namespace posenc::testing
