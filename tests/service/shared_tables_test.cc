// Tables kept in sealed memory: made once, in turns, within their budget.
#include "server/shared_tables.h"

#include <fcntl.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/engine/engine.h"
#include "tests/service/test_server.h"
#include "tests/support/unix_socket.h"

namespace posenc::server {
namespace {

using testing::AlibiBias;
using testing::Gate;
using ::testing::HasSubstr;
using testing::TableOf;
using Answer = absl::StatusOr<SharedTablePointer>;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kPage = uint64_t{64} << 10;

std::string BytesOf(const SharedTable& table) {
  std::string bytes(table.file.bytes(), '\0');
  EXPECT_EQ(pread(table.file.fd(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
  return bytes;
}

// One thread, stopped at a gate when a test wants an order of its own; a budget of
// 1 MiB, pages of 64 KiB.
class SharedTablesTest : public ::testing::Test {
 protected:
  // Asks, as a job of the pool; `waits` says whether it still does.
  std::future<Answer> Ask(
      const v1::GetTableRequest& request, std::function<bool()> waits = [] { return true; }) {
    auto answer = std::make_shared<std::promise<Answer>>();
    EXPECT_TRUE(pool_.TrySubmit([=, this] {
      tables_.Get(*engine_.GetTable(request),
                  {.waits = waits, .tell = [=](const Answer& told) { answer->set_value(told); }});
    }));
    return answer->get_future();
  }

  SharedTablePointer Get(const v1::GetTableRequest& request) {
    Answer answer = Ask(request).get();
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : nullptr;
  }

  std::string Expected(const v1::GetTableRequest& request) {
    const auto table = *engine_.GetTable(request);
    std::string bytes;
    while (!table->done()) {
      const Slice slice = table->Next();
      bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
    }
    return bytes;
  }

  Engine engine_{{.page_bytes = kPage}};
  Gate gate_;
  SharedTables tables_{kMiB, &pool_};
  ComputePool pool_{{.threads = 1, .max_queue = 1000, .before_job = gate_.Hook()}};
};

TEST_F(SharedTablesTest, HoldsTheBytesOfTheTableSealedAndForReadingOnly) {
  const SharedTablePointer table = Get(TableOf(5 * kPage));
  EXPECT_EQ(BytesOf(*table), Expected(TableOf(5 * kPage)));
  EXPECT_EQ(fcntl(table->file.fd(), F_GET_SEALS) & testing::kAllSeals, testing::kAllSeals);
  EXPECT_EQ(fcntl(table->file.fd(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(fcntl(table->file.fd(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST_F(SharedTablesTest, AnEmptyTableIsEmptyMemory) {
  EXPECT_EQ(Get(AlibiBias(2, 0, 0))->file.bytes(), 0u);
}

TEST_F(SharedTablesTest, TheNextReaderGetsTheSameMemory) {
  const SharedTablePointer first = Get(TableOf(kPage));
  EXPECT_EQ(Get(TableOf(kPage)), first);
  EXPECT_NE(Get(TableOf(2 * kPage)), first);
  EXPECT_EQ(tables_.stats().hits(), 1u);
  EXPECT_EQ(tables_.stats().misses(), 2u);
  EXPECT_EQ(tables_.stats().entries(), 2u);
}

TEST_F(SharedTablesTest, ReadersAtTheSameTimeShareOneMaking) {
  gate_.Close();
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(Ask(TableOf(4 * kPage)));
  gate_.Open();
  const SharedTablePointer first = *answers[0].get();
  for (size_t i = 1; i < answers.size(); ++i) EXPECT_EQ(*answers[i].get(), first);
  EXPECT_EQ(tables_.stats().misses(), 1u);
  EXPECT_EQ(tables_.stats().waits(), 7u);
}

TEST_F(SharedTablesTest, AFillTakesTurnsWithOtherWork) {
  gate_.Close();
  std::future<Answer> answer = Ask(TableOf(4 * kPage));
  std::promise<bool> filled_before;
  ASSERT_TRUE(pool_.TrySubmit([&] {
    filled_before.set_value(answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  }));
  gate_.Open();
  EXPECT_FALSE(filled_before.get_future().get());
  EXPECT_TRUE(answer.get().ok());
}

TEST_F(SharedTablesTest, ATableLargerThanTheBudgetIsRefusedAndEvictsNothing) {
  const SharedTablePointer kept = Get(TableOf(kPage));
  const absl::Status status = Ask(TableOf(2 * kMiB)).get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("share_memory_bytes (1048576)"));
  EXPECT_EQ(Get(TableOf(kPage)), kept);
  EXPECT_EQ(tables_.stats().evictions(), 0u);
}

TEST_F(SharedTablesTest, TheLeastRecentlyUsedGoesAndItsReadersKeepIt) {
  const SharedTablePointer a = Get(TableOf(5 * kPage));
  const SharedTablePointer b = Get(TableOf(6 * kPage));
  EXPECT_EQ(Get(TableOf(5 * kPage)), a);
  Get(TableOf(7 * kPage));  // does not fit beside both
  EXPECT_EQ(tables_.stats().evictions(), 1u);
  EXPECT_EQ(Get(TableOf(5 * kPage)), a);
  EXPECT_EQ(BytesOf(*b), Expected(TableOf(6 * kPage)));
  EXPECT_LE(tables_.stats().bytes(), kMiB);
}

TEST_F(SharedTablesTest, WhatIsBeingFilledCountsAndIsNotEvicted) {
  gate_.Close();
  std::future<Answer> filling = Ask(TableOf(10 * kPage));
  std::future<Answer> refused = Ask(TableOf(9 * kPage));
  gate_.Open();
  EXPECT_EQ(refused.get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(filling.get().ok());
  EXPECT_TRUE(Ask(TableOf(9 * kPage)).get().ok());  // now it can be evicted
}

// Its promise is broken: it was dropped without having been told.
TEST_F(SharedTablesTest, AFillThatNobodyWaitsForEnds) {
  int asked = 0;
  std::future<Answer> left = Ask(TableOf(8 * kPage), [&] { return ++asked < 3; });
  EXPECT_THROW(left.get(), std::future_error);
  EXPECT_EQ(asked, 3);  // two pages of eight were filled
  EXPECT_EQ(tables_.stats().entries(), 0u);
  EXPECT_EQ(tables_.stats().bytes(), 0u);
  EXPECT_EQ(BytesOf(*Get(TableOf(8 * kPage))), Expected(TableOf(8 * kPage)));
}

TEST_F(SharedTablesTest, AFillGoesOnForWhoJoinedIt) {
  gate_.Close();
  int asked = 0;
  std::future<Answer> left = Ask(TableOf(8 * kPage), [&] { return ++asked < 3; });
  std::future<Answer> joined = Ask(TableOf(8 * kPage));
  gate_.Open();
  EXPECT_EQ(BytesOf(**joined.get()), Expected(TableOf(8 * kPage)));
  EXPECT_THROW(left.get(), std::future_error);
  EXPECT_EQ(tables_.stats().misses(), 1u);
}

// Each holds a descriptor, of which a process has few.
TEST_F(SharedTablesTest, TheirNumberIsBounded) {
  const int before = testing::OpenDescriptors();
  for (int64_t i = 1; i <= 300; ++i) Get(AlibiBias(1, 1, i));
  EXPECT_LE(tables_.stats().entries(), SharedTables::kMaxTables);
  EXPECT_LE(testing::OpenDescriptors(), before + static_cast<int>(SharedTables::kMaxTables));
  EXPECT_GE(tables_.stats().evictions(), 300 - SharedTables::kMaxTables);
}

}  // namespace
}  // namespace posenc::server
