#include "client/cli/flag_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace posenc::cli {
namespace {

struct FieldFlag {
  absl::string_view path;  // in a request
  absl::string_view flag;
};

// A field comes before the message that it is in.
constexpr std::array kFlags = std::to_array<FieldFlag>({
    {"selection.position_range", "--positions"},
    {"selection.position_ids", "--position-ids"},
    {"selection.attention_grid.query_length", "--query-length"},
    {"selection.attention_grid.key_length", "--key-length"},
    {"selection.attention_grid.query_offset", "--query-offset"},
    {"selection.attention_grid", "--query-length, --key-length"},
    {"selection.patch_grid", "--grid"},
    {"selection.token_grid", "--selection"},
    {"selection.token_mask", "--selection"},
    {"selection.token_runs", "--selection"},
    {"selection.axis_position_ids", "--selection"},
    {"selection.points", "--selection"},
    {"selection.sequences", "--selection"},
    {"format.dtype", "--dtype"},
    {"format.layout", "--layout"},
    {"format.profile", "--profile"},
    {"format.max_model_len", "--rows"},
    {"sequence_length", "--sequence-length"},
    {"tower", "--tower"},
    {"layer_type", "--layer-type"},
    {"overrides_json", "--hf-overrides"},
});

bool IsPathChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

// Whether `path` is `field` or lies in it.
bool IsIn(absl::string_view path, absl::string_view field) {
  return absl::ConsumePrefix(&path, field) && (path.empty() || path.front() == '.');
}

// Whether `word` of a sentence is the last name of `field`; one without _ is an English word.
bool Names(absl::string_view word, absl::string_view field) {
  return word.find('_') != absl::string_view::npos && word.find('.') == absl::string_view::npos &&
         absl::ConsumeSuffix(&field, word) && (field.empty() || field.back() == '.');
}

}  // namespace

std::string FlagsOf(absl::string_view message) {
  std::vector<absl::string_view> flags;
  for (size_t begin = 0; begin < message.size();) {
    size_t end = begin;
    while (end < message.size() && IsPathChar(message[end])) ++end;
    const absl::string_view word = absl::StripSuffix(message.substr(begin, end - begin), ".");
    // A key of the config stands behind a slash, a value in quotes.
    const bool is_quoted = begin > 0 && (message[begin - 1] == '/' || message[begin - 1] == '"');
    const auto* found = std::find_if(kFlags.begin(), kFlags.end(), [&](const FieldFlag& flag) {
      const bool is_path = begin == 0 || word.find('.') != absl::string_view::npos;
      return !is_quoted && ((is_path && IsIn(word, flag.path)) || Names(word, flag.path));
    });
    if (found != kFlags.end() &&
        std::find(flags.begin(), flags.end(), found->flag) == flags.end()) {
      flags.push_back(found->flag);
    }
    begin = end + 1;
  }
  if (flags.empty()) return "";
  return absl::StrCat(" (",
                      flags.size() == 1 && !absl::StrContains(flags[0], ",") ? "flag: " : "flags: ",
                      absl::StrJoin(flags, ", "), ")");
}

}  // namespace posenc::cli
