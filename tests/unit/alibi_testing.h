// What the tests of ALiBi share.
#ifndef POSENC_TESTS_UNIT_ALIBI_TESTING_H_
#define POSENC_TESTS_UNIT_ALIBI_TESTING_H_

#include <cstdint>
#include <vector>

#include "lib/families/alibi_slopes.h"
#include "tests/support/tables.h"

namespace posenc::testing {

// The slopes of a spec, which are tested by themselves in alibi_slopes_test.cc.
inline std::vector<float> Slopes(int64_t num_heads,
                                 v1::SlopeRounding rounding = v1::SLOPE_ROUNDING_PRESS,
                                 double alibi_bias_max = 8.0) {
  v1::EncodingSpec spec;
  spec.mutable_alibi()->set_num_heads(num_heads);
  spec.mutable_alibi()->set_alibi_bias_max(alibi_bias_max);
  spec.mutable_alibi()->set_slope_rounding(rounding);
  return AlibiSlopes(Canonicalize(spec)->proto().alibi());
}

}  // namespace posenc::testing

#endif  // POSENC_TESTS_UNIT_ALIBI_TESTING_H_
