// Families that read documents: T5 buckets of positions in the text, and of where the words
// stand on the page.
#ifndef POSENC_LIB_MODEL_CONFIG_DOCUMENT_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_DOCUMENT_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// LayoutLMv2 and v3: learned rows, and T5 buckets of positions (layer type all) and of the
// boxes' coordinates (layer type spatial: the same table form for x and for y).
absl::Status ResolveLayoutLm(const Tower& tower, v1::ResolveModelConfigResponse* response);

// UDOP: an encoder whose biases are listed (layer types all, horizontal, vertical, summed by the
// model), T5's decoder, and learned rows of the boxes' edges.
absl::Status ResolveUdop(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_DOCUMENT_RULES_H_
