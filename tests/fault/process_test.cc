// The server as a process: signals and exit codes, clashes, what it prints.
#include "tests/support/process.h"

#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "rapidjson/document.h"
#include "tests/service/test_server.h"

namespace posenc::testing {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1::PositionalEncodingService;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::unique_ptr<PositionalEncodingService::Stub> StubOf(const std::string& address) {
  return PositionalEncodingService::NewStub(Connect(address));
}

bool Serves(const std::string& address) {
  return Read(*StubOf(address), AlibiBias(2, 4, 4)).status.ok();
}

// A read of `bytes` that has had its first message.
struct OpenStream {
  OpenStream(const std::string& address, uint64_t bytes) : stub(StubOf(address)) {
    reader = stub->GetTable(&context, TableOf(bytes));
    EXPECT_TRUE(reader->Read(&message));
    received = message.data().size();
  }

  grpc::Status Finish() {
    while (reader->Read(&message)) received += message.data().size();
    return reader->Finish();
  }

  std::unique_ptr<PositionalEncodingService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::GetTableResponse>> reader;
  v1::GetTableResponse message;
  uint64_t received = 0;
};

struct OpenWatch {
  explicit OpenWatch(const std::string& address) : stub(Health::NewStub(Connect(address))) {
    watch = stub->Watch(&context, {});
  }
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse answer;
    return watch->Read(&answer) ? answer.status() : HealthCheckResponse::UNKNOWN;
  }

  std::unique_ptr<Health::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> watch;
};

class SignalTest : public ::testing::TestWithParam<int> {};

TEST_P(SignalTest, AnIdleServerExitsWith0) {
  ServerProcess server({"--listen=127.0.0.1:0"});
  ASSERT_THAT(server.WaitForAddresses(), SizeIs(1));
  server.Signal(GetParam());
  EXPECT_EQ(server.Wait(), 0);
}

TEST_P(SignalTest, ARunningStreamFinishesWhileNewCallsAreSentAway) {
  ServerProcess server({"--listen=127.0.0.1:0", "--drain-grace=600"});
  const std::vector<std::string> addresses = server.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  OpenWatch watch(addresses[0]);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  OpenStream stream(addresses[0], 256 * kMiB);

  server.Signal(GetParam());
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  const ReadResult refused = Read(*StubOf(addresses[0]), TableOf(kMiB));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(DetailOf<v1::RetryInfo>(refused.status).has_value());

  const grpc::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(stream.received, 256 * kMiB);
  EXPECT_EQ(server.Wait(), 0);  // the watch is still open on our side
}

TEST_P(SignalTest, ASecondSignalEndsItWithAStreamOpen) {
  ServerProcess server({"--listen=127.0.0.1:0", "--drain-grace=600"});
  const std::vector<std::string> addresses = server.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  OpenWatch watch(addresses[0]);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  OpenStream stream(addresses[0], 4096 * kMiB);

  server.Signal(GetParam());
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(server.running());
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);  // retried elsewhere
}

TEST_P(SignalTest, WhatOutlastsTheGraceIsCutOff) {
  ServerProcess server({"--listen=127.0.0.1:0", "--drain-grace=0.05"});
  const std::vector<std::string> addresses = server.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  OpenStream stream(addresses[0], 4096 * kMiB);
  server.Signal(GetParam());
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);  // retried elsewhere
}

INSTANTIATE_TEST_SUITE_P(Both, SignalTest, ::testing::Values(SIGTERM, SIGINT),
                         [](const auto& signal) {
                           return signal.param == SIGTERM ? "SIGTERM" : "SIGINT";
                         });

// docker pause, a debugger, a host that moves its guests: nobody could take anything then.
TEST(PauseTest, AServerThatWasStoppedCutsNobodyOffForIt) {
  ServerProcess server({"--listen=127.0.0.1:0", "--stall-timeout=1"});
  OpenStream stream(server.address(), 64 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it waits for us by now
  server.Signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  server.Signal(SIGCONT);
  const grpc::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(stream.received, 64 * kMiB);
}

// gRPC's own listeners never accept again then (CVE-2023-4785).
TEST(DescriptorsTest, AServerThatWasOutOfThemServesAgain) {
  ServerProcess server({"--listen", "127.0.0.1:0"});
  ASSERT_TRUE(Serves(server.address()));
  rlimit before;
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  {
    const auto waiting = StubOf(server.address());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
    EXPECT_FALSE(Read(*waiting, AlibiBias(2, 4, 4), &context).status.ok());
  }
  EXPECT_THAT(server.Errors(), HasSubstr("no descriptor"));
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(Serves(server.address()));
}

TEST(ProcessTest, PrintsTheAddressesItIsBoundTo) {
  const std::string path = "/tmp/posenc-process-" + std::to_string(getpid()) + ".sock";
  ServerProcess server({"--listen=127.0.0.1:0", "--listen=unix:" + path});
  const std::vector<std::string> addresses = server.WaitForAddresses(2);
  ASSERT_THAT(addresses, SizeIs(2));
  EXPECT_EQ(addresses[1], "unix:" + path);
  for (const std::string& address : addresses) EXPECT_TRUE(Serves(address)) << address;
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove(path + ".lock");
}

TEST(ProcessTest, ASecondServerOnThePortExitsWith1AndNamesIt) {
  ServerProcess first({"--listen=127.0.0.1:0"});
  const std::vector<std::string> addresses = first.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  ServerProcess second({"--listen=" + addresses[0]});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.Errors(), HasSubstr(addresses[0] + ": Address already in use"));
  EXPECT_THAT(second.WaitForAddresses(), IsEmpty());
  EXPECT_TRUE(Serves(addresses[0]));
}

