// Where a file says what was read of it, for those who point at it later: a comparison with
// another model, a refusal.
#ifndef POSENC_LIB_MODEL_CONFIG_PLACES_H_
#define POSENC_LIB_MODEL_CONFIG_PLACES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/layer_rules.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// The place of `fact`: of the first key of `object` that has a value among `names` (as in
// fields.h), else where the first of them would stand. An object that is absent has no place.
void AddPlace(absl::string_view fact, const JsonValue& object, absl::string_view names,
              v1::ResolvedEncoding* encoding);

// The places of a RoPE's facts, and of the parameters of its scaling. `partial`: of its width, as
// in RopeWidth.
void AddRopePlaces(const Tower& tower, const LayerGroup& group, const JsonValue& partial,
                   v1::ResolvedEncoding* encoding);

// Of every encoding: its kind, what switches others on, its layers, its length.
void AddCommonPlaces(const Tower& tower, v1::ResolvedEncoding* encoding);

// A refusal that names a field of the document (config_json/rope_scaling/factor) with its place
// (fact_place.h). Any other status as it is.
absl::Status WithPlace(absl::Status status, const JsonValue& root);

// A refusal that names a field of `encoding`'s spec (rope.yarn.factor), as one of the key of the
// file that gave it, with its place. Any other status as it is.
absl::Status AtConfigKey(absl::Status status, const v1::ResolvedEncoding& encoding);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_PLACES_H_
