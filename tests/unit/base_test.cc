#include "gtest/gtest.h"
#include "lib/base/canonical_key.h"
#include "lib/base/edit_distance.h"
#include "lib/base/shorten.h"
#include "lib/base/status.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc {
namespace {

TEST(CanonicalKeyTest, UnsetAndDefaultDiffer) {
  v1::AlibiSpec unset;
  v1::AlibiSpec zero;
  zero.set_num_heads(0);
  EXPECT_NE(CanonicalKey(unset), CanonicalKey(zero));
}

TEST(CanonicalKeyTest, IsTheDocumentedBytes) {
  v1::AlibiSpec spec;
  spec.set_num_heads(8);
  const std::string expected(
      "\x01\0\0\0"
      "\x01\0\0\0\0\0\0\0"
      "\x08\0\0\0\0\0\0\0"
      "\0\0\0\0",
      24);
  EXPECT_EQ(CanonicalKey(spec), expected);
}

TEST(EditDistanceTest, CountsSlips) {
  EXPECT_EQ(EditDistance("rope_theta", "rope_theta"), 0U);
  EXPECT_EQ(EditDistance("rope_tehta", "rope_theta"), 1U);  // two neighbours exchanged
  EXPECT_EQ(EditDistance("rope_tetha", "rope_theta"), 2U);
  EXPECT_EQ(EditDistance("rope_scalling", "rope_scaling"), 1U);
  EXPECT_EQ(EditDistance("theta", "beta"), 2U);
  EXPECT_EQ(EditDistance("", "rope"), 4U);
  EXPECT_EQ(EditDistance("rope", ""), 4U);
  EXPECT_EQ(EditDistance("", ""), 0U);
}

TEST(FieldErrorTest, CarriesABadRequestDetail) {
  const absl::Status status = FieldError("rope.rotary_dim", "must be even, got 65");
  EXPECT_EQ(status.message(), "rope.rotary_dim: must be even, got 65");
  v1::BadRequest detail;
  ASSERT_TRUE(detail.ParseFromString(
      std::string(*status.GetPayload("type.googleapis.com/google.rpc.BadRequest"))));
  ASSERT_EQ(detail.field_violations_size(), 1);
  EXPECT_EQ(detail.field_violations(0).field(), "rope.rotary_dim");
}

TEST(FieldErrorTest, AboutAHugeValueIsShort) {
  const std::string huge(100'000, 'x');
  const absl::Status status = FieldError(huge, huge);
  EXPECT_LE(status.message().size(), 1024u);
  EXPECT_LE(status.GetPayload("type.googleapis.com/google.rpc.BadRequest")->size(), 1024u);
}

TEST(ShortenTest, NeverSplitsACharacter) {
  EXPECT_EQ(Shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(Shorten("abcdefg", 6), "abc...");
  EXPECT_EQ(Shorten("ab\u00e9defg", 6), "ab...");  // U+00E9 takes bytes 2 and 3
  EXPECT_EQ(Shorten("a\u00e9defgh", 6), "a\u00e9...");
}

}  // namespace
}  // namespace posenc
