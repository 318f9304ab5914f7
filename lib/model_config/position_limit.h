// How far a model's table may reach.
//
// A RoPE without a scaling grows with whoever asks. A scaled one is made for a length: beyond it
// its values are no model's, and a server that raises its limit past the config must hear of it
// (vllm-project/vllm#44286).
#ifndef POSENC_LIB_MODEL_CONFIG_POSITION_LIMIT_H_
#define POSENC_LIB_MODEL_CONFIG_POSITION_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Refuses (FieldError of `field`) `positions` positions of a scaled RoPE that is made for fewer.
// `spec` is the encoding's, or what a profile has made of it:
//   llama3         max_position_embeddings
//   linear, ntk    that times factor
//   yarn           that, or original_max_position_embeddings times factor
//   dynamic        the sequence_length that was asked for, or that from which its base grows
//   longrope       max_position_embeddings, or by the short list the original length
absl::Status CheckPositionLimit(const v1::ResolvedEncoding& encoding, const v1::EncodingSpec& spec,
                                absl::string_view field, int64_t positions);

// The rows of a model's table where the request names none: max_position_embeddings (0 where the
// file has none), or as many as the table is made for.
int64_t DefaultPositions(const v1::ResolvedEncoding& encoding);

// The same for what a request selects, where that is positions.
absl::Status CheckSelection(const v1::ResolvedEncoding& encoding, const v1::Selection& selection);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_POSITION_LIMIT_H_
