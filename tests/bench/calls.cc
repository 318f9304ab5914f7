// Small calls: how many a second, and how long one takes.
//
// One thread keeps a number of calls under way through one completion queue: the
// client that costs least, so that the servers show.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "posenc/v1/service.pb.h"
#include "tests/bench/cases.h"
#include "tests/bench/wire_peers.h"

namespace posenc::bench {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();
constexpr char kDescribeTable[] = "/posenc.v1.PositionalEncodingService/DescribeTable";
constexpr char kGetTable[] = "/posenc.v1.PositionalEncodingService/GetTable";
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
constexpr int kUnderWay = 64;
constexpr int kCalls = 2000;
constexpr int kPings = 100;

// A method with its request; a table of one message answers as a unary call does.
class CallLoop {
 public:
  CallLoop(const std::string& address, std::string method, const std::string& request)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        method_(std::move(method)) {
    const grpc::Slice slice(request);
    request_ = grpc::ByteBuffer(&slice, 1);
  }
  ~CallLoop() {
    queue_.Shutdown();
    void* tag = nullptr;
    for (bool ok = false; queue_.Next(&tag, &ok);) {
    }
  }

  // Seconds of `count` calls, `under_way` of them at a time.
  double Run(int under_way, int count) {
    bool ok = true;
    const double seconds = Timed([&] {
      int begun = 0;
      for (; begun < under_way; ++begun) Begin();
      for (int ended = 0; ended < count; ++ended) {
        ok = EndOne() && ok;
        if (begun < count) {
          Begin();
          ++begun;
        }
      }
    });
    return ok ? seconds : kFailed;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
  };

  void Begin() {
    auto* const call = new Call;
    call->reader = stub_.PrepareUnaryCall(&call->context, method_, request_, &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call);
  }

  bool EndOne() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    return ok && call->status.ok();
  }

  grpc::GenericStub stub_;
  const std::string method_;
  grpc::ByteBuffer request_;
  grpc::CompletionQueue queue_;
};

// ALiBi slopes: a table of 4 bytes a head.
template <typename Request>
std::string SlopesRequest(int64_t heads) {
  Request request;
  request.mutable_spec()->mutable_alibi()->set_num_heads(heads);
  request.mutable_format()->set_layout(v1::LAYOUT_SLOPES);
  return request.SerializeAsString();
}

double MedianPing(int socket) {
  uint64_t bytes = sizeof(bytes);
  std::vector<double> times;
  for (int i = 0; i < kPings; ++i) {
    times.push_back(Timed([&] {
      if (send(socket, &bytes, sizeof(bytes), 0) != sizeof(bytes)) std::abort();
      uint64_t answer = 0;
      if (recv(socket, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer)) std::abort();
    }));
  }
  std::nth_element(times.begin(), times.begin() + kPings / 2, times.end());
  return times[kPings / 2];
}

double MedianCall(CallLoop* loop) {
  std::vector<double> times;
  for (int i = 0; i < kPings; ++i) times.push_back(loop->Run(1, 1));
  std::nth_element(times.begin(), times.begin() + kPings / 2, times.end());
  return times[kPings / 2];
}

}  // namespace

void AddCallCases(Rounds* rounds, const std::shared_ptr<WirePeers>& peers) {
  const std::string describe = SlopesRequest<v1::DescribeTableRequest>(32);
  for (const bool is_unix : {false, true}) {
    const std::string on = is_unix ? " unix" : " tcp";
    const auto add = [&](const std::string& name, const Addresses& addresses, const char* method,
                         const std::string& request) {
      const auto loop = std::make_shared<CallLoop>(addresses.on(is_unix), method, request);
      rounds->Add(name + on, [=] { return loop->Run(kUnderWay, kCalls); });
      return loop;
    };
    const Addresses ours = peers->server.addresses();
    add("empty sync", peers->naive.addresses(), kDescribeTable, "");
    add("empty queue", peers->empty_queue.addresses(), kDescribeTable, "");
    add("empty callbacks", peers->empty_callbacks.addresses(), kDescribeTable, "");
    add("health", ours, kHealthCheck, "");
    add("table of 1 KiB", ours, kGetTable, SlopesRequest<v1::GetTableRequest>(256));
    add("table of 4 KiB", ours, kGetTable, SlopesRequest<v1::GetTableRequest>(1024));
    const auto calls = add("describe", ours, kDescribeTable, describe);
    rounds->Add("describe alone" + on, [=] { return MedianCall(calls.get()); });
  }
  const int socket = ConnectRawSocket(0, peers->raw_path + ".ping");
  rounds->Add("ping unix", [=, keep = peers] { return MedianPing(socket); });
}

std::vector<Goal> CallGoals() {
  std::vector<Goal> goals;
  for (const std::string on : {" tcp", " unix"}) {
    const std::string suffix = ", 64 under way," + on;
    const double form = on == " unix" ? 1.7 : 1.5;
    goals.push_back({"G14", "empty answers, one completion queue / sync" + suffix,
                     "empty queue" + on, "empty sync" + on, form});
    goals.push_back({"", "empty answers, callbacks / sync" + suffix, "empty callbacks" + on,
                     "empty sync" + on, 0});
    goals.push_back({"", "DescribeTable of posenc-server / empty, sync" + suffix, "describe" + on,
                     "empty sync" + on, 0});
    goals.push_back(
        {"G15", "DescribeTable / health check" + suffix, "describe" + on, "health" + on, 0.90});
    goals.push_back({"G15", "table of 1 KiB / health check" + suffix, "table of 1 KiB" + on,
                     "health" + on, 0.90});
    goals.push_back({"G15", "table of 4 KiB / health check" + suffix, "table of 4 KiB" + on,
                     "health" + on, 0.80});
  }
  goals.push_back({"G16", "DescribeTable alone, unix / ping-pong of a raw socket",
                   "describe alone unix", "ping unix", 1.0 / 14});
  return goals;
}

}  // namespace posenc::bench
