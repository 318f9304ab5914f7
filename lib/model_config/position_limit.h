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
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Refuses (FieldError of `field`) `positions` positions of a scaled RoPE that is made for fewer:
//   llama3, longrope   max_position_embeddings
//   linear, ntk        that times factor
//   yarn               that, or original_max_position_embeddings times factor
//   dynamic            that times factor, or the sequence_length that was asked for
absl::Status CheckPositionLimit(const v1::ResolvedEncoding& encoding, absl::string_view field,
                                int64_t positions);

// The same for what a request selects, where that is positions.
absl::Status CheckSelection(const v1::ResolvedEncoding& encoding, const v1::Selection& selection);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_POSITION_LIMIT_H_
