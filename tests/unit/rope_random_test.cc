// Laws over many random specs, reasonable and absurd: what Canonicalize accepts is
// a fixed point and has finite frequencies within the proven bound.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/family.h"
#include "lib/families/rope_frequencies.h"
#include "lib/families/rope_scaling.h"
#include "lib/numeric/rotation.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {
namespace {

using ::testing::Ge;
using ::testing::Le;

class SpecSource {
 public:
  v1::EncodingSpec Next() {
    v1::EncodingSpec spec;
    v1::RopeSpec* rope = spec.mutable_rope();
    if (OneIn(8)) rope->set_head_dim(Integer());
    if (!OneIn(8)) rope->set_rotary_dim(2 * Below(9));
    if (OneIn(10)) rope->set_partial_rotary_factor(Number());
    if (!OneIn(3)) rope->set_rope_theta(Number());
    if (OneIn(2)) rope->set_arithmetic(v1::ARITHMETIC_EXACT);
    if (OneIn(2)) rope->set_pairing(v1::PAIRING_INTERLEAVED);
    SetScaling(rope);
    return spec;
  }

  bool OneIn(int n) { return Below(n) == 0; }

 private:
  int64_t Below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(engine_); }

  int64_t Integer() {
    constexpr int64_t kHard[] = {0,
                                 -1,
                                 1,
                                 2,
                                 3,
                                 int64_t{1} << 31,
                                 (int64_t{1} << 31) + 1,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min()};
    return OneIn(4) ? kHard[Below(9)] : Below(1 << Below(24));
  }

  // Mostly what configs hold; sometimes any double at all, or what float32 cannot hold.
  double Number() {
    constexpr double kHard[] = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                1 + 0x1p-52,
                                1.001,
                                0x1p-126,
                                0x1p-127,
                                3.4028234663852886e38,
                                3.5e38,
                                1e300,
                                5e-324,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
    switch (Below(4)) {
      case 0:
        return kHard[Below(14)];
      case 1:
        return std::ldexp(1.0 + static_cast<double>(Below(1000)) / 1000,
                          static_cast<int>(Below(260)) - 130);
      default:
        return static_cast<double>(1 + Below(1 << Below(20))) / static_cast<double>(1 + Below(4));
    }
  }

  void SetScaling(v1::RopeSpec* rope) {
    switch (Below(9)) {
      case 0:
        break;
      case 1:
        rope->mutable_linear()->set_factor(Number());
        if (OneIn(2)) rope->mutable_linear()->set_divide_positions(true);
        break;
      case 2: {
        v1::YarnScaling* yarn = rope->mutable_yarn();
        yarn->set_factor(Number());
        yarn->set_original_max_position_embeddings(Integer());
        if (OneIn(2)) yarn->set_beta_fast(Number());
        if (OneIn(2)) yarn->set_beta_slow(Number());
        if (OneIn(2)) yarn->set_truncate(false);
        if (OneIn(4)) yarn->set_attention_factor(Number());
        if (OneIn(4)) yarn->set_mscale(Number());
        if (OneIn(4)) yarn->set_mscale_all_dim(Number());
        if (OneIn(4)) yarn->set_attn_factor(Number());
        break;
      }
      case 3: {
        v1::Llama3Scaling* llama3 = rope->mutable_llama3();
        llama3->set_factor(Number());
        llama3->set_low_freq_factor(Number());
        llama3->set_high_freq_factor(OneIn(4) ? llama3->low_freq_factor() : Number());
        llama3->set_original_max_position_embeddings(Integer());
        break;
      }
      case 4: {
        v1::DynamicScaling* dynamic = rope->mutable_dynamic();
        if (!OneIn(3)) dynamic->set_factor(Number());
        dynamic->set_max_position_embeddings(Integer());
        if (!OneIn(3)) dynamic->set_sequence_length(Integer());
        dynamic->set_growth(static_cast<v1::DynamicGrowth>(Below(5)));
        if (OneIn(4)) dynamic->set_attention_factor(Number());
        if (OneIn(4)) dynamic->set_trained_length(Integer());
        break;
      }
      case 5:
        if (OneIn(2)) {
          rope->mutable_ntk()->set_alpha(Number());
        } else {
          rope->mutable_ntk()->set_factor(Number());
          if (OneIn(2)) rope->mutable_ntk()->set_mixed_b(Number());
        }
        break;
      case 6: {
        v1::LongRopeScaling* longrope = rope->mutable_longrope();
        for (int64_t i = 0; i < rope->rotary_dim() / 2; ++i) {
          longrope->add_short_factor(Usual());
          longrope->add_long_factor(Usual());
        }
        longrope->set_original_max_position_embeddings(Integer());
        if (OneIn(2)) longrope->set_sequence_length(Integer());
        if (!OneIn(3)) longrope->set_factor(Number());
        if (OneIn(4)) longrope->set_attention_factor(Number());
        if (OneIn(4)) longrope->set_long_mscale(Number());
        if (OneIn(3)) longrope->set_short_then_long(true);
        if (OneIn(4)) longrope->set_long_attention_factor(Number());
        if (OneIn(4)) longrope->set_divide_positions(true);
        break;
      }
      case 7:
        if (OneIn(2)) rope->mutable_proportional()->set_factor(Number());
        if (OneIn(2)) rope->mutable_proportional()->set_partial_rotary_factor(Number());
        if (OneIn(2)) rope->mutable_proportional()->set_rotating_pairs(Below(9));
        break;
      default:
        rope->clear_rope_theta();
        for (int64_t i = 0; i < rope->rotary_dim() / 2; ++i) {
          rope->mutable_frequencies()->add_inv_freq(Usual());
        }
    }
  }

