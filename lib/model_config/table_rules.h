// Encodings that are added to embeddings: learned tables, whose rows are weights
// and only counted here, and sinusoids.
#ifndef POSENC_LIB_MODEL_CONFIG_TABLE_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_TABLE_RULES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// A row a position; which row the first token has is the family's (BART's 2,
// RoBERTa's padding_idx + 1).
absl::Status ResolveLearned(const Tower& tower, v1::ResolveModelConfigResponse* response);

// BERT and RoBERTa: learned, or what position_embedding_type says (alibi, rotary,
// relative_key). ESM: rotary by default of its files.
absl::Status ResolveBert(const Tower& tower, v1::ResolveModelConfigResponse* response);
absl::Status ResolveEsm(const Tower& tower, v1::ResolveModelConfigResponse* response);

// Rows and columns of patches in an image: image_size / patch_size, or a square of
// num_patches.
absl::StatusOr<std::vector<int64_t>> PatchGrid(const Tower& tower);

// A row a patch, after those of the prefix tokens.
absl::Status ResolveLearnedGrid(const Tower& tower, v1::ResolveModelConfigResponse* response);

// MPNet: learned as in RoBERTa, and T5 buckets in its scores.
absl::Status ResolveMpnet(const Tower& tower, v1::ResolveModelConfigResponse* response);

// Marian's and fairseq's sinusoids, the same in encoder and decoder.
absl::Status ResolveSinusoidal(const Tower& tower, v1::ResolveModelConfigResponse* response);

// Whisper: a sinusoid in the encoder, a learned table in the decoder. The encoder alone is a tower
// of many models.
absl::Status ResolveWhisper(const Tower& tower, v1::ResolveModelConfigResponse* response);
absl::Status ResolveWhisperEncoder(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_TABLE_RULES_H_
