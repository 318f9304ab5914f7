// Specs and selections of the encodings of grids in which some fields are changed
// at random to missing, extreme or contradictory ones: each is refused by name or gives a table
// whose parts equal the whole. Also a target for sanitizers.
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "lib/families/store.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kTries = 4000;
constexpr int64_t kLargestRow = 600;  // elements; larger plans take long to make
constexpr int64_t kLargestTable = 40000;

class RandomMessages {
 public:
  explicit RandomMessages(uint32_t seed) : random_(seed) {}

  size_t Below(size_t n) { return random_() % n; }

  // Sets or clears a field somewhere in `message`.
  void Change(Message* message) {
    const auto* descriptor = message->GetDescriptor();
    const FieldDescriptor* field =
        descriptor->field(static_cast<int>(Below(static_cast<size_t>(descriptor->field_count()))));
    const Reflection* access = message->GetReflection();
    if (Below(6) == 0) return access->ClearField(message, field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return Set(message, field);
    if (!field->is_repeated()) return Change(access->MutableMessage(message, field));
    const auto size = static_cast<size_t>(access->FieldSize(*message, field));
    if (size == 0 || Below(4) == 0) {
      access->AddMessage(message, field);
    } else {
      Change(access->MutableRepeatedMessage(message, field, static_cast<int>(Below(size))));
    }
  }

 private:
  int64_t Integer() {
    static const std::vector<int64_t> rare = {-1,
                                              0,
                                              65536,
                                              int64_t{1} << 20,
                                              int64_t{1} << 31,
                                              std::numeric_limits<int64_t>::max(),
                                              std::numeric_limits<int64_t>::min()};
    if (Below(40) == 0) return rare[Below(rare.size())];
    return static_cast<int64_t>(Below(3) == 0 ? 1 + Below(3) : 4 * (1 + Below(8)));
  }

  double Number() {
    static const std::vector<double> rare = {
        0.0, -1.0, 1e-300, 1e300, std::nan(""), std::numeric_limits<double>::infinity()};
    if (Below(40) == 0) return rare[Below(rare.size())];
    return 0.25 + static_cast<double>(Below(40000)) / 3;
  }

  void Set(Message* message, const FieldDescriptor* field) {
    const Reflection* access = message->GetReflection();
    const bool many = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return many ? access->AddInt64(message, field, Integer())
                    : access->SetInt64(message, field, Integer());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return many ? access->AddDouble(message, field, Number())
                    : access->SetDouble(message, field, Number());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return access->AddFloat(message, field, static_cast<float>(Number()));
      case FieldDescriptor::CPPTYPE_BOOL:
        return access->SetBool(message, field, Below(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return access->SetEnumValue(
            message, field,
            static_cast<int>(Below(static_cast<size_t>(field->enum_type()->value_count() + 1))));
      case FieldDescriptor::CPPTYPE_STRING:
        return access->SetString(message, field, std::string(Below(20), '\1'));
      default:
        return;
    }
  }

  std::mt19937 random_;
};

// Requests that make tables, to be changed.
struct Request {
  const char* spec;
  const char* selection;
};
constexpr Request kRequests[] = {
    {"sinusoidal_grid { d_model: 16 base_size: 4 max_grid_size: 8 }",
     "patch_grid { height: 3 width: 4 }"},
    {"sinusoidal_grid { preset: SINUSOIDAL_GRID_PRESET_COGVIDEOX d_model: 16 }",
     "patch_grid { frames: 2 height: 3 width: 4 }"},
    {"sinusoidal_grid { d_model: 9 blocks { axis: GRID_AXIS_X width: 4 } "
     "blocks { axis: GRID_AXIS_T width: 4 } }",
     "patch_grid { height: 3 width: 4 }"},
    {"detr_sine { num_position_features: 4 }",
     "token_mask { height: 2 width: 3 valid: '\\001\\001\\000\\001\\001\\000' }"},
    {"detr_sine { num_position_features: 4 normalize: false }",
     "patch_grid { height: 3 width: 4 }"},
    {"detr_learned { num_position_features: 2 row_embeddings: [1, 2, 3, 4] "
     "column_embeddings: [1, 2, 3, 4, 5, 6] }",
     "patch_grid { height: 2 width: 3 }"},
    {"anchor_sine { num_position_features: 4 }",
     "points { dimensions: 2 coordinates: [0.5, 0.25, 0.1, 0.9] }"},
    {"random_fourier { gaussian_matrix: [0.5, -0.25, 1, 0.75] }",
     "patch_grid { height: 3 width: 4 }"},
    {"random_fourier { gaussian_matrix: [0.5, -0.25, 1, 0.75] }",
     "points { dimensions: 2 coordinates: [1, 2, 3, 4] }"},
    {"perceiver_fourier { num_bands: 3 max_resolution: [4, 5] }",
     "patch_grid { height: 3 width: 4 }"},
    {"mrope { rope { rotary_dim: 16 } mrope_section: [2, 3, 3] }",
     "token_runs { runs { text: 3 } runs { image { height: 4 width: 2 } } "
     "runs { video { grid { frames: 2 height: 2 width: 4 } frame_interval: 2.5 } } }"},
    {"mrope { rope { rotary_dim: 16 } scheme: MROPE_SCHEME_XDROPE mrope_section: [4, 4] }",
     "axis_position_ids { axes { ids: [1, 2, 3] } axes { ids: [4, 5, 6] } }"},
    {"axial_rope { head_dim: 16 }", "patch_grid { height: 4 width: 4 }"},
    {"axial_rope { head_dim: 12 preset: AXIAL_ROPE_PRESET_ALLEGRO }",
     "patch_grid { frames: 2 height: 3 width: 4 }"},
    {"axial_rope { head_dim: 16 preset: AXIAL_ROPE_PRESET_TIMM_PIXEL }",
     "points { dimensions: 2 coordinates: [1, -2.5, 3, 4] }"},
};

bool IsSmall(const TableShape& shape) {
  double elements = 0;
  for (const Tensor& tensor : shape.tensors) {
    double size = 1;
    for (const int64_t dim : tensor.shape) size *= static_cast<double>(dim);
    if (tensor.unit > kLargestRow || (tensor.shape.size() > 1 && tensor.shape[1] > kLargestRow)) {
      return false;
    }
    elements += size;
  }
  return elements <= static_cast<double>(kLargestTable);
}

// A refusal names a field of the request.
void ExpectNamed(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), ": ")) << status;
}