  // A list of some length is rarely all good if its numbers are wild.
  double Usual() { return OneIn(40) ? Number() : 0.125 * static_cast<double>(1 + Below(100)); }

  std::mt19937_64 engine_{20231107};
};

// A frequency that a table can be made of.
void ExpectUsable(double frequency) {
  EXPECT_THAT(frequency, Ge(0.0));
  EXPECT_THAT(frequency * 0x1p31, Le(kMaxAngle));
}

TEST(RopeRandomTest, AcceptedSpecsAreFixedPointsWithUsableFrequencies) {
  SpecSource source;
  int accepted = 0;
  int cases[32] = {};
  for (int i = 0; i < 20000; ++i) {
    const v1::EncodingSpec spec = source.Next();
    SCOPED_TRACE(spec.ShortDebugString());
    const absl::StatusOr<CanonicalSpec> once = Canonicalize(spec);
    if (!once.ok()) {
      EXPECT_EQ(once.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(once.status().message().substr(0, 5), "rope.") << once.status();
      continue;
    }
    ++accepted;
    const v1::RopeSpec& rope = once->proto().rope();
    ++cases[rope.scaling_case()];
    const absl::StatusOr<CanonicalSpec> twice = Canonicalize(once->proto());
    ASSERT_TRUE(twice.ok()) << twice.status();
    EXPECT_EQ(once->key(), twice->key());

    const double attention_factor = RopeAttentionFactor(rope);
    EXPECT_TRUE(std::isnormal(static_cast<float>(attention_factor))) << attention_factor;
    const std::vector<float> float32 = RopeInvFreqFloat32(rope);
    EXPECT_EQ(static_cast<int64_t>(float32.size()), rope.rotary_dim() / 2);
    for (const float frequency : float32) ExpectUsable(frequency);
    if (!source.OneIn(10)) continue;  // slower
    for (const WideFloat& frequency : RopeInvFreqExact(rope)) ExpectUsable(frequency.ToDouble());
    if (HasFailure()) return;
  }
  EXPECT_THAT(accepted, Ge(2000));
  for (const int scaling : {0, 10, 11, 12, 13, 14, 15, 16, 17}) {
    EXPECT_THAT(cases[scaling], Ge(50)) << "of oneof case " << scaling;
  }
}

}  // namespace
}  // namespace posenc
