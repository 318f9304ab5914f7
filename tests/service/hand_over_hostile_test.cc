// The server's end of a hand-over, with readers that do not behave.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/hand_over.h"
#include "tests/service/hand_over_fixture.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

class HostileReaderTest : public HandOverFixture {};

TEST_F(HostileReaderTest, GarbageIsRefusedAsARequestThatDoesNotParse) {
  Start();
  UnixSocket socket(memfd_path_);
  ASSERT_TRUE(socket.Send(Framed(std::string(100, '\xff'))));
  v1::HandOverReply reply;
  ASSERT_TRUE(socket.Receive(&reply));
  EXPECT_EQ(reply.error().code(), CodeOf(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(DetailIn<v1::BadRequest>(reply).field_violations(0).field(), "request");
}

TEST_F(HostileReaderTest, ARequestOfAGibibyteIsRefusedBeforeItComes) {
  Start();
  UnixSocket socket(memfd_path_);
  ASSERT_TRUE(socket.Send(std::string("\0\0\0\x40", 4)));
  v1::HandOverReply reply;
  ASSERT_TRUE(socket.Receive(&reply));
  EXPECT_EQ(reply.error().code(), CodeOf(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(reply.error().message(), HasSubstr("1073741824 bytes exceed max_request_bytes"));
  DetailIn<v1::QuotaFailure>(reply);
}

TEST_F(HostileReaderTest, HalfARequestIsNotAnswered) {
  Start();
  UnixSocket socket(memfd_path_);
  ASSERT_TRUE(socket.Send(Framed(TableOf(4096)).substr(0, 9)));
  socket.EndSending();
  EXPECT_EQ(socket.ReceiveRest(), "");
}

TEST_F(HostileReaderTest, DescriptorsThatAReaderSendsAreDropped) {
  Start();
  const int before = OpenDescriptors();
  {
    UnixSocket socket(memfd_path_);
    ASSERT_TRUE(socket.Send(Framed(std::string("garbage")), std::vector<int>(8, STDERR_FILENO)));
    EXPECT_NE(socket.ReceiveRest(), "");
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(HostileReaderTest, AReaderThatSaysNothingIsCutOff) {
  options_.stall_timeout = std::chrono::milliseconds(20);
  Start();
  UnixSocket silent(memfd_path_);
  UnixSocket half(memfd_path_);
  half.Send("\1");
  EXPECT_EQ(silent.ReceiveRest(), "");
  EXPECT_EQ(half.ReceiveRest(), "");
}

// The reply spells out the positions of a short request: more than a socket holds.
TEST_F(HostileReaderTest, AReaderThatTakesNothingIsCutOff) {
  options_.stall_timeout = std::chrono::seconds(1);  // for the request too
  Start();
  v1::GetTableRequest request;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(spec { mrope { rope { head_dim: 128 } mrope_section: [16, 24, 24] } }
         selection { token_runs { runs { text: 80000 } } }
         format { layout: LAYOUT_POSITION_IDS })",
      &request));
  UnixSocket socket(memfd_path_);
  ASSERT_TRUE(socket.Send(Framed(request)));
  while (server_->Info().shared_tables().entries() == 0) std::this_thread::yield();
  WaitUntilEmpty();
  v1::HandOverReply reply;
  EXPECT_FALSE(socket.Receive(&reply));
}

TEST_F(HostileReaderTest, AReaderThatDiesInTheQueueCostsNoTable) {
  options_.before_job = gate_.Hook();
  Start();
  gate_.Close();
  {
    UnixSocket socket(memfd_path_);
    ASSERT_TRUE(socket.Send(Framed(TableOf(kMiB))));
    gate_.WaitForArrivals(1);
  }
  WaitUntilEmpty();
  gate_.Open();
  EXPECT_EQ(Ask(TableOf(4096)).header().total_bytes(), 4096u);
  EXPECT_EQ(server_->Info().shared_tables().misses(), 1u);
}

TEST_F(HostileReaderTest, AFloodOfConnectionsIsSentAwayAndReadersTakeTheStream) {
  Start();
  std::vector<UnixSocket> flood;
  for (size_t i = 0; i < server::HandOver::kMaxPeers; ++i) flood.emplace_back(memfd_path_);
  EXPECT_EQ(UnixSocket(memfd_path_).ReceiveRest(), "");
  absl::StatusOr<TableReader> reader = Open(TableOf(kMiB));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->transport(), Transport::kStream);
  EXPECT_EQ(reader->why_streamed().code(), absl::StatusCode::kUnavailable);

  flood.clear();
  do {
    reader = Open(TableOf(kMiB));
    ASSERT_TRUE(reader.ok()) << reader.status();
  } while (reader->transport() != Transport::kSharedMemory);
}

// Whatever comes, whole or cut, with descriptors or without.
TEST_F(HostileReaderTest, NoiseHurtsNobody) {
  options_.share_memory_bytes = kMiB;
  Start();
  server_->Info();  // opens what gRPC needs
  std::mt19937 random(5);
  const int before = OpenDescriptors();
  for (int i = 0; i < 300; ++i) {
    std::string noise = Framed(TableOf(4096 * (1 + random() % 3)));
    for (auto bent = random() % 3; bent > 0; --bent) {
      noise[random() % noise.size()] = static_cast<char>(random());
    }
    UnixSocket socket(memfd_path_);
    socket.Send(noise.substr(0, 1 + random() % noise.size()),
                std::vector<int>(random() % 3, STDERR_FILENO));
    if (random() % 2 == 0) continue;
    socket.EndSending();
    socket.Receive(random() % 100);
  }
  EXPECT_EQ(Ask(TableOf(4096)).header().total_bytes(), 4096u);
  WaitUntilEmpty();
  const auto tables = static_cast<int>(server_->Info().shared_tables().entries());
  EXPECT_LE(OpenDescriptors(), before + tables);
}

// A budget for one table and a half: each is made, evicted and made again.
TEST_F(HostileReaderTest, ReadersKeepTheirBytesWhileTablesComeAndGo) {
  options_.share_memory_bytes = 3 * kMiB;
  Start();
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 4; ++i) {
    expected.push_back(Read(server_->stub(), TableOf((i + 1) * kMiB / 2)).data);
  }
  std::atomic<int> shared{0};
  std::vector<std::thread> readers;
  for (uint64_t t = 0; t < 4; ++t) {
    readers.emplace_back([&, t] {
      for (uint64_t round = 0; round < 25; ++round) {
        const uint64_t i = (t + round) % expected.size();
        absl::StatusOr<TableReader> reader = Open(TableOf((i + 1) * kMiB / 2));
        ASSERT_TRUE(reader.ok()) << reader.status();
        std::string bytes(reader->header().total_bytes(), '\0');
        ASSERT_TRUE(reader->ReadAll(std::as_writable_bytes(std::span<char>(bytes))).ok());
        EXPECT_TRUE(bytes == expected[i]);
        shared += reader->transport() == Transport::kSharedMemory;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(shared, 0);
  EXPECT_GT(server_->Info().shared_tables().evictions(), 0u);
}

}  // namespace
}  // namespace posenc::testing
