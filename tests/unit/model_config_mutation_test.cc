// Ten thousand mutated configs: an answer or a clean refusal each, and never more
// than 64 MiB.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/families/family.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/resolve.h"
#include "tests/support/config_mutator.h"
#include "tests/unit/model_config_testing.h"

namespace {

// Bytes that this binary holds by new, and the most it held since ResetPeak.
std::atomic<int64_t> live_bytes = 0;
std::atomic<int64_t> peak_bytes = 0;

void* CountedNew(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  const int64_t live = live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  if (live > peak_bytes) peak_bytes = live;
  return memory;
}

void CountedDelete(void* memory) {
  if (memory == nullptr) return;
  live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return CountedNew(size); }
void* operator new[](size_t size) { return CountedNew(size); }
void operator delete(void* memory) noexcept { CountedDelete(memory); }
void operator delete[](void* memory) noexcept { CountedDelete(memory); }
void operator delete(void* memory, size_t) noexcept { CountedDelete(memory); }
void operator delete[](void* memory, size_t) noexcept { CountedDelete(memory); }

namespace posenc {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;

// Peak of what one call allocates, beside what was there before.
int64_t PeakOf(const v1::ModelSource& model, absl::Status* status) {
  const int64_t before = live_bytes;
  peak_bytes = before;
  *status = ResolveModelConfig(model).status();
  return peak_bytes - before;
}

std::vector<std::string> AllConfigs() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat(POSENC_TEST_DATA, "/golden/configs"))) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> configs;
  for (const std::string& name : names) configs.push_back(testing::ReadConfig(name));
  return configs;
}

// A refusal that a caller can act on: where, and why.
void ExpectClean(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "config_json")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), ": ")) << status;
  EXPECT_LT(status.message().size(), 1000u) << status;
}

TEST(ModelConfigMutationTest, TenThousandMutantsAreAnsweredOrRefused) {
  const std::vector<std::string> configs = AllConfigs();
  int resolved = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    v1::ModelSource model;
    model.set_config_json(testing::MutateConfig(configs[seed % configs.size()], seed));
    if (seed % 3 == 0) model.set_sequence_length(static_cast<int64_t>(seed) + 1);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const auto response = ResolveModelConfig(model);
    if (!response.ok()) {
      ExpectClean(response.status());
      ++refused;
      continue;
    }
    ++resolved;
    EXPECT_GT(response->encodings_size() + response->findings_size(), 0);
    for (const v1::ResolvedEncoding& encoding : response->encodings()) {
      if (!encoding.has_spec()) continue;
      // The family has the last word, as clean a one.
      const auto canonical = Canonicalize(encoding.spec());
      EXPECT_TRUE(canonical.ok() || canonical.status().code() == absl::StatusCode::kInvalidArgument)
          << canonical.status();
    }
  }
  // The mutator neither spares nor wrecks them all.
  EXPECT_GT(resolved, 3000);
  EXPECT_GT(refused, 3000);
}

TEST(ModelConfigMutationTest, NoMutantTakesMoreThan64MiB) {
  const std::vector<std::string> configs = AllConfigs();
  int64_t worst = 0;
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    v1::ModelSource model;
    model.set_config_json(testing::MutateConfig(configs[seed % configs.size()], seed));
    absl::Status status;
    worst = std::max(worst, PeakOf(model, &status));
  }
  EXPECT_LT(worst, kMaxBytes);
}

// The largest texts that are read at all, in the shapes that cost most.
TEST(ModelConfigMutationTest, NeitherDoTheLargestTexts) {
  const auto peak = [](std::string text) {
    v1::ModelSource model;
    model.set_config_json(std::move(text));
    absl::Status status;
    return PeakOf(model, &status);
  };
  std::string numbers = R"({"model_type": "llama", "layer_types": [0)";
  while (numbers.size() < 2 * (kMaxConfigValues - 10)) numbers += ",1";
  EXPECT_LT(peak(numbers + "]}"), kMaxBytes);
  std::string keys = R"({"model_type": "llama", "rope_scaling": {"type": "yarn")";
  for (int i = 0; keys.size() + 32 < kMaxConfigBytes && i < 200'000; ++i) {
    absl::StrAppend(&keys, ",\"", i, "key\":\"", std::string(24, 'x'), "\"");
  }
  EXPECT_LT(peak(keys + "}}"), kMaxBytes);
  EXPECT_LT(peak(std::string(kMaxConfigBytes, '[')), kMaxBytes);
  // An encoding a base, each looked up among many keys.
  std::string layers = R"({"model_type": "granite_swa", "head_dim": 64, "layer_rope_theta": [1)";
  for (int i = 2; i <= 64; ++i) absl::StrAppend(&layers, ",", i);
  absl::StrAppend(&layers, "]");
  for (int i = 0; i < 200'000; ++i) absl::StrAppend(&layers, ",\"", i, "key\":0");
  EXPECT_LT(peak(layers + "}"), kMaxBytes);
  EXPECT_LT(peak("{\"a\":\"" + std::string(kMaxConfigBytes - 8, 'x') + "\"}"), kMaxBytes);
  EXPECT_LT(peak(std::string(200'000'000, '{')), kMaxBytes) << "refused before it is copied";
}

}  // namespace
}  // namespace posenc
