// linspace(first, last, count), element by element.
#ifndef POSENC_LIB_FAMILIES_LINSPACE_H_
#define POSENC_LIB_FAMILIES_LINSPACE_H_

#include <cstdint>

#include "lib/numeric/wide_float.h"

namespace posenc {

// As PyTorch's float32 code has it: from both ends towards the middle, with a
// rounded step. A single element is `first`.
inline float Linspace(float first, float last, int64_t count, int64_t i) {
  if (count == 1) return first;
  const float step = (last - first) / static_cast<float>(count - 1);
  return i < count / 2 ? first + step * static_cast<float>(i)
                       : last - step * static_cast<float>(count - 1 - i);
}

inline WideFloat ExactLinspace(const WideFloat& first, const WideFloat& last, int64_t count,
                               int64_t i) {
  if (count == 1) return first;
  const WideFloat part = (last - first) * WideFloat::FromInt(i);
  return first + part.DividedBy(static_cast<uint64_t>(count - 1));
}

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_LINSPACE_H_