TEST(ProcessTest, AfterAKillTheUnixPathIsFreeAgain) {
  const std::string path = "/tmp/posenc-kill-" + std::to_string(getpid()) + ".sock";
  const std::string listen = "--listen=unix:" + path;
  ServerProcess first({listen});
  ASSERT_THAT(first.WaitForAddresses(), SizeIs(1));
  ServerProcess second({listen});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.Errors(), HasSubstr(path + ".lock"));

  first.Signal(SIGKILL);
  EXPECT_EQ(first.Wait(), 128 + SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(path));  // stale
  ServerProcess third({listen});
  ASSERT_THAT(third.WaitForAddresses(), SizeIs(1));
  EXPECT_TRUE(Serves("unix:" + path));
  third.Signal(SIGTERM);
  EXPECT_EQ(third.Wait(), 0);
  std::filesystem::remove(path + ".lock");
}

TEST(ProcessTest, WrongUsageExitsWith2) {
  ServerProcess server({"--max-queue=many"});
  EXPECT_EQ(server.Wait(), 2);
  EXPECT_THAT(server.Errors(), HasSubstr("--max-queue"));
}

TEST(ProcessTest, TheEnvironmentConfiguresItAndFlagsWin) {
  ServerProcess server({"--listen=127.0.0.1:0", "--max-queue=8"},
                       {"POSENC_MAX_QUEUE=7", "POSENC_MAX_CONCURRENT_STREAMS=9"});
  const std::vector<std::string> addresses = server.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(StubOf(addresses[0])->GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.limits().max_queue(), 8u);
  EXPECT_EQ(info.limits().max_concurrent_streams(), 9u);
}

// The request is a ServerReflectionRequest with list_services = "*".
TEST(ProcessTest, ReflectionListsTheServicesUnlessItIsOff) {
  const std::string list_services("\x3a\x01*", 3);
  const char kPath[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  ServerProcess on({"--listen=127.0.0.1:0"});
  ServerProcess off({"--listen=127.0.0.1:0", "--reflection=off"});
  const std::vector<std::string> on_addresses = on.WaitForAddresses();
  const std::vector<std::string> off_addresses = off.WaitForAddresses();
  ASSERT_THAT(on_addresses, SizeIs(1));
  ASSERT_THAT(off_addresses, SizeIs(1));
  std::vector<std::string> answers;
  EXPECT_TRUE(CallRaw(Connect(on_addresses[0]), kPath, list_services, &answers).ok());
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0], HasSubstr("posenc.v1.PositionalEncodingService"));
  EXPECT_THAT(answers[0], HasSubstr("grpc.health.v1.Health"));
  EXPECT_EQ(CallRaw(Connect(off_addresses[0]), kPath, list_services).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST(ProcessTest, JsonLogsAreOneObjectALine) {
  ServerProcess server({"--listen=127.0.0.1:0", "--log-format=json", "--log-level=debug"});
  const std::vector<std::string> addresses = server.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "job-17");
  v1::GetTableRequest request = AlibiBias(1, 8, 8);
  request.set_if_table_id("line one\nline \"two\"");
  Read(*StubOf(addresses[0]), request, &context);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);

  std::istringstream lines(server.Errors());
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    rapidjson::Document parsed;
    parsed.Parse(line.data(), line.size());
    ASSERT_FALSE(parsed.HasParseError()) << line;
    for (const char* key : {"time", "level", "message"}) EXPECT_TRUE(parsed.HasMember(key));
    if (!parsed.HasMember("request_id")) continue;
    found = true;
    EXPECT_STREQ(parsed["request_id"].GetString(), "job-17");
    EXPECT_STREQ(parsed["method"].GetString(), "GetTable");
    EXPECT_STREQ(parsed["code"].GetString(), "FAILED_PRECONDITION");
  }
  EXPECT_TRUE(found) << server.Errors();
}

}  // namespace
}  // namespace posenc::testing
