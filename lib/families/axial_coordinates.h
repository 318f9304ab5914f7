// From an index along an axis of a grid to the coordinate that turns it.
#ifndef POSENC_LIB_FAMILIES_AXIAL_COORDINATES_H_
#define POSENC_LIB_FAMILIES_AXIAL_COORDINATES_H_

#include <cstdint>

#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// The coordinate of index i of n by the spec's rule (AxialCoordinateRule), then
// offset and scale. FLOAT32: a float32, every step rounded as the references
// have it. EXACT: real. REQUIRES: `spec` is canonical, 0 <= i < n.
WideFloat AxialCoordinate(const v1::AxialRopeSpec& spec, const v1::AxialRopeAxis& axis, int64_t i,
                          int64_t n);

// A coordinate that is given: only offset and scale.
WideFloat GivenCoordinate(const v1::AxialRopeSpec& spec, double coordinate);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_AXIAL_COORDINATES_H_
