// Which axis of an M-RoPE position turns which frequency.
//
//   CONTIGUOUS   t … t h … h w … w, sections long
//   INTERLEAVED  t h w t h w …, an axis as long as its section lasts, else t
//   ERNIE        h w h w … t … t, with sections of h, w, t
//   XDROPE       the doubled row of channels, in pieces of twice the sections
// "Interleaved" says nothing of the pairing of channels, which is the RoPE's own.
// Reference: hf-rope 3.3; ggml-org/llama.cpp#19443, xLLM-AI/xllm#2120.
#ifndef POSENC_LIB_FAMILIES_MROPE_SCHEMES_H_
#define POSENC_LIB_FAMILIES_MROPE_SCHEMES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "lib/families/rotary_layout.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// Refuses sections that are not three (xdrope: 1 to 8) or do not sum to the
// number of frequencies. REQUIRES: spec.rope() and the scheme are canonical.
absl::Status CheckMropeSections(const v1::MropeSpec& spec);

// What a row is made of: value v has the frequency and the axis (0 t, 1 h, 2 w)
// of slot v. A slot is a pair, or for xdrope a channel.
struct MropeSlot {
  size_t axis;
  size_t frequency;
};

// REQUIRES: `spec` is canonical; the same below.
std::vector<MropeSlot> MropeSlots(const v1::MropeSpec& spec);

// Where slots stand in rows.
RotaryLayout MropeLayout(const v1::MropeSpec& spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_MROPE_SCHEMES_H_
