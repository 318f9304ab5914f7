// Families of speech that carry several encodings at once.
#ifndef POSENC_LIB_MODEL_CONFIG_SPEECH_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_SPEECH_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// SeamlessM4T: fairseq's sinusoids for text, and a conformer (choice_rules.h) for speech.
absl::Status ResolveSeamless(const Tower& tower, v1::ResolveModelConfigResponse* response);

// SpeechT5: learned rows of clipped distances in the encoder, and a sinusoid in each of the four
// nets before encoder and decoder, of which a model uses one of each.
absl::Status ResolveSpeechT5(const Tower& tower, v1::ResolveModelConfigResponse* response);

// Gemma's audio towers: a sinusoid of the distances that a chunk of frames sees, farthest first.
absl::Status ResolveChunkDistances(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_SPEECH_RULES_H_
