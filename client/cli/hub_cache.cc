#include "client/cli/hub_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"

namespace posenc::cli {
namespace {

bool IsHubPart(absl::string_view part) {
  if (part.empty() || part.size() > 96 || part.front() == '.') return false;
  for (const char c : part) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') {
      return false;
    }
  }
  return true;
}

// As huggingface_hub finds it.
std::filesystem::path CacheFolder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const char* cache = std::getenv(name)) return cache;
  }
  if (const char* home = std::getenv("HF_HOME")) return std::filesystem::path(home) / "hub";
  if (const char* caches = std::getenv("XDG_CACHE_HOME")) {
    return std::filesystem::path(caches) / "huggingface/hub";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "." : home) / ".cache/huggingface/hub";
}

}  // namespace

bool IsHubName(const std::string& model) {
  const std::vector<absl::string_view> parts = absl::StrSplit(model, '/');
  return parts.size() == 2 && IsHubPart(parts[0]) && IsHubPart(parts[1]);
}

absl::StatusOr<std::string> FindInHubCache(const std::string& model) {
  const std::vector<absl::string_view> parts = absl::StrSplit(model, '/');
  const std::filesystem::path folder =
      CacheFolder() / absl::StrCat("models--", parts[0], "--", parts[1]);
  std::string revision;
  std::ifstream(folder / "refs/main") >> revision;
  const std::filesystem::path config = folder / "snapshots" / revision / "config.json";
  std::error_code error;
  if (IsHubPart(revision) && std::filesystem::exists(config, error)) return config.string();
  return FileError(model, absl::StrCat("is no file or folder here, and not in ", folder.string()));
}

}  // namespace posenc::cli
