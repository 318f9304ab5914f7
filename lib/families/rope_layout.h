// Where the cosines and sines of a RoPE table stand.
//
// A row has one pair (c, s) a frequency, rotary_dim/2 of them:
//   COS_SIN           [c0 c1 … s0 s1 …]
//   SIN_COS           [s0 s1 … c0 c1 …]
//   COS_AND_SIN_HALF  [c0 c1 …]                  and the sines as another tensor
//   COS_AND_SIN_FULL  [c0 c1 … c0 c1 …] (HALF) or [c0 c0 c1 c1 …] (INTERLEAVED), ditto
//   COS_AND_SIN_REPEATED  [c0 c1 … c0 c1 …], ditto
//   PAIRS             [c0 s0 c1 s1 …]
//   PAIRS_FULL        [c0 s0 c1 s1 … c0 s0 c1 s1 …]
//   ROTATION_MATRIX   [c0 -s0 s0 c0 c1 -s1 s1 c1 …]
// Which channels a pair rotates is `pairing`; only COS_AND_SIN_FULL depends on it.
#ifndef POSENC_LIB_FAMILIES_ROPE_LAYOUT_H_
#define POSENC_LIB_FAMILIES_ROPE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/families/family.h"
#include "lib/families/rope_rows.h"
#include "lib/families/selection.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// All of the above, the default first.
std::vector<v1::Layout> RopeRowLayouts();

// The tensors of a table with a row a position. REQUIRES: one of the layouts above.
std::vector<Tensor> RopeTensors(v1::Layout layout, v1::DType dtype, int64_t rotary_dim,
                                const Positions& positions);

// Plan::Fill and FillCold for such a table. REQUIRES: source.pairs() is rotary_dim / 2.
void FillRopeTensor(const RopeRows& source, v1::Pairing pairing, const TableShape& shape,
                    size_t tensor, int64_t begin, std::span<std::byte> out);
void FillColdRopeTensors(const RopeRows& source, v1::Pairing pairing, const TableShape& shape,
                         std::span<const TensorPart> parts);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ROPE_LAYOUT_H_
