// ALiBi, T5 and sinusoids over thousands of random specs: whatever is not refused is
// idempotent, computes in parts what it computes at once, and never crashes.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(limit));
  }

  // Small sizes mostly, so that most specs are accepted; then what breaks things.
  int64_t Integer() {
    static constexpr int64_t kOdd[] = {0,     -1,    -7,        1,         2,        4096,
                                       65536, 65537, INT32_MAX, INT64_MIN, INT64_MAX};
    return Below(5) > 0 ? 1 + Below(24) : kOdd[Below(std::size(kOdd))];
  }
  double Double() {
    static const double kOdd[] = {0.0,
                                  -0.0,
                                  -1.0,
                                  1e-300,
                                  1e300,
                                  1e-45,
                                  0.1,
                                  1e9,
                                  std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};
    return Below(5) > 0 ? 0.25 * static_cast<double>(1 + Below(64)) : kOdd[Below(std::size(kOdd))];
  }

 private:
  std::mt19937 engine_;
};

void SetField(Random* random, Message* message, const FieldDescriptor* field) {
  const Reflection& set = *message->GetReflection();
  if (field->is_repeated()) {
    for (int64_t i = random->Below(20); i > 0; --i) set.AddDouble(message, field, random->Double());
    return;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return set.SetInt64(message, field, random->Integer());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return set.SetDouble(message, field, random->Double());
    case FieldDescriptor::CPPTYPE_BOOL:
      return set.SetBool(message, field, random->Below(2) == 1);
    case FieldDescriptor::CPPTYPE_ENUM:
      return set.SetEnumValue(
          message, field, static_cast<int>(random->Below(field->enum_type()->value_count() + 1)));
    default:
      FAIL() << "a field of another type: " << field->full_name();
  }
}

// Each field is set one time in three.
void SetFields(Random* random, Message* message) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (random->Below(3) == 0) SetField(random, message, field);
  }
}

v1::FloatTable RandomTable(Random* random, int64_t num_buckets) {
  v1::FloatTable table;
  const int64_t heads = 1 + random->Below(3);
  table.add_shape(num_buckets);
  table.add_shape(heads);
  for (int64_t i = 0; i < std::clamp<int64_t>(num_buckets, 0, 300) * heads; ++i) {
    table.add_values(static_cast<float>(random->Below(100)));
  }
  return table;
}

v1::EncodingSpec RandomSpec(Random* random, v1::EncodingSpec::FamilyCase family) {
  v1::EncodingSpec spec;
  if (family == v1::EncodingSpec::kAlibi) {
    spec.mutable_alibi()->set_num_heads(1 + random->Below(12));
    SetFields(random, spec.mutable_alibi());
  } else if (family == v1::EncodingSpec::kT5) {
    SetFields(random, spec.mutable_t5());
    if (random->Below(2) == 0) {
      const int64_t buckets = spec.t5().has_num_buckets() ? spec.t5().num_buckets() : 32;
      *spec.mutable_t5()->mutable_bias_table() = RandomTable(random, buckets);
    }
  } else {
    spec.mutable_sinusoidal()->set_d_model(1 + random->Below(16));
    SetFields(random, spec.mutable_sinusoidal());
  }
  return spec;
}

// One of each kind, since which one an encoding takes depends on its fields.
std::vector<v1::Selection> RandomSelections(Random* random) {
  std::vector<v1::Selection> selections = {
      SelectGrid(random->Below(6), random->Below(9), random->Below(100)),
      SelectRange(-random->Below(5), random->Below(8)),
      SelectIds({random->Below(100), -random->Below(100), random->Below(1 << 30)})};
  v1::Selection& mask = selections.emplace_back();
  mask.mutable_token_mask()->set_height(2);
  mask.mutable_token_mask()->set_width(5);
  for (int i = 0; i < 10; ++i) {
    mask.mutable_token_mask()->mutable_valid()->push_back(random->Below(2) == 0 ? '\0' : '\1');
  }
  v1::Selection& patches = selections.emplace_back();
  patches.mutable_patch_grid()->set_height(random->Below(4));
  patches.mutable_patch_grid()->set_width(1 + random->Below(3));
  v1::Selection& points = selections.emplace_back();
  points.mutable_points()->set_dimensions(1);
  for (int i = 0; i < 3; ++i) points.mutable_points()->add_coordinates(random->Double());
  return selections;
}

// How many tables were made.
int CheckSpec(Random* random, const v1::EncodingSpec& spec) {
  const absl::StatusOr<CanonicalSpec> once = Canonicalize(spec);
  if (!once.ok()) {
    EXPECT_EQ(once.status().code(), absl::StatusCode::kInvalidArgument) << once.status();
    return 0;
  }
  const absl::StatusOr<CanonicalSpec> twice = Canonicalize(once->proto());
  EXPECT_TRUE(twice.ok()) << twice.status() << " of " << once->proto().ShortDebugString();
  if (twice.ok()) {
    EXPECT_EQ(twice->key(), once->key()) << spec.ShortDebugString();
  }
  const Family& family = FamilyOf(spec);
  int tables = 0;
  for (const v1::Selection& selection : RandomSelections(random)) {
    v1::TensorFormat format;
    const auto layouts = family.layouts();
    format.set_layout(
        layouts[static_cast<size_t>(random->Below(static_cast<int64_t>(layouts.size())))]);
    const absl::StatusOr<TableShape> shape = family.Resolve(*once, selection, format);
    if (!shape.ok()) {
      EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument) << shape.status();
      continue;
    }
    // The largest widths and head counts are for the shape only.
    if (shape->tensors[0].unit > 1000 || shape->tensors[0].size() > 20000) continue;
    ExpectPartsEqualWhole(spec, selection, format, 1 + random->Below(9));
    ++tables;
  }
  return tables;
}

class BiasRandomTest : public ::testing::TestWithParam<v1::EncodingSpec::FamilyCase> {};

TEST_P(BiasRandomTest, WhatIsNotRefusedIsIdempotentAndTheSameInParts) {
  Random random(20261130);
  int tables = 0;
  for (int i = 0; i < 1500; ++i) {
    const v1::EncodingSpec spec = RandomSpec(&random, GetParam());
    SCOPED_TRACE(spec.ShortDebugString());
    tables += CheckSpec(&random, spec);
    if (HasFailure()) return;
  }
  EXPECT_GT(tables, 100);  // or the generator has gone wild
}

INSTANTIATE_TEST_SUITE_P(Families, BiasRandomTest,
                         ::testing::Values(v1::EncodingSpec::kAlibi, v1::EncodingSpec::kT5,
                                           v1::EncodingSpec::kSinusoidal));

}  // namespace
}  // namespace posenc::testing
