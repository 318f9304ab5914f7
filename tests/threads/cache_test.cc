#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/cache/page.h"
#include "lib/cache/single_flight_cache.h"

namespace posenc {
namespace {

struct Blob {
  size_t size;
  size_t bytes() const { return size; }
};

using Cache = SingleFlightCache<Blob>;

Cache::Pointer MakeBlob(size_t size) { return std::make_shared<const Blob>(Blob{size}); }

// Keys are one byte, which counts towards the budget too.
constexpr size_t kKeyBytes = 1;

TEST(SingleFlightCacheTest, SecondLookupFindsTheFirstOnesValue) {
  Cache cache(1000);
  const auto made = cache.FindOrMake("a", [] { return MakeBlob(10); });
  const auto found = cache.FindOrMake("a", []() -> Cache::Pointer {
    ADD_FAILURE() << "made again";
    return MakeBlob(10);
  });
  EXPECT_EQ(made, found);
  EXPECT_EQ(cache.Find("a"), made);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_EQ(cache.counters().misses, 1u);
  EXPECT_EQ(cache.counters().bytes, 10 + kKeyBytes);
}

TEST(SingleFlightCacheTest, EvictsTheLeastRecentlyUsedAndNeverExceedsTheBudget) {
  Cache cache(3 * (10 + kKeyBytes));
  for (const char* key : {"a", "b", "c"}) cache.FindOrMake(key, [] { return MakeBlob(10); });
  EXPECT_NE(cache.Find("a"), nullptr);  // b is now the oldest
  cache.FindOrMake("d", [] { return MakeBlob(10); });
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_EQ(cache.counters().evictions, 1u);
  cache.FindOrMake("e", [] { return MakeBlob(20); });  // costs two of the others
  EXPECT_LE(cache.counters().bytes, cache.counters().budget_bytes);
  EXPECT_EQ(cache.counters().entries, 2u);
}

TEST(SingleFlightCacheTest, AnEvictedValueLivesWhileItIsHeld) {
  Cache cache(10 + kKeyBytes);
  const auto held = cache.FindOrMake("a", [] { return MakeBlob(10); });
  cache.FindOrMake("b", [] { return MakeBlob(10); });
  EXPECT_EQ(cache.Find("a"), nullptr);
  EXPECT_EQ(held->size, 10u);
}

TEST(SingleFlightCacheTest, WhatIsLargerThanTheBudgetIsHandedOutAndNotKept) {
  Cache cache(10);
  cache.FindOrMake("s", [] { return MakeBlob(5); });
  EXPECT_EQ(cache.FindOrMake("a", [] { return MakeBlob(100); })->size, 100u);
  EXPECT_EQ(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("s"), nullptr) << "a large value must not sweep the cache";
}

TEST(SingleFlightCacheTest, ExactlyOneOfManyThreadsMakes) {
  constexpr int kThreads = 8;
  Cache cache(1000);
  std::atomic<int> makes = 0;
  std::latch start(kThreads);
  std::vector<Cache::Pointer> values(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      values[static_cast<size_t>(i)] = cache.FindOrMake("a", [&] {
        ++makes;
        // Let the others arrive: they must wait for this making, not start one.
        while (cache.counters().waits < kThreads - 1) std::this_thread::yield();
        return MakeBlob(10);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(makes, 1);
  for (const auto& value : values) EXPECT_EQ(value, values[0]);
}

TEST(SingleFlightCacheTest, WithABudgetOfZeroConcurrentCallersStillShareOneMaking) {
  Cache cache(0);
  std::atomic<int> makes = 0;
  Cache::Pointer second;
  std::thread waiter;
  const auto first = cache.FindOrMake("a", [&] {
    ++makes;
    waiter = std::thread([&] {
      second = cache.FindOrMake("a", [&] {
        ++makes;
        return MakeBlob(10);
      });
    });
    while (cache.counters().waits == 0) std::this_thread::yield();
    return MakeBlob(10);
  });
  waiter.join();
  EXPECT_EQ(makes, 1);
  EXPECT_EQ(first, second);
  EXPECT_EQ(cache.counters().entries, 0u);
}

TEST(SingleFlightCacheTest, AFailedMakingDoesNotPoisonItsWaiters) {
  Cache cache(1000);
  Cache::Pointer second;
  std::thread waiter;
  EXPECT_THROW(cache.FindOrMake("a",
                                [&]() -> Cache::Pointer {
                                  waiter = std::thread([&] {
                                    second = cache.FindOrMake("a", [] { return MakeBlob(7); });
                                  });
                                  while (cache.counters().waits == 0) std::this_thread::yield();
                                  throw std::runtime_error("out of something");
                                }),
               std::runtime_error);
  waiter.join();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->size, 7u);
}

TEST(SingleFlightCacheTest, ThreadsThatEvictEachOtherAlwaysGetTheirOwnKeysValue) {
  Cache cache(3 * (10 + kKeyBytes));  // room for 3 of 8 keys
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 2000; ++i) {
        const size_t n = (i * 7 + static_cast<size_t>(t) * 3) % 8;
        const auto value = cache.FindOrMake(std::string(1, static_cast<char>('a' + n)),
                                            [n] { return MakeBlob(n); });
        wrong += value->size != n;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.counters().bytes, cache.counters().budget_bytes);
}

TEST(PageTest, StartsAtAVectorsAlignment) {
  const auto pool = std::make_shared<BlockPool>(1 << 20, 1 << 20);
  for (const size_t bytes : {0u, 1u, 63u, 4096u, 1u << 20, 3u << 20}) {
    Page page(bytes, pool);
    EXPECT_EQ(page.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(page.data().data()) % BlockPool::kAlignment, 0u);
    for (std::byte& byte : page.mutable_data()) byte = std::byte{1};  // ASan: all of it is ours
  }
}

TEST(PageTest, AChecksumThatOneThreadKeepsIsEveryonesOrNobodysYet) {
  const auto pool = std::make_shared<BlockPool>(1 << 20, 0);
  for (uint64_t round = 0; round < 200; ++round) {
    const Page page(64, pool);
    EXPECT_FALSE(page.checksum().has_value());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        EXPECT_EQ(page.checksum().value_or(round), round);
        page.KeepChecksum(round);
        EXPECT_EQ(page.checksum(), round);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(BlockPoolTest, AGivenBlockIsTakenAgain) {
  BlockPool pool(1 << 20, 2 << 20);
  std::byte* first = pool.Take(1 << 20);
  pool.Give(first, 1 << 20);
  EXPECT_EQ(pool.free_blocks(), 1u);
  EXPECT_EQ(pool.Take((1 << 20) - 1000), first);  // a little less is still a block
  pool.Give(first, (1 << 20) - 1000);
}

TEST(BlockPoolTest, KeepsNoMoreThanItsLimit) {
  BlockPool pool(1 << 20, 2 << 20);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool.Take(1 << 20));
  for (std::byte* block : blocks) pool.Give(block, 1 << 20);
  EXPECT_EQ(pool.free_blocks(), 2u);
}

TEST(BlockPoolTest, SmallAndLargeRequestsAreNoBlocks) {
  BlockPool pool(1 << 20, 2 << 20);
  for (const size_t bytes : {1u, 1000u, 5u << 20}) {
    std::byte* data = pool.Take(bytes);
    pool.Give(data, bytes);
  }
  EXPECT_EQ(pool.free_blocks(), 0u);
}

}  // namespace
}  // namespace posenc
