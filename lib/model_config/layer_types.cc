#include "lib/model_config/layer_types.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

using Names = std::vector<std::string>;

// What any family calls its layers, for maps in files without layer_types.
constexpr std::array<absl::string_view, 9> kKnownTypes = {"full_attention",    "sliding_attention",
                                                          "chunked_attention", "linear_attention",
                                                          "attention",         "main",
                                                          "compress",          "hybrid",
                                                          "hybrid_sliding"};

absl::StatusOr<Names> GivenTypes(const JsonValue& list) {
  if (!list.is_array()) {
    return FieldError(list.field(),
                      absl::StrCat("must be a list of strings, got ", list.Describe()));
  }
  if (list.size() > static_cast<size_t>(kMaxLayers)) {
    return FieldError(list.field(), absl::StrCat("must have at most ", kMaxLayers, " entries, has ",
                                                 list.size()));
  }
  Names types;
  for (const JsonValue& element : list.children()) {
    ASSIGN_OR_RETURN(const std::optional<std::string> type, ReadString(element));
    types.push_back(type.value_or(""));
  }
  return types;
}

// `types` are the first of the list.
absl::Status CheckNames(const JsonValue& list, const Names& types, absl::string_view names) {
  const std::vector<absl::string_view> known = absl::StrSplit(names, ' ', absl::SkipEmpty());
  if (known.empty()) return absl::OkStatus();
  const std::vector<JsonValue> elements = list.children();
  for (size_t i = 0; i < types.size(); ++i) {
    if (std::find(known.begin(), known.end(), types[i]) != known.end()) continue;
    return FieldError(elements[i].field(),
                      absl::StrCat("must be ", absl::StrJoin(known, " or "),
                                   " in this family, got ", elements[i].Describe()));
  }
  return absl::OkStatus();
}

// A list with a number for each layer.
absl::StatusOr<Names> TypesOfList(const JsonValue& list, const LayerPattern& pattern) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, ReadInts(list));
  Names types;
  for (const int64_t number : numbers) {
    types.emplace_back(number == pattern.full_number ? kFull : pattern.other);
  }
  return types;
}

// A list of the full layers' numbers.
absl::StatusOr<Names> TypesOfNumbers(const JsonValue& list, int64_t count,
                                     const LayerPattern& pattern) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, ReadInts(list));
  Names types(static_cast<size_t>(count), std::string(pattern.other));
  for (const int64_t number : numbers) {
    const int64_t layer = number - pattern.first_layer;
    if (layer < 0 || layer >= count) {
      return FieldError(list.field(),
                        absl::StrCat("must name layers from ", pattern.first_layer, " to ",
                                     pattern.first_layer + count - 1, ", names ", number));
    }
    types[static_cast<size_t>(layer)] = std::string(kFull);
  }
  return types;
}

}  // namespace

absl::Status ListTooShort(const JsonValue& list, size_t layers) {
  return FieldError(list.field(), absl::StrCat("must have an entry for each of the ", layers,
                                               " layers, has ", list.size()));
}

absl::StatusOr<Names> PatternOfLayers(const Tower& tower, const LayerPattern& pattern) {
  ASSIGN_OR_RETURN(std::optional<int64_t> count, NumLayers(tower));
  // Only its length, for a file that does not say it otherwise.
  if (!count.has_value()) {
    count = static_cast<int64_t>(
        std::min(tower.keys["layer_types"].size(), static_cast<size_t>(kMaxLayers)));
  }
  const JsonValue every = FirstOf(tower.keys, pattern.every);
  // EXAONE 4 spells its pattern LLLG.
  std::optional<int64_t> given = every.is_string() && !every.string().empty()
                                     ? static_cast<int64_t>(every.string().size())
                                     : std::optional<int64_t>();
  if (!given.has_value()) {
    ASSIGN_OR_RETURN(given, ReadPositiveInt(every));
  }
  const int64_t period = given.value_or(pattern.period);
  Names types;
  for (int64_t i = 0; period > 0 && i < *count; ++i) {
    const bool full = (pattern.full_first ? i : i + 1) % period == 0 ||
                      (pattern.last_full && i + 1 == *count) || (pattern.zeroth_full && i == 0);
    types.emplace_back(full ? pattern.full : pattern.other);
  }
  return types;
}

absl::StatusOr<Names> LayerTypes(const Tower& tower, const LayerPattern& pattern) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> count, NumLayers(tower));
  JsonValue list = FirstOf(tower.keys, kTypesKeys);
  Names types;
  if (list.has_value()) {
    ASSIGN_OR_RETURN(types, GivenTypes(list));
  } else if (list = FirstOf(tower.keys, pattern.pattern); list.present()) {
    ASSIGN_OR_RETURN(types, TypesOfList(list, pattern));
  } else if (list = FirstOf(tower.keys, pattern.cycle); list.truthy()) {
    ASSIGN_OR_RETURN(const Names run, GivenTypes(list));
    for (int64_t i = 0; i < count.value_or(0); ++i) {
      types.push_back(run[static_cast<size_t>(i) % run.size()]);
    }
    return types;
  } else if (list = FirstOf(tower.keys, pattern.listed); list.present() && count.has_value()) {
    return TypesOfNumbers(list, *count, pattern);
  } else {
    return PatternOfLayers(tower, pattern);
  }
  if (count.has_value()) {
    const size_t layers = static_cast<size_t>(*count);
    if (types.size() < layers) return ListTooShort(list, layers);
    types.resize(layers);  // what follows is for prediction layers
  }
  RETURN_IF_ERROR(CheckNames(list, types, pattern.names));
  return types;
}

bool IsWithoutAttention(absl::string_view type) {
  return std::find(kWithoutAttention.begin(), kWithoutAttention.end(), type) !=
         kWithoutAttention.end();
}

bool IsLayerType(const Tower& tower, absl::string_view key) {
  if (std::find(kKnownTypes.begin(), kKnownTypes.end(), key) != kKnownTypes.end()) return true;
  const JsonValue list = FirstOf(tower.keys, kTypesKeys);
  if (list.size() > static_cast<size_t>(kMaxLayers)) return false;  // refused elsewhere
  const std::vector<JsonValue> types = list.children();
  return std::any_of(types.begin(), types.end(), [&](const JsonValue& type) {
    return type.is_string() && type.string() == key;
  });
}

bool IsNested(const Tower& tower, const RopeKeys& keys) {
  const std::vector<JsonValue> members = keys.map.children();
  const bool all_null = std::all_of(members.begin(), members.end(),
                                    [](const JsonValue& member) { return !member.has_value(); });
  return std::any_of(members.begin(), members.end(), [&](const JsonValue& member) {
    return (member.is_object() || all_null) && IsLayerType(tower, member.key());
  });
}

}  // namespace posenc
