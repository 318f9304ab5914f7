// The step of every sum of weighted rows.
#ifndef POSENC_LIB_FAMILIES_ADD_SCALED_H_
#define POSENC_LIB_FAMILIES_ADD_SCALED_H_

#include <cstddef>
#include <span>

namespace posenc {

// sums[i] += weight * samples[i], in double. REQUIRES: as many samples as sums.
template <typename Sample>
void AddScaled(double weight, std::span<const Sample> samples, std::span<double> sums) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * static_cast<double>(samples[i]);
}

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ADD_SCALED_H_
