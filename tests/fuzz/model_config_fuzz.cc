// Fuzz target: any bytes as config.json, mutated as JSON half of the time. With
// libFuzzer (-DPOSENC_FUZZ=ON, clang) the corpus is tests/golden/configs; without
// it the program reads the files of the folders that it is given, and a few mutants of each.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/string_view.h"
#include "lib/families/family.h"
#include "lib/model_config/resolve.h"
#include "tests/support/config_mutator.h"

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

#ifdef POSENC_LIBFUZZER

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string mutant = posenc::testing::MutateConfig(
      absl::string_view(reinterpret_cast<const char*>(data), size), seed);
  const size_t kept = mutant.size() < max_size ? mutant.size() : max_size;
  std::memcpy(data, mutant.data(), kept);
  return kept;
}

#else

namespace {

void RunFile(const std::filesystem::path& path) {
  constexpr uint64_t kMutants = 10;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  for (uint64_t seed = 0; seed <= kMutants; ++seed) {
    const std::string input =
        seed == 0 ? text.str() : posenc::testing::MutateConfig(text.str(), seed);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      RunFile(entry.path());
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}

#endif
