// The values of a line of rope.jsonl: frequencies and rows of the pipeline whose
// every step is correctly rounded (ARITHMETIC_FLOAT32).
#ifndef POSENC_TESTS_SUPPORT_ROPE_LINES_H_
#define POSENC_TESTS_SUPPORT_ROPE_LINES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/v1/encoding.pb.h"
#include "tests/support/golden.h"

namespace posenc::golden {

// What `tables` of a spec must be at one row of a line.
struct RopeRow {
  int64_t position;
  std::optional<int64_t> sequence_length;  // that the table is made for
  std::vector<uint32_t> cos;               // float32 bits, a value a frequency
  std::vector<uint32_t> sin;
  std::vector<uint32_t> inv_freq;  // of that length; empty: the line's own
};

// inv_freq_hex, or inv_freq_cr_hex where torch's pow is not correctly rounded.
std::vector<uint32_t> InvFreqOf(const Json& object);

// The rows of a line, their cos_cr and sin_cr patches applied. Rows of a grid or
// of several axes are left out.
std::vector<RopeRow> RowsOf(const Json& line);

// Fails the test unless the INV_FREQ table of the spec has these bits.
void ExpectInvFreq(const v1::EncodingSpec& spec, const std::vector<uint32_t>& expected);

// Fails the test unless the spec's cos and sin at the row's position have its bits.
void ExpectRopeRow(const v1::EncodingSpec& spec, const RopeRow& row);

}  // namespace posenc::golden

#endif  // POSENC_TESTS_SUPPORT_ROPE_LINES_H_
