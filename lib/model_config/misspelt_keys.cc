#include "lib/model_config/misspelt_keys.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/edit_distance.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/rope_theta.h"

namespace posenc {
namespace {

// Real keys of some model that are as near to one of ours as a slip is.
constexpr absl::string_view kRealKeys =
    "partial_rotary_factors qk_nope_head_dim local_rope_theta global_rope_theta "
    "max_2d_position_embeddings position positions channels in_channels";

constexpr absl::string_view kMaps = "rope_scaling rope_parameters";
constexpr absl::string_view kOtherLengths =
    "n_positions max_seq_len n_ctx seq_length max_sequence_length "
    "model_max_length";

// One slip in a name of so many letters, two in a longer one, or where they are the same letters
// (rope_tetha, but not rope_beta); a shorter name is too near to others.
constexpr size_t kOneSlip = 8;
constexpr size_t kTwoSlips = 16;
// No key of ours comes near; it bounds the work on a hostile one.
constexpr size_t kMaxLetters = 64;

// ropeTheta, rope-theta and ROPE_THETA are rope_theta.
std::string Letters(absl::string_view key) {
  std::string letters;
  for (const char c : key) {
    if (c != '_' && c != '-') letters.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

bool IsNearMiss(absl::string_view key, absl::string_view name) {
  if (key == name || key.size() > kMaxLetters) return false;
  const std::string letters = Letters(key);
  const std::string right = Letters(name);
  const bool two = right.size() >= kTwoSlips || absl::c_is_permutation(letters, right);
  const size_t most = right.size() < kOneSlip ? 0 : two ? 2 : 1;
  return EditDistance(letters, right) <= most;
}

// As the map or the number that the right key holds; empty where it is nothing to paste.
std::string ValueText(const JsonValue& value, bool is_map) {
  if (is_map) return value.is_object() ? MapText(value) : "";
  const bool whole = (value.is_number() && value.number() > 0) || value.is_bool();
  return whole && !value.is_shortened() ? value.Text() : "";
}

// A value of the overrides is mended there, not in the file.
void Note(const Tower& tower, const JsonValue& value, absl::string_view right, absl::string_view in,
          const std::string& text) {
  const std::string fix = text.empty() || value.in_overrides() ? "" : MemberText(right, text);
  tower.findings.Add(Rule::kKeyMisspelt, value,
                     {.message = absl::StrCat("No reader known here reads ", value.key(), ", and ",
                                              right, " is not in the ", in,
                                              ": the one is most likely meant for the other."),
                      .expected = std::string(right),
                      .fix = fix});
}

// Names of one thing, best first, and others that some readers have for it.
struct Group {
  absl::string_view names;
  absl::string_view others = "";
  bool is_map = false;
};

bool IsOneOf(Kind kind, std::initializer_list<Kind> kinds) {
  return absl::c_linear_search(kinds, kind);
}

// What the family reads. Of other kinds a size that is missing is refused, or there is none.
std::vector<Group> GroupsOf(const ModelFamily& family) {
  const RopeTraits& rope = family.rope;
  if (IsOneOf(family.kind, {Kind::kT5, Kind::kLongT5})) {
    return {{"relative_attention_num_buckets"}, {"relative_attention_max_distance"}};
  }
  if (IsOneOf(family.kind, {Kind::kBert, Kind::kLearned})) return {{family.table.rows_keys}};
  if (!IsOneOf(family.kind, {Kind::kRope, Kind::kFalcon, Kind::kBaichuan, Kind::kEsm})) return {};
  std::vector<Group> groups = {{rope.theta_keys},
                               {rope.partial_keys},
                               {rope.rotary_dim_key},
                               {rope.head_dim_keys},
                               {"max_position_embeddings", kOtherLengths},
                               {"original_max_position_embeddings"}};
  if (rope.map_key != "-") groups.push_back({kMaps, "", true});
  if (rope.layers == LayerRule::kGemma3) groups.push_back({"rope_local_base_freq"});
  if (rope.layers == LayerRule::kModernBert) {
    groups.push_back({"global_rope_theta"});
    groups.push_back({"local_rope_theta"});
  }
  return groups;
}

// The right key, where it is not said: beside the misspelt one, or in a map. What overrides say is
// a text of its own, whatever the file has.
bool IsSaid(const Tower& tower, absl::string_view name, const JsonValue& misspelt) {
  for (const JsonValue& object :
       {tower.keys, tower.keys["rope_scaling"], tower.keys["rope_parameters"]}) {
    const JsonValue value = object[name];
    if (value.has_value() && (value.in_overrides() || !misspelt.in_overrides())) return true;
  }
  return false;
}

// Whether another name says the same, which the fix would contradict.
bool IsSaidOtherwise(const Tower& tower, const Group& group) {
  return FirstOf(tower.keys, group.names).present() || FirstOf(tower.keys, group.others).present();
}

void NoteNearMiss(const Tower& tower, const JsonValue& value, const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    for (const absl::string_view name : absl::StrSplit(group.names, ' ', absl::SkipEmpty())) {
      if (!IsNearMiss(value.key(), name)) continue;
      const bool otherwise = IsSaidOtherwise(tower, group);
      // A second name is nothing that a file lacks beside the first.
      const bool second = !absl::StartsWith(group.names, name);
      if (IsSaid(tower, name, value) || (second && otherwise)) continue;
      return Note(tower, value, name, value.in_overrides() ? "overrides" : "file",
                  otherwise ? "" : ValueText(value, group.is_map));
    }
  }
}

bool IsRead(const std::vector<Group>& groups, absl::string_view key) {
  return HasName(kRealKeys, key) ||
         absl::c_any_of(groups, [&](const Group& group) { return HasName(group.names, key); });
}

}  // namespace

void NoteMisspeltKeys(const Tower& tower) {
  const std::vector<Group> groups = GroupsOf(tower.family);
  if (groups.empty()) return;
  for (const JsonValue& value : tower.keys.children()) {
    if (!value.has_value() || IsRead(groups, value.key())) continue;
    NoteNearMiss(tower, value, groups);
  }
}

bool NoteMisspeltInMap(const Tower& tower, const JsonValue& map, const JsonValue& key,
                       std::span<const absl::string_view> used) {
  if (!key.has_value() || key.is_object()) return false;
  for (const absl::string_view name : used) {
    if (map[name].has_value() || !IsNearMiss(key.key(), name)) continue;
    Note(tower, key, name, "map", ValueText(key, false));
    return true;
  }
  return false;
}

}  // namespace posenc
