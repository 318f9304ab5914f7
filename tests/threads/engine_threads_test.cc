// One engine and many threads: each request has the bytes that it has alone, whatever
// the others ask for, and however little the caches hold.
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/engine/engine.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

constexpr size_t kThreads = 4;
constexpr int kTurns = 4;

v1::GetTableRequest Request(const std::string& spec, const std::string& selection,
                            const std::string& format = "") {
  v1::GetTableRequest request;
  *request.mutable_spec() = Spec(spec);
  *request.mutable_selection() = Select(selection);
  *request.mutable_format() = Format(format);
  return request;
}

v1::ModelSource Llama() {
  std::ifstream file(POSENC_TEST_DATA "/golden/configs/Meta-Llama-3.1-8B.json");
  EXPECT_TRUE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  v1::ModelSource model;
  model.set_config_json(text.str());
  return model;
}

// Several share plans or pages, and all together are more than the caches hold.
std::vector<v1::GetTableRequest> Requests() {
  const char kExact[] = "rope { head_dim: 128 arithmetic: ARITHMETIC_EXACT }";
  std::vector<v1::GetTableRequest> requests = {
      Request(kExact, "position_range { end: 700 }"),
      Request(kExact, "position_range { begin: 300 end: 900 }"),
      Request(kExact, "position_range { end: 700 }", "dtype: DTYPE_BF16"),
      Request("rope { head_dim: 128 }", "position_range { end: 700 }"),
      Request("rope { head_dim: 64 yarn { factor: 4 original_max_position_embeddings: 512 } }",
              "position_range { end: 500 }", "layout: LAYOUT_COS_AND_SIN_FULL"),
      Request("sinusoidal { d_model: 96 }", "position_range { end: 400 }"),
      Request("alibi { num_heads: 12 }", "attention_grid { query_length: 60 key_length: 70 }"),
      Request("t5 { }", "attention_grid { query_length: 90 key_length: 80 }"),
  };
  requests.emplace_back();
  *requests.back().mutable_model() = Llama();
  requests.back().mutable_selection()->mutable_position_range()->set_end(300);
  return requests;
}

std::string BytesOf(Engine* engine, const v1::GetTableRequest& request) {
  auto table = engine->GetTable(request);
  EXPECT_TRUE(table.ok()) << table.status();
  std::string bytes;
  while (table.ok() && !(*table)->done()) {
    const Slice slice = (*table)->Next();
    bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
  }
  return bytes;
}

TEST(EngineThreadsTest, EachRequestHasTheBytesThatItHasAlone) {
  const std::vector<v1::GetTableRequest> requests = Requests();
  std::vector<std::string> expected;
  for (const v1::GetTableRequest& request : requests) {
    Engine alone;
    expected.push_back(BytesOf(&alone, request));
  }
  for (const size_t page_cache_bytes : {size_t{0}, size_t{256} << 10, size_t{64} << 20}) {
    Engine engine({.plan_cache_bytes = size_t{256} << 10,
                   .page_cache_bytes = page_cache_bytes,
                   .page_bytes = size_t{64} << 10});
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (size_t i = 0; i < kTurns * requests.size(); ++i) {
          const size_t next = (i + thread * thread) % requests.size();
          EXPECT_EQ(BytesOf(&engine, requests[next]), expected[next]) << next;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(EngineThreadsTest, WhatIsDescribedAndResolvedIsTheSameForAll) {
  Engine engine;
  v1::ResolveModelConfigRequest resolve;
  *resolve.mutable_model() = Llama();
  v1::DescribeTableRequest describe;
  *describe.mutable_model() = Llama();
  const auto answers = [&] {
    const auto resolved = engine.ResolveModelConfig(resolve);
    const auto described = engine.DescribeTable(describe);
    EXPECT_TRUE(resolved.ok() && described.ok());
    return resolved->SerializeAsString() + described->SerializeAsString();
  };
  const std::string expected = answers();
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        EXPECT_EQ(answers(), expected);
        EXPECT_GE(engine.GetServerInfo().plan_cache().entries(), 1u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace posenc::testing
