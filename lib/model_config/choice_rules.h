// Families whose file chooses among encodings by a key of its own.
#ifndef POSENC_LIB_MODEL_CONFIG_CHOICE_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_CHOICE_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// Wav2Vec2-Conformer and -BERT: position_embeddings_type relative (sinusoids of distances),
// rotary, relative_key (Shaw's, clipped), or null for none.
absl::Status ResolveConformer(const Tower& tower, v1::ResolveModelConfigResponse* response);

// TrOCR's decoder: BART's learned rows, or fairseq's sinusoid.
absl::Status ResolveTrocr(const Tower& tower, v1::ResolveModelConfigResponse* response);

// CogVideoX: RoPE over frames, rows and columns, or a sinusoid of them.
absl::Status ResolveCogVideoX(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_CHOICE_RULES_H_
