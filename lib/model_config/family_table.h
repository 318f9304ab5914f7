// The model families: what a config of each leaves unsaid. Data, a row a family.
//
// Everything that can be a rule is one (rope_rules.h and its kin); a row says
// only which names, defaults and rules a family has. Source:
// reference/hf-rope.md sections 4 and 5 (transformers 5.16, 4.57).
#ifndef POSENC_LIB_MODEL_CONFIG_FAMILY_TABLE_H_
#define POSENC_LIB_MODEL_CONFIG_FAMILY_TABLE_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// What resolves a tower of the family.
enum class Kind : uint8_t { kRope, kBloom, kMpt, kT5 };

struct ModelFamily {
  absl::string_view model_types;  // separated by spaces
  Kind kind = Kind::kRope;
  absl::string_view tower = "text";
  v1::Pairing pairing = v1::PAIRING_HALF;
  // Where the file has no value.
  double rope_theta = 10000;
  double partial_rotary_factor = 1;
  // Names of the family's own for the common keys, best first.
  absl::string_view theta_keys = "rope_theta rotary_base";
  absl::string_view partial_keys = "partial_rotary_factor";
};

std::span<const ModelFamily> FamilyTable();

// Null when no row has this model_type.
const ModelFamily* FindFamily(absl::string_view model_type);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_FAMILY_TABLE_H_
