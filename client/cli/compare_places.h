// Which encodings of a model and its base belong together, and where in the model's file a
// difference of them is decided.
#ifndef POSENC_CLIENT_CLI_COMPARE_PLACES_H_
#define POSENC_CLIENT_CLI_COMPARE_PLACES_H_

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/model_config/fact_place.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// Pointers into the two responses.
struct EncodingPairs {
  // Each of the base's with its like in the model; null where that has none.
  std::vector<std::pair<const v1::ResolvedEncoding*, const v1::ResolvedEncoding*>> of_base;
  std::vector<const v1::ResolvedEncoding*> added;  // those that the model alone has
};
EncodingPairs PairEncodings(const v1::ResolveModelConfigResponse& base,
                            const v1::ResolveModelConfigResponse& model);

// Where the file says `fact` of the encoding (FactPlace), or lacks it. False when it says nothing.
bool SetPlace(const v1::ResolvedEncoding& encoding, absl::string_view fact, v1::Finding* finding);

// What the switch of an encoding is named by: its layer type, or its kind where it is for all.
absl::string_view SwitchedName(const v1::ResolvedEncoding& encoding);

// The key that would switch on what `wanted` names in the encoding's tower, else the one that
// says what the model is.
void SetSwitchPlace(const v1::ResolvedEncoding& encoding, absl::string_view wanted,
                    v1::Finding* finding);

// Where an encoding that the base alone has would come from: the key that switches it on, what
// tells layers apart, or the nested config of its tower.
void SetMissingPlace(const v1::ResolveModelConfigResponse& model,
                     const v1::ResolvedEncoding& of_base, v1::Finding* finding);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_PLACES_H_
