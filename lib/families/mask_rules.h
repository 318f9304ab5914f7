// Mask rules as booleans: which keys one query may attend to.
//
// A rule on positions allows an interval of keys, a rule on tokens compares a key's
// entry with the query's; all_of and any_of compose them. Nothing is ever added:
// the fill comes once, when all rules have spoken.
// The rules: mask.proto; reference/other-encodings.md, section 6.
#ifndef POSENC_LIB_FAMILIES_MASK_RULES_H_
#define POSENC_LIB_FAMILIES_MASK_RULES_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "posenc/v1/mask.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Keys that are evaluated together; bounds the scratch of a nested rule.
inline constexpr size_t kMaskBlock = 1024;

// Which lists of a token grid a rule reads.
struct MaskInputs {
  bool padding_mask = false;
  bool sequence_ids = false;
  bool block_ids = false;
  bool queries_are_tokens = false;  // the query's own entry is read too

  bool any() const { return padding_mask || sequence_ids || block_ids; }
};

// Fills in defaults and refuses what makes no sense, naming the rule by its path:
// "mask.rule.all_of.rules[1].window.left: is required". Bounds depth and number.
absl::Status CanonicalizeMaskRule(v1::MaskRule* rule);

// REQUIRES: rule is canonical (here and below).
MaskInputs InputsOf(const v1::MaskRule& rule);

// Writes 1 where the query at position `query` may attend to key first_key + i, else
// 0. REQUIRES: allowed.size() <= kMaskBlock; `tokens` has the lists that the rule
// reads, and entries for the query and the keys.
void FillAllowed(const v1::MaskRule& rule, const v1::TokenGrid& tokens, int64_t query,
                 int64_t first_key, std::span<uint8_t> allowed);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_MASK_RULES_H_
