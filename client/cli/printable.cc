#include "client/cli/printable.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace posenc::cli {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
  size_t bytes;  // 0: none begins here
  uint32_t code_point;
};

// The one that `text` begins with. REQUIRES: text is not empty.
Character FirstOf(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {0, 0};
  uint32_t code_point = first & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code_point = code_point << 6 | (byte(i) & 0x3FU);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < kSmallest[bytes] || surrogate || code_point > 0x10FFFF) return {0, 0};
  return {bytes, code_point};
}

// C0, DEL and C1.
bool IsControl(uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
}

}  // namespace

std::string ValidUtf8(absl::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = FirstOf(text).bytes;
    absl::StrAppend(&valid, bytes == 0 ? kReplacement : text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return valid;
}

std::string OneLine(absl::string_view text) {
  std::string line;
  while (!text.empty()) {
    const Character first = FirstOf(text);
    if (first.bytes == 0) {
      absl::StrAppend(&line, kReplacement);
    } else if (IsControl(first.code_point)) {
      absl::StrAppend(&line, "\\x", absl::Hex(first.code_point, absl::kZeroPad2));
    } else {
      absl::StrAppend(&line, text.substr(0, first.bytes));
    }
    text.remove_prefix(first.bytes == 0 ? 1 : first.bytes);
  }
  return line;
}

}  // namespace posenc::cli
