// The rows of a line of rope.jsonl whose positions are places in a grid.
#ifndef POSENC_TESTS_SUPPORT_AXIAL_LINES_H_
#define POSENC_TESTS_SUPPORT_AXIAL_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/v1/encoding.pb.h"
#include "tests/support/golden.h"

namespace posenc::golden {

// Fails the test unless each float32 of `got` is within an ulp of its bits in
// `hex`, or within slack[i] where that is given: how far a value may be off
// because torch's own frequency is not the correctly rounded one.
void ExpectWithinAnUlp(const std::vector<uint32_t>& got, const Json& hex, const std::string& what,
                       const std::vector<double>& slack = {});

// Fails the test unless the axial_rope `spec` has the axes, the pairing, the
// frequencies (bit for bit) and, over a row-major grid, the rows (within an ulp:
// they are PyTorch's) of the line.
void ExpectAxialLine(const Json& line, v1::EncodingSpec spec);

}  // namespace posenc::golden

#endif  // POSENC_TESTS_SUPPORT_AXIAL_LINES_H_
