// The cosines and sines of a RoPE's rows, by row: what lib/numeric/rotation.h has for one list
// of frequencies, put together as a spec says.
//
//   row r     position r by the frequencies of the spec
//   LongRoPE, short_then_long: below original_max_position_embeddings (L0) position r by the
//   short list, from there on position r - L0 by the long one
//   divide_positions: angles by way of a divided position, rounded where that code rounds
#ifndef POSENC_LIB_FAMILIES_ROPE_ROWS_H_
#define POSENC_LIB_FAMILIES_ROPE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "lib/families/rope_frequencies.h"
#include "lib/numeric/rotation.h"
#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// [rotary_dim / 2] of one list, radians per position, in the spec's arithmetic.
using RopeFrequencies = std::variant<std::vector<float>, std::vector<WideFloat>>;

// The angle of pair i at position p is p · inv_freq[i], by way of a divided position, each step
// rounded to float32:
//   (p / divisor) · inv_freq[i]                 without `inverse_factors`
//   (p · inverse_factors[i]) · inv_freq[i]      with them
struct DividedPositions {
  float divisor = 1;
  std::vector<float> inverse_factors;  // 1 / factor, [pairs] or empty
  std::vector<float> inv_freq;         // [pairs], without the scaling
  float scale = 1;

  // As Rotation::Fill, kApart.
  template <typename Element>
  void Fill(int64_t first, const RotationRows<Element>& rows) const;
};

// Immutable; thread-safe.
class RopeRows {
 public:
  // REQUIRES: `rope` is canonical.
  explicit RopeRows(const v1::RopeSpec& rope);

  // rotary_dim / 2.
  int64_t pairs() const { return pairs_; }
  size_t bytes() const;
  // One list; two where the rows are short, then long.
  const std::vector<RopeFrequencies>& frequencies() const { return frequencies_; }

  // Whether Fill writes any RotationLayout: rotations do, unless scaled afterwards.
  bool writes_layouts() const;

  // Rows first, first + 1, ... REQUIRES: first >= 0; the memory exists; kApart, and not
  // cold, unless writes_layouts().
  template <typename Element>
  void Fill(int64_t first, const RotationRows<Element>& rows) const;

 private:
  // Rows from `begin` up to the next part's; row r is position r - begin.
  struct Part {
    int64_t begin;
    std::variant<Rotation, DividedPositions> source;
    float scale_after_rounding;  // 1: none
  };

  void AddPart(int64_t begin, const v1::RopeSpec& rope);
  template <typename Element>
  static void FillPart(const Part& part, int64_t first, const RotationRows<Element>& rows,
                       int64_t pairs);

  const int64_t pairs_;
  std::vector<RopeFrequencies> frequencies_;  // a list a part
  std::vector<Part> parts_;                   // the first begins at 0
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ROPE_ROWS_H_
