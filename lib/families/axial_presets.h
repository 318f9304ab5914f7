// Whose axial RoPE: the options that each model's code amounts to.
#ifndef POSENC_LIB_FAMILIES_AXIAL_PRESETS_H_
#define POSENC_LIB_FAMILIES_AXIAL_PRESETS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/v1/encoding.pb.h"

namespace posenc {

struct AxialPreset {
  v1::AxialRopePreset preset;
  // The axes of a head of head_dim channels; their dims may be odd or too large,
  // which is refused afterwards.
  std::vector<v1::AxialRopeAxis> (*axes)(int64_t head_dim);
  double rope_theta;
  v1::AxialPairing pairing;
  v1::Arithmetic arithmetic;
  // What most have in common.
  v1::AxialFrequencyRule frequency_rule = v1::AXIAL_FREQUENCY_RULE_PER_AXIS;
  v1::AxialArrangement arrangement = v1::AXIAL_ARRANGEMENT_BLOCKS;
  v1::AxialCoordinateRule coordinate_rule = v1::AXIAL_COORDINATE_RULE_INDEX;
  double coordinate_offset = 0;
  double coordinate_scale = 1;
  v1::GridTokenOrder token_order = v1::GRID_TOKEN_ORDER_ROW_MAJOR;
  int64_t suffix_identity_rows = 0;
};

// One row a preset, in the order of the enum.
std::span<const AxialPreset> AxialPresets();

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_AXIAL_PRESETS_H_
