// The options of a resampled table, completed and checked.
#ifndef POSENC_LIB_FAMILIES_TABLE_RESAMPLE_SPEC_H_
#define POSENC_LIB_FAMILIES_TABLE_RESAMPLE_SPEC_H_

#include "absl/status/status.h"
#include "posenc/v1/learned.pb.h"

namespace posenc {

// Refusals name the field: `table_resample.kernel: must be ..., got nearest`.
absl::Status CanonicalizeTableResample(v1::TableResampleSpec* spec);

// Whether its samples stand at geometric coordinates: geometric_stretch.h.
inline bool IsGeometric(const v1::TableResampleSpec& spec) {
  return spec.source_spacing() == v1::RESAMPLE_SPACING_GEOMETRIC;
}

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_TABLE_RESAMPLE_SPEC_H_
