// Plan::FillCold writes the bytes of Plan::Fill: whatever the family, the layout and the
// dtype, wherever the memory begins and however many parts it is told of at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/families/family.h"
#include "tests/support/tables.h"

namespace posenc {
namespace {

using testing::Format;
using testing::SelectGrid;
using testing::SelectIds;
using testing::SelectRange;
using testing::Spec;

constexpr size_t kLine = 64;
constexpr std::byte kUntouched{0xa5};

// `bytes` bytes that begin `offset` past a line of memory, with a line around them.
class Memory {
 public:
  Memory(size_t bytes, size_t offset) : memory_(bytes + 4 * kLine, kUntouched), bytes_(bytes) {
    const auto past = reinterpret_cast<uintptr_t>(memory_.data()) % kLine;
    start_ = 2 * kLine - past + offset;
  }

  std::span<std::byte> bytes() { return std::span(memory_).subspan(start_, bytes_); }

  bool IsUntouchedAround() const {
    const auto touched = [](std::byte byte) { return byte != kUntouched; };
    return std::none_of(memory_.begin(), memory_.begin() + static_cast<ptrdiff_t>(start_),
                        touched) &&
           std::none_of(memory_.begin() + static_cast<ptrdiff_t>(start_ + bytes_), memory_.end(),
                        touched);
  }

 private:
  std::vector<std::byte> memory_;
  size_t bytes_;
  size_t start_;
};

// Rows [skipped, end) of each tensor of a table, at once and one tensor at a time.
void ExpectColdIsHot(const std::string& spec_text, const v1::Selection& selection,
                     const std::string& format_text, int64_t skipped) {
  SCOPED_TRACE(spec_text + " / " + format_text);
  const absl::StatusOr<CanonicalSpec> spec = Canonicalize(Spec(spec_text));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const Family& family = FamilyOf(spec->proto());
  const absl::StatusOr<TableShape> shape = family.Resolve(*spec, selection, Format(format_text));
  ASSERT_TRUE(shape.ok()) << shape.status();
  const std::shared_ptr<const Plan> plan = family.MakePlan(*spec);

  std::vector<std::vector<std::byte>> expected;
  std::vector<int64_t> begins;
  for (size_t i = 0; i < shape->tensors.size(); ++i) {
    const Tensor& tensor = shape->tensors[i];
    const size_t element_bytes = tensor.dtype == v1::DTYPE_F64 ? 8
                                 : tensor.dtype == v1::DTYPE_F32 || tensor.dtype == v1::DTYPE_I32
                                     ? 4
                                     : 2;
    begins.push_back(tensor.origin + skipped * tensor.unit);
    const auto size = static_cast<size_t>(tensor.size() - skipped * tensor.unit);
    expected.emplace_back(size * element_bytes);
    plan->Fill(*shape, i, begins[i], expected[i]);
  }
  for (const size_t offset : {size_t{0}, size_t{16}, size_t{40}}) {
    SCOPED_TRACE(offset);
    std::vector<Memory> memory;
    std::vector<TensorPart> parts;
    memory.reserve(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      memory.emplace_back(expected[i].size(), offset);
      parts.push_back({i, begins[i], memory[i].bytes()});
    }
    const auto check = [&] {
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(memory[i].bytes(), expected[i])) << "tensor " << i;
        EXPECT_TRUE(memory[i].IsUntouchedAround()) << "tensor " << i;
        std::ranges::fill(memory[i].bytes(), kUntouched);
      }
    };
    plan->FillCold(*shape, parts);
    check();
    for (const TensorPart& part : parts) plan->FillCold(*shape, {&part, 1});
    check();
  }
}

const std::vector<std::string> kFloats = {"DTYPE_F32", "DTYPE_F64", "DTYPE_F16", "DTYPE_BF16"};

TEST(FillColdTest, RopeOfEveryLayout) {
  for (const char* spec : {"rope { head_dim: 128 rope_theta: 500000 }",
                           "rope { head_dim: 128 arithmetic: ARITHMETIC_EXACT }",
                           "rope { head_dim: 64 pairing: PAIRING_INTERLEAVED }",
                           "rope { head_dim: 96 arithmetic: ARITHMETIC_EXACT }",
                           "rope { head_dim: 46 pairing: PAIRING_INTERLEAVED }"}) {
    for (const char* layout : {"COS_SIN", "SIN_COS", "COS_AND_SIN_HALF", "COS_AND_SIN_FULL",
                               "COS_AND_SIN_REPEATED", "PAIRS", "ROTATION_MATRIX", "INV_FREQ"}) {
      for (const std::string& dtype : kFloats) {
        const std::string format = "layout: LAYOUT_" + std::string(layout) + " dtype: " + dtype;
        ExpectColdIsHot(spec, SelectRange(1000, 1150), format, 3);
      }
    }
  }
}

TEST(FillColdTest, RopeOfPositionIds) {
  std::vector<int64_t> ids = {5, 0, 70000};
  for (int64_t position = 900; position < 1000; ++position) ids.push_back(position);
  for (const std::string layout : {"LAYOUT_COS_SIN", "LAYOUT_COS_AND_SIN_FULL"}) {
    ExpectColdIsHot("rope { head_dim: 128 }", SelectIds(ids), "layout: " + layout, 1);
  }
}

TEST(FillColdTest, SinusoidsOfEveryLayout) {
  for (const char* options : {"", "arithmetic: ARITHMETIC_FLOAT32", "padding_row: 70"}) {
    for (const char* layout : {"INTERLEAVED", "HALF_SIN_COS", "HALF_COS_SIN", "SIN_ONLY"}) {
      for (const char* width : {"512", "96", "45"}) {
        const std::string spec = "sinusoidal { d_model: " + std::string(width) +
                                 " layout: SINUSOIDAL_LAYOUT_" + layout + " " + options + " }";
        for (const std::string& dtype : kFloats) {
          ExpectColdIsHot(spec, SelectRange(60, 170), "dtype: " + dtype, 2);
        }
      }
    }
  }
  ExpectColdIsHot("sinusoidal { d_model: 64 row_order: ROW_ORDER_DESCENDING }", SelectRange(0, 100),
                  "", 0);
}

TEST(FillColdTest, BiasesWhoseRowsShift) {
  for (const v1::Selection& grid :
       {SelectGrid(100, 128), SelectGrid(7, 33, 5), SelectGrid(1, 64)}) {
    for (const std::string& dtype : kFloats) {
      ExpectColdIsHot("alibi { num_heads: 3 }", grid, "dtype: " + dtype, 5);
      ExpectColdIsHot("alibi { num_heads: 3 }", grid, "layout: LAYOUT_BIAS_VECTOR dtype: " + dtype,
                      5);
    }
    ExpectColdIsHot("alibi { num_heads: 3 }", grid, "layout: LAYOUT_SLOPES", 1);
    ExpectColdIsHot("alibi { num_heads: 3 form: ALIBI_FORM_KEY_POSITION }", grid, "", 5);
    ExpectColdIsHot("t5 { }", grid, "", 5);
    ExpectColdIsHot("t5 { }", grid, "layout: LAYOUT_RELATIVE_POSITION", 5);
  }
  ExpectColdIsHot("t5 { }", SelectIds({1, 5, 3}), "", 1);
}

}  // namespace
}  // namespace posenc
