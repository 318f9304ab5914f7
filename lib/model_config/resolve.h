// A model's config.json, read: which encodings it means, and what is wrong with it.
//
// Follows transformers' resolution with the policy of lib/DESIGN.md where it
// changed between versions or misreads files. Facts: reference/hf-rope.md.
#ifndef POSENC_LIB_MODEL_CONFIG_RESOLVE_H_
#define POSENC_LIB_MODEL_CONFIG_RESOLVE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Every encoding of the model (the specs are complete as far as the config goes,
// but not yet canonical; attention_factor is unset), narrowed to model.tower()
// and model.layer_type() when they are set. INVALID_ARGUMENT, with the JSON
// pointer as the field (`config_json/rope_scaling/factor: ...`), for what is not
// a config, is not known, or contradicts itself. Thread-safe.
absl::StatusOr<v1::ResolveModelConfigResponse> ResolveModelConfig(const v1::ModelSource& model);

// The one encoding that a table request means: refuses with the list of towers
// and layer types when there are several, and by name when its kind has no table.
absl::StatusOr<v1::ResolvedEncoding> OneEncoding(const v1::ResolveModelConfigResponse& resolved);

// The table of an encoding whose positions have several axes (M-RoPE). Its spec is
// that of text, where all axes are equal: the same rows, and the same table as any
// model's with those frequencies. REQUIRES: encoding.has_mrope().
v1::EncodingSpec MropeSpecOf(const v1::ResolvedEncoding& encoding);

// The spec of a table of `encoding` with these coordinates and this layout: by axis
// (MropeSpecOf) where they are asked for by axis, else the encoding's own.
v1::EncodingSpec SpecFor(const v1::ResolvedEncoding& encoding, const v1::Selection& selection,
                         v1::Layout layout);

// The model_type values that have a row in the table of families, sorted.
std::vector<std::string> KnownModelTypes();

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_RESOLVE_H_
