// libFuzzer target: any bytes as config.json, mutated as JSON half of the time.
// Built with -DPOSENC_FUZZ=ON by clang; the corpus is tests/golden/configs.
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "lib/families/family.h"
#include "lib/model_config/resolve.h"
#include "tests/support/config_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  posenc::v1::ModelSource model;
  model.set_config_json(std::string(reinterpret_cast<const char*>(data), size));
  const auto response = posenc::ResolveModelConfig(model);
  if (!response.ok()) return 0;
  for (const auto& encoding : response->encodings()) {
    if (encoding.has_spec()) (void)posenc::Canonicalize(encoding.spec()).ok();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string mutant = posenc::testing::MutateConfig(
      absl::string_view(reinterpret_cast<const char*>(data), size), seed);
  const size_t kept = mutant.size() < max_size ? mutant.size() : max_size;
  std::memcpy(data, mutant.data(), kept);
  return kept;
}
