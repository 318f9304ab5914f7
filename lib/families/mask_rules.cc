#include "lib/families/mask_rules.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"

namespace posenc {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 31;
constexpr int kMaxDepth = 16;
constexpr int kMaxRules = 256;

// Canonicalize -----------------------------------------------------------------

absl::Status CheckLength(const std::string& field, bool is_present, int64_t length, int64_t min) {
  RETURN_IF_ERROR(CheckPresent(field, is_present));
  return CheckInRange(field, length, min, kMaxLength);
}

absl::Status CanonicalizeSlidingWindow(const std::string& path, v1::SlidingWindowMask* mask) {
  const std::string history = absl::StrCat(path, ".history");
  RETURN_IF_ERROR(
      CheckEnum(history, v1::SlidingWindowHistory_IsValid(mask->history()), mask->history()));
  if (mask->history() == v1::SLIDING_WINDOW_HISTORY_UNSPECIFIED) {
    mask->set_history(v1::SLIDING_WINDOW_HISTORY_CURRENT);
  }
  return CheckLength(absl::StrCat(path, ".window"), mask->has_window(), mask->window(), 1);
}

absl::Status CanonicalizeWindow(const std::string& path, v1::WindowMask* mask) {
  RETURN_IF_ERROR(CheckLength(absl::StrCat(path, ".left"), mask->has_left(), mask->left(), 0));
  if (!mask->has_right()) mask->set_right(mask->left());
  return CheckInRange(absl::StrCat(path, ".right"), mask->right(), 0, kMaxLength);
}

absl::Status CanonicalizeChunked(const std::string& path, v1::ChunkedMask* mask) {
  RETURN_IF_ERROR(
      CheckLength(absl::StrCat(path, ".length"), mask->has_length(), mask->length(), 1));
  if (!mask->has_left_padding()) mask->set_left_padding(0);
  return CheckInRange(absl::StrCat(path, ".left_padding"), mask->left_padding(), 0, kMaxLength);
}

absl::Status CanonicalizeRule(const std::string& path, int depth, int* rules_left,
                              v1::MaskRule* rule);

absl::Status CanonicalizeRules(const std::string& path, int depth, int* rules_left,
                               v1::MaskRules* rules) {
  const std::string field = absl::StrCat(path, ".rules");
  if (rules->rules_size() == 0) return FieldError(field, "needs at least one rule");
  for (int i = 0; i < rules->rules_size(); ++i) {
    RETURN_IF_ERROR(CanonicalizeRule(absl::StrCat(field, "[", i, "]"), depth + 1, rules_left,
                                     rules->mutable_rules(i)));
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeRule(const std::string& path, int depth, int* rules_left,
                              v1::MaskRule* rule) {
  if (depth > kMaxDepth) {
    return FieldError("mask.rule", absl::StrCat("must not be nested deeper than ", kMaxDepth));
  }
  if (--*rules_left < 0) {
    return FieldError("mask.rule", absl::StrCat("must not have more than ", kMaxRules, " rules"));
  }
  switch (rule->rule_case()) {
    case v1::MaskRule::kCausal:
    case v1::MaskRule::kPadding:
    case v1::MaskRule::kQueryPadding:
    case v1::MaskRule::kSameSequence:
    case v1::MaskRule::kSameBlock:
      return absl::OkStatus();
    case v1::MaskRule::kSlidingWindow:
      return CanonicalizeSlidingWindow(absl::StrCat(path, ".sliding_window"),
                                       rule->mutable_sliding_window());
    case v1::MaskRule::kWindow:
      return CanonicalizeWindow(absl::StrCat(path, ".window"), rule->mutable_window());
    case v1::MaskRule::kChunked:
      return CanonicalizeChunked(absl::StrCat(path, ".chunked"), rule->mutable_chunked());
    case v1::MaskRule::kPrefix:
      return CheckLength(absl::StrCat(path, ".prefix.length"), rule->prefix().has_length(),
                         rule->prefix().length(), 0);
    case v1::MaskRule::kSink:
      return CheckLength(absl::StrCat(path, ".sink.length"), rule->sink().has_length(),
                         rule->sink().length(), 0);
    case v1::MaskRule::kAllOf:
      return CanonicalizeRules(absl::StrCat(path, ".all_of"), depth, rules_left,
                               rule->mutable_all_of());
    case v1::MaskRule::kAnyOf:
      return CanonicalizeRules(absl::StrCat(path, ".any_of"), depth, rules_left,
                               rule->mutable_any_of());
    case v1::MaskRule::RULE_NOT_SET:
      break;
  }
  return FieldError(path, "a rule is required");
}

// Values -----------------------------------------------------------------------

// Keys begin ... end - 1.
struct KeyInterval {
  int64_t begin;
  int64_t end;
};

void FillInterval(KeyInterval keys, int64_t first_key, std::span<uint8_t> allowed) {
  const int64_t size = static_cast<int64_t>(allowed.size());
  const int64_t begin = std::clamp<int64_t>(keys.begin - first_key, 0, size);
  const int64_t end = std::clamp<int64_t>(keys.end - first_key, begin, size);
  std::fill(allowed.begin(), allowed.begin() + begin, uint8_t{0});
  std::fill(allowed.begin() + begin, allowed.begin() + end, uint8_t{1});
  std::fill(allowed.begin() + end, allowed.end(), uint8_t{0});
}

int64_t KeysOf(const v1::SlidingWindowMask& mask) {
  switch (mask.history()) {
    case v1::SLIDING_WINDOW_HISTORY_TRANSFORMERS_4_36:
      return std::max<int64_t>(mask.window() - 1, 1);  // a query sees itself at least
    case v1::SLIDING_WINDOW_HISTORY_TRANSFORMERS_4_39:
      return mask.window() + 1;
    default:  // CURRENT
      return mask.window();
  }
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

KeyInterval ChunkOf(const v1::ChunkedMask& mask, int64_t query) {
  const int64_t chunk = FloorDiv(query - mask.left_padding(), mask.length());
  const int64_t begin = mask.left_padding() + chunk * mask.length();
  return {begin, begin + mask.length()};
}

// 1 where the key's entry equals the query's and is at least `least`.
void FillSame(const google::protobuf::RepeatedField<int64_t>& ids, int64_t least, int64_t query,
              int64_t first_key, std::span<uint8_t> allowed) {
  const int64_t id = ids[static_cast<int>(query)];
  const int64_t* keys = ids.data() + first_key;
  for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = keys[i] == id && id >= least;
}

void FillNested(const v1::MaskRules& rules, bool all, const v1::TokenGrid& tokens, int64_t query,
                int64_t first_key, std::span<uint8_t> allowed) {
  FillAllowed(rules.rules(0), tokens, query, first_key, allowed);
  std::array<uint8_t, kMaskBlock> block;
  const std::span<uint8_t> next(block.data(), allowed.size());
  for (int r = 1; r < rules.rules_size(); ++r) {
    FillAllowed(rules.rules(r), tokens, query, first_key, next);
    for (size_t i = 0; i < allowed.size(); ++i) {
      allowed[i] = all ? allowed[i] & next[i] : allowed[i] | next[i];
    }
  }
}

void AddInputs(const v1::MaskRule& rule, MaskInputs* inputs) {
  inputs->padding_mask |= rule.has_padding() || rule.has_query_padding();
  inputs->queries_are_tokens |=
      rule.has_query_padding() || rule.has_same_sequence() || rule.has_same_block();
  inputs->sequence_ids |= rule.has_same_sequence();
  inputs->block_ids |= rule.has_same_block();
  for (const v1::MaskRule& nested : rule.all_of().rules()) AddInputs(nested, inputs);
  for (const v1::MaskRule& nested : rule.any_of().rules()) AddInputs(nested, inputs);
}

}  // namespace

absl::Status CanonicalizeMaskRule(v1::MaskRule* rule) {
  int rules_left = kMaxRules;
  return CanonicalizeRule("mask.rule", /*depth=*/1, &rules_left, rule);
}

MaskInputs InputsOf(const v1::MaskRule& rule) {
  MaskInputs inputs;
  AddInputs(rule, &inputs);
  return inputs;
}

void FillAllowed(const v1::MaskRule& rule, const v1::TokenGrid& tokens, int64_t query,
                 int64_t first_key, std::span<uint8_t> allowed) {
  switch (rule.rule_case()) {
    case v1::MaskRule::kCausal:
      return FillInterval({0, query + 1}, first_key, allowed);
    case v1::MaskRule::kSlidingWindow:
      return FillInterval({query + 1 - KeysOf(rule.sliding_window()), query + 1}, first_key,
                          allowed);
    case v1::MaskRule::kWindow:
      return FillInterval({query - rule.window().left(), query + rule.window().right() + 1},
                          first_key, allowed);
    case v1::MaskRule::kChunked:
      return FillInterval(ChunkOf(rule.chunked(), query), first_key, allowed);
    case v1::MaskRule::kPrefix:
      return FillInterval({0, query < rule.prefix().length() ? rule.prefix().length() : 0},
                          first_key, allowed);
    case v1::MaskRule::kSink:
      return FillInterval({0, rule.sink().length()}, first_key, allowed);
    case v1::MaskRule::kPadding:
      for (size_t i = 0; i < allowed.size(); ++i) {
        allowed[i] = tokens.padding_mask(static_cast<int>(first_key) + static_cast<int>(i)) != 0;
      }
      return;
    case v1::MaskRule::kQueryPadding:
      std::fill(allowed.begin(), allowed.end(),
                uint8_t{tokens.padding_mask(static_cast<int>(query)) != 0});
      return;
    case v1::MaskRule::kSameSequence:
      return FillSame(tokens.sequence_ids(), INT64_MIN, query, first_key, allowed);
    case v1::MaskRule::kSameBlock:
      return FillSame(tokens.block_ids(), 0, query, first_key, allowed);
    case v1::MaskRule::kAllOf:
      return FillNested(rule.all_of(), /*all=*/true, tokens, query, first_key, allowed);
    case v1::MaskRule::kAnyOf:
      return FillNested(rule.any_of(), /*all=*/false, tokens, query, first_key, allowed);
    case v1::MaskRule::RULE_NOT_SET:
      break;  // never canonical
  }
}

}  // namespace posenc
