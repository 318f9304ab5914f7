// Whose sinusoidal table: a preset as the fields it sets.
#ifndef POSENC_LIB_FAMILIES_SINUSOIDAL_PRESETS_H_
#define POSENC_LIB_FAMILIES_SINUSOIDAL_PRESETS_H_

#include "posenc/v1/encoding.pb.h"

namespace posenc {

// Sets what the request leaves unset. REQUIRES: a known preset.
void ApplySinusoidalPreset(v1::SinusoidalSpec* spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_SINUSOIDAL_PRESETS_H_
