// Filling tables, against storing the same bytes.
#include <immintrin.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "tests/bench/cases.h"
#include "tests/bench/memory.h"
#include "tests/support/tables.h"

namespace posenc::bench {
namespace {

constexpr size_t kPageBytes = size_t{1} << 20;

// A whole table's Fill, page by page into one region, as the engine calls it.
class TableFill {
 public:
  TableFill(const std::string& spec, const std::string& selection, const std::string& format) {
    v1::EncodingSpec spec_proto;
    v1::Selection selection_proto;
    v1::TensorFormat format_proto;
    google::protobuf::TextFormat::ParseFromString(spec, &spec_proto);
    google::protobuf::TextFormat::ParseFromString(selection, &selection_proto);
    google::protobuf::TextFormat::ParseFromString(format, &format_proto);
    canonical_ = std::make_unique<CanonicalSpec>(*Canonicalize(spec_proto));
    shape_ = *FamilyOf(canonical_->proto()).Resolve(*canonical_, selection_proto, format_proto);
    plan_ = MakePlan();
  }

  std::shared_ptr<const Plan> MakePlan() const {
    return FamilyOf(canonical_->proto()).MakePlan(*canonical_);
  }

  // As many bytes as `out` holds, from the table's first on; wraps around.
  void Run(std::span<std::byte> out, int64_t element_bytes, const Plan* plan = nullptr) const {
    if (plan == nullptr) plan = plan_.get();
    const Tensor& tensor = shape_.tensors.front();
    const int64_t units =
        std::max<int64_t>(1, static_cast<int64_t>(kPageBytes) / (tensor.unit * element_bytes));
    const int64_t page = units * tensor.unit;
    int64_t address = 0;
    for (size_t at = 0; at < out.size();) {
      const size_t bytes = std::min(out.size() - at, static_cast<size_t>(page * element_bytes));
      if (address + page > tensor.size()) address = 0;
      plan->Fill(shape_, 0, address, out.subspan(at, bytes));
      at += bytes;
      address += page;
    }
  }

 private:
  std::unique_ptr<CanonicalSpec> canonical_;
  TableShape shape_;
  std::shared_ptr<const Plan> plan_;
};

}  // namespace

void AddKernelCases(Rounds* rounds, const Region& region) {
  const std::span<std::byte> out = region.bytes();
  rounds->Add("stores", [=] { return Timed([=] { StoreAll(out); }); });
  rounds->Add("stores 16 MiB", [=] { return Timed([=] { StoreAll(out.first(16u << 20)); }); });

  const auto add = [&](const std::string& name, const std::string& spec,
                       const std::string& selection, const std::string& format,
                       int64_t element_bytes) {
    const auto fill = std::make_shared<TableFill>(spec, selection, format);
    rounds->Add(name, [=] { return Timed([=] { fill->Run(out, element_bytes); }); });
    // As the server does it: into a page that was used before, 64 times.
    rounds->Add(name + " in pages", [=] {
      return Timed([=] {
        for (int i = 0; i < 64; ++i) fill->Run(out.first(kPageBytes), element_bytes);
      });
    });
    return fill;
  };
  const std::string positions = "position_range { end: 131072 }";
  const std::string exact =
      "rope { head_dim: 128 rope_theta: 500000 arithmetic: ARITHMETIC_EXACT }";
  const std::string float32 = "rope { head_dim: 128 rope_theta: 500000 }";
  const auto rope = add("rope exact f32", exact, positions, "", 4);
  rounds->Add("rope exact f32 16 MiB with plan", [=] {
    return Timed([=] {
      const auto plan = rope->MakePlan();
      rope->Run(out.first(16u << 20), 4, plan.get());
    });
  });
  add("rope exact pairs f32", exact, positions, "layout: LAYOUT_PAIRS", 4);
  add("rope exact full f32", exact, positions, "layout: LAYOUT_COS_AND_SIN_FULL", 4);
  add("rope exact bf16", exact, positions, "dtype: DTYPE_BF16", 2);
  add("rope float32 f32", float32, positions, "", 4);
  add("rope float32 bf16", float32, positions, "dtype: DTYPE_BF16", 2);
  add("sinusoidal", "sinusoidal { d_model: 1024 }", "position_range { end: 4096 }", "", 4);
  const std::string grid = "attention_grid { query_length: 4096 key_length: 4096 }";
  add("alibi f32", "alibi { num_heads: 32 }", grid, "", 4);
  add("alibi bf16", "alibi { num_heads: 32 }", grid, "dtype: DTYPE_BF16", 2);
  add("t5", "t5 { }", grid, "", 4);
}

std::vector<Goal> KernelGoals() {
  return {
      {"G1", "RoPE EXACT f32 cos_sin 64 MiB / plain NT stores", "rope exact f32", "stores", 0.95},
      {"G1", "RoPE EXACT f32 pairs 64 MiB / plain NT stores", "rope exact pairs f32", "stores",
       0.95},
      {"G1", "RoPE EXACT f32 full 64 MiB / plain NT stores", "rope exact full f32", "stores", 0.95},
      {"", "RoPE EXACT f32 cos_sin, in pooled pages / NT stores", "rope exact f32 in pages",
       "stores", 0},
      {"", "RoPE EXACT f32 pairs, in pooled pages / NT stores", "rope exact pairs f32 in pages",
       "stores", 0},
      {"", "RoPE EXACT bf16, in pooled pages / NT stores", "rope exact bf16 in pages", "stores", 0},
      {"", "RoPE FLOAT32 f32, in pooled pages / NT stores", "rope float32 f32 in pages", "stores",
       0},
      {"", "RoPE FLOAT32 bf16, in pooled pages / NT stores", "rope float32 bf16 in pages", "stores",
       0},
      {"", "ALiBi f32, in pooled pages / NT stores", "alibi f32 in pages", "stores", 0},
      {"", "T5 buckets, in pooled pages / NT stores", "t5 in pages", "stores", 0},
      {"", "sinusoidal, in pooled pages / NT stores", "sinusoidal in pages", "stores", 0},
      {"G2", "RoPE EXACT f32 16 MiB with its plan / plain NT stores",
       "rope exact f32 16 MiB with plan", "stores 16 MiB", 0.90},
      {"G4", "RoPE FLOAT32 f32 64 MiB, 1 thread / plain NT stores", "rope float32 f32", "stores",
       0.45},
      {"", "RoPE FLOAT32 bf16 64 MiB / plain NT stores", "rope float32 bf16", "stores", 0},
      {"", "RoPE EXACT bf16 64 MiB, 1 thread / plain NT stores", "rope exact bf16", "stores", 0},
      {"G9", "ALiBi f32 [32,4096,4096], 64 MiB of it / NT stores", "alibi f32", "stores", 0.95},
      {"G9", "ALiBi bf16, the same / plain NT stores", "alibi bf16", "stores", 0.95},
      {"G9", "T5 buckets [4096,4096] i32 64 MiB / plain NT stores", "t5", "stores", 0.95},
      {"G10", "sinusoidal [4096,1024] f32 / plain NT stores", "sinusoidal", "stores", 0.75},
  };
}

}  // namespace posenc::bench
