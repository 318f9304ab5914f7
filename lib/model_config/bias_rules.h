// Encodings that are added to attention scores and need no weights, or only a
// table by bucket: ALiBi and T5's.
#ifndef POSENC_LIB_MODEL_CONFIG_BIAS_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_BIAS_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// BLOOM: causal ALiBi, no limit of length (seq_length is what it was trained on).
absl::Status ResolveBloom(const Tower& tower, v1::ResolveModelConfigResponse* response);

// MPT: ALiBi, or a learned table where attn_config says alibi false.
absl::Status ResolveMpt(const Tower& tower, v1::ResolveModelConfigResponse* response);

// Falcon: ALiBi where `alibi` is true, else RoPE.
absl::Status ResolveFalcon(const Tower& tower, v1::ResolveModelConfigResponse* response);

// Baichuan: the 13B has ALiBi, the 7B RoPE, and nothing but their size tells them apart.
absl::Status ResolveBaichuan(const Tower& tower, v1::ResolveModelConfigResponse* response);

// JinaBERT and MosaicBERT: ALiBi in both directions.
absl::Status ResolveSymmetricAlibi(const Tower& tower, v1::ResolveModelConfigResponse* response);

// T5: buckets of both directions in the encoder, of the past in the decoder.
absl::Status ResolveT5(const Tower& tower, v1::ResolveModelConfigResponse* response);

// LongT5: the encoder attends within encoder_attention_type's reach (`variant`); where that is
// transient-global, to whole blocks too, with buckets of their own (layer type `global`).
absl::Status ResolveLongT5(const Tower& tower, v1::ResolveModelConfigResponse* response);

// What the T5 bias of MPNet and WavLM shares with it.
struct T5Buckets {
  int64_t num_buckets;
  int64_t max_distance;
  bool bidirectional;
  bool per_layer;
};
v1::ResolvedEncoding T5Encoding(const Tower& tower, const T5Buckets& buckets, int64_t heads);

// Where `keys` has the two numbers; "" for one that stands in the family's code.
void AddBucketPlaces(const JsonValue& keys, absl::string_view buckets_key,
                     absl::string_view distance_key, v1::ResolvedEncoding* encoding);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_BIAS_RULES_H_
