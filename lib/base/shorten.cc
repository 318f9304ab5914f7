#include "lib/base/shorten.h"

#include "absl/strings/str_cat.h"

namespace posenc {
namespace {

// All bytes of a UTF-8 character but the first are 10xxxxxx.
bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string Shorten(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t keep = max_bytes - 3;
  while (keep > 0 && ContinuesCharacter(text[keep])) --keep;
  return absl::StrCat(text.substr(0, keep), "...");
}

}  // namespace posenc