TEST(GridRandomTest, EveryRequestIsRefusedByNameOrMakesATable) {
  RandomMessages random(20240611);
  int tables = 0;
  int refusals = 0;
  for (int i = 0; i < kTries; ++i) {
    const Request& request = kRequests[random.Below(std::size(kRequests))];
    v1::EncodingSpec spec = Spec(request.spec);
    v1::Selection selection = Select(request.selection);
    for (size_t n = random.Below(4); n > 0; --n) {
      const auto* field = spec.GetDescriptor()->FindFieldByNumber(spec.family_case());
      random.Change(spec.GetReflection()->MutableMessage(&spec, field));
    }
    if (random.Below(3) == 0) random.Change(&selection);
    const auto canonical = Canonicalize(spec);
    if (!canonical.ok()) {
      ExpectNamed(canonical.status());
      ++refusals;
      continue;
    }
    EXPECT_EQ(Canonicalize(canonical->proto())->key(), canonical->key()) << spec.DebugString();
    const Family& family = FamilyOf(spec);
    v1::TensorFormat format;
    const std::vector<v1::Layout> layouts = family.layouts();
    format.set_layout(layouts[random.Below(layouts.size())]);
    if (random.Below(2) == 0) {
      const std::vector<v1::DType> dtypes = family.dtypes();
      format.set_dtype(dtypes[random.Below(dtypes.size())]);
    }
    const auto shape = family.Resolve(*canonical, selection, format);
    if (!shape.ok()) {
      ExpectNamed(shape.status());
      ++refusals;
    } else if (IsSmall(*shape)) {
      ExpectPartsEqualWhole(spec, selection, format, 1 + static_cast<int64_t>(random.Below(5)));
      ++tables;
    }
  }
  EXPECT_GT(tables, kTries / 4);
  EXPECT_GT(refusals, kTries / 10);
}

}  // namespace
}  // namespace posenc::testing
