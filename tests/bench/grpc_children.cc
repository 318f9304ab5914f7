// gRPC servers to compare with: see children.h.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "posenc/v1/service.grpc.pb.h"
#include "tests/bench/children.h"

namespace posenc::bench {
namespace {

using v1::PositionalEncodingService;

class NaiveService final : public PositionalEncodingService::Service {
 public:
  // A request's read_offset is the size of its chunks; the table has 64 MiB.
  grpc::Status GetTable(grpc::ServerContext*, const v1::GetTableRequest* request,
                        grpc::ServerWriter<v1::GetTableResponse>* writer) override {
    const size_t chunk = request->read_offset();
    for (size_t at = 0; at < table_.size(); at += chunk) {
      v1::GetTableResponse response;
      response.set_offset(at);
      response.set_data(table_.data() + at, chunk);
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  grpc::Status DescribeTable(grpc::ServerContext*, const v1::DescribeTableRequest*,
                             v1::DescribeTableResponse*) override {
    return grpc::Status::OK;
  }

 private:
  const std::vector<char> table_ = std::vector<char>(size_t{64} << 20, 1);
};

grpc::ByteBuffer Nothing() {
  const grpc::Slice empty;
  return {&empty, 1};
}

class CallbackService final : public PositionalEncodingService::WithRawCallbackMethod_DescribeTable<
                                  PositionalEncodingService::Service> {
 public:
  grpc::ServerUnaryReactor* DescribeTable(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer*,
                                          grpc::ByteBuffer* response) override {
    *response = Nothing();
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

using QueueService =
    PositionalEncodingService::WithRawMethod_DescribeTable<PositionalEncodingService::Service>;

struct QueueCall {
  grpc::ServerContext context;
  grpc::ByteBuffer request;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer{&context};
  bool answered = false;
};

std::unique_ptr<grpc::Server> Start(grpc::ServerBuilder* builder, grpc::Service* service,
                                    int port_pipe, const std::string& unix_path) {
  int port = 0;
  builder->AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder->AddListeningPort("unix:" + unix_path, grpc::InsecureServerCredentials());
  builder->RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
  if (write(port_pipe, &port, sizeof(port)) != sizeof(port)) _exit(1);
  return server;
}

template <typename Service>
void ServeForever(int port_pipe, const std::string& unix_path) {
  Service service;
  grpc::ServerBuilder builder;
  Start(&builder, &service, port_pipe, unix_path)->Wait();
}

}  // namespace

void ServeNaively(int port_pipe, const std::string& unix_path) {
  ServeForever<NaiveService>(port_pipe, unix_path);
}

void ServeEmptyFromCallbacks(int port_pipe, const std::string& unix_path) {
  ServeForever<CallbackService>(port_pipe, unix_path);
}

void ServeEmptyFromQueue(int port_pipe, const std::string& unix_path) {
  QueueService service;
  grpc::ServerBuilder builder;
  const auto queue = builder.AddCompletionQueue();
  const auto server = Start(&builder, &service, port_pipe, unix_path);
  const auto expect_one = [&] {
    auto* const call = new QueueCall;
    service.RequestDescribeTable(&call->context, &call->request, &call->writer, queue.get(),
                                 queue.get(), call);
  };
  expect_one();
  void* tag = nullptr;
  for (bool ok = false; queue->Next(&tag, &ok);) {
    auto* const call = static_cast<QueueCall*>(tag);
    if (call->answered || !ok) {
      delete call;
      continue;
    }
    expect_one();
    call->answered = true;
    call->writer.Finish(Nothing(), grpc::Status::OK, call);
  }
}

}  // namespace posenc::bench
