// Biases that are a real function of head and distance: what KERPLE, Sandwich and
// RetNet share.
//
// Query and key positions are those of an attention_grid, relative_position = key -
// query. Tables are Toeplitz: BIAS [H, Q, K], BIAS_VECTOR [H, Q+K-1].
#ifndef POSENC_LIB_FAMILIES_DISTANCE_BIAS_H_
#define POSENC_LIB_FAMILIES_DISTANCE_BIAS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/families/family.h"
#include "lib/families/near_value.h"
#include "lib/numeric/wide_float.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Immutable, thread-safe.
class DistanceFunction {
 public:
  virtual ~DistanceFunction() = default;

  // The bias of a head at a distance of query - key >= 0, in double; keys after the
  // query have none (0).
  virtual NearValue Near(int64_t head, int64_t distance) const = 0;

  // The same to more than 200 bits. Slow.
  virtual WideFloat Exact(int64_t head, int64_t distance) const = 0;

  virtual size_t bytes() const = 0;
};

// A grid's tensor in a canonical format whose layout is BIAS_VECTOR or any matrix.
absl::StatusOr<TableShape> ResolveDistanceBias(std::string matrix_name, int64_t num_heads,
                                               const v1::Selection& selection,
                                               v1::TensorFormat format);

std::shared_ptr<const Plan> MakeDistanceBiasPlan(std::unique_ptr<const DistanceFunction> function);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_DISTANCE_BIAS_H_
