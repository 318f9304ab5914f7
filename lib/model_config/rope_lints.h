// Findings about RoPE keys that change nothing of what a config means, but are
// most likely mistakes.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_LINTS_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_LINTS_H_

#include "lib/model_config/rope_keys.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// A factor, type or ratio where a reader of the map cannot see it.
void NoteMisplacedKeys(const Tower& tower, const RopeKeys& keys);

// A key that means another base than `rope_theta` where it is read, and is not read in this family.
void NoteUnreadBase(const Tower& tower, double rope_theta);

// The same of a width, or of a choice of layers.
void NoteUnreadKeys(const Tower& tower);

// Heads that do not divide hidden_size, in families whose class refuses that.
void NoteUnevenHeads(const Tower& tower);

// Llama 3.1 to 3.3 without their llama3 block: it was dropped to get past a reader
// that did not know it, or by a converter.
void NoteLostScaling(const Tower& tower, const v1::ResolvedEncoding& encoding);

// The same models with their llama3 block, but another base.
void NoteForeignBase(const Tower& tower, const RopeKeys& keys, const v1::RopeSpec& rope);

// A scaling that a reader of the old form, which knows no rope_parameters, drops.
void NoteScalingOnlyNewForm(const Tower& tower, const RopeKeys& keys, absl::string_view rope_type);

// What rope_parameters says and transformers 4, in its mode, does not read: bases and scalings that
// stand nowhere else.
void NoteUnreadParameters(const Tower& tower);

// A position_embedding_type left over from the config that this one was made from.
void NotePositionType(const Tower& tower);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_LINTS_H_
