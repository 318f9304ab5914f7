#include "lib/model_config/default_maps.h"

#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace posenc {

JsonValue DefaultMap(absl::string_view text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& parsed = *new absl::flat_hash_map<std::string, std::unique_ptr<const JsonDocument>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<const JsonDocument>& document = parsed[text];
  if (document == nullptr) document = JsonDocument::ParseDefault(text, "/rope_parameters");
  return document->root();
}

}  // namespace posenc
