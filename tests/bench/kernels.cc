// Filling tables, against storing the same bytes.
#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "google/protobuf/text_format.h"
#include "tests/bench/cases.h"
#include "tests/bench/memory.h"
#include "tests/support/tables.h"

namespace posenc::bench {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPageBytes = kMiB;

// What is filled, in text form.
struct What {
  std::string spec;
  std::string selection = "position_range { end: 131072 }";
  std::string format = "";
  int64_t element_bytes = 4;
};

class TableFill {
 public:
  explicit TableFill(const What& what) : element_bytes_(what.element_bytes) {
    v1::EncodingSpec spec;
    v1::Selection selection;
    v1::TensorFormat format;
    google::protobuf::TextFormat::ParseFromString(what.spec, &spec);
    google::protobuf::TextFormat::ParseFromString(what.selection, &selection);
    google::protobuf::TextFormat::ParseFromString(what.format, &format);
    canonical_ = std::make_unique<CanonicalSpec>(*Canonicalize(spec));
    shape_ = *FamilyOf(canonical_->proto()).Resolve(*canonical_, selection, format);
    plan_ = MakePlan();
  }

  std::shared_ptr<const Plan> MakePlan() const {
    return FamilyOf(canonical_->proto()).MakePlan(*canonical_);
  }

  // The first elements of every tensor, as many as `out` holds: one tensor behind the
  // other in memory that is in no cache, each thread its share of the rows.
  void FillCold(std::span<std::byte> out, const Plan& plan, int threads = 1) const {
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) {
      others.emplace_back([&, i] { FillShare(out, plan, i, threads); });
    }
    FillShare(out, plan, 0, threads);
    for (std::thread& other : others) other.join();
  }
  void FillCold(std::span<std::byte> out) const { FillCold(out, *plan_); }
  void FillColdByTwo(std::span<std::byte> out) const { FillCold(out, *plan_, 2); }

  // Whole pages of the first tensor into one page, as a stream does it.
  void FillPages(std::span<std::byte> page, int count) const {
    const Tensor& tensor = shape_.tensors.front();
    const int64_t unit = tensor.unit * element_bytes_;
    const int64_t size = std::max<int64_t>(1, std::ssize(page) / unit) * tensor.unit;
    int64_t address = tensor.origin;
    for (int i = 0; i < count; ++i) {
      if (address + size > tensor.origin + tensor.size()) address = tensor.origin;
      plan_->Fill(shape_, 0, address, page.first(static_cast<size_t>(size * element_bytes_)));
      address += size;
    }
  }

 private:
  void FillShare(std::span<std::byte> out, const Plan& plan, int thread, int threads) const {
    const size_t of_tensor = out.size() / shape_.tensors.size();
    std::vector<TensorPart> parts;
    for (size_t i = 0; i < shape_.tensors.size(); ++i) {
      const Tensor& tensor = shape_.tensors[i];
      const int64_t unit = tensor.unit * element_bytes_;
      const int64_t units = static_cast<int64_t>(of_tensor) / unit;
      const int64_t begin = units * thread / threads;
      const int64_t end = units * (thread + 1) / threads;
      parts.push_back({i, tensor.origin + begin * tensor.unit,
                       out.subspan(i * of_tensor + static_cast<size_t>(begin * unit),
                                   static_cast<size_t>((end - begin) * unit))});
    }
    plan.FillCold(shape_, parts);
  }

  const int64_t element_bytes_;
  std::unique_ptr<CanonicalSpec> canonical_;
  TableShape shape_;
  std::shared_ptr<const Plan> plan_;
};

const char kExact[] = "rope { head_dim: 128 rope_theta: 500000 arithmetic: ARITHMETIC_EXACT }";
const char kFloat32[] = "rope { head_dim: 128 rope_theta: 500000 }";
const char kGrid[] = "attention_grid { query_length: 4096 key_length: 4096 }";

std::string Layout(const std::string& name) { return "layout: LAYOUT_" + name; }

What Bf16(What what) {
  what.format += " dtype: DTYPE_BF16";
  what.element_bytes = 2;
  return what;
}

}  // namespace

void AddKernelCases(Rounds* rounds, const Region& region) {
  const std::span<std::byte> all = region.bytes();
  // Work on `size` MiB, so often that a run lasts: once would be a run of cold caches.
  const auto add = [&](const std::string& name, size_t size, const std::function<void()>& work) {
    const size_t repeats = 64 / size;
    rounds->Add(name, [=] {
      return Timed([&] {
               for (size_t i = 0; i < repeats; ++i) work();
             }) /
             static_cast<double>(repeats);
    });
  };
  for (const size_t size : {16u, 32u, 64u}) {
    add("stores " + std::to_string(size), size, [=] { StoreAll(all.first(size * kMiB)); });
  }

  // `size` MiB of a table: cold by one thread and by two, and in pooled pages.
  const auto add_table = [&](const std::string& name, const What& what, size_t size = 64) {
    const auto fill = std::make_shared<TableFill>(what);
    const std::span<std::byte> out = all.first(size * kMiB);
    add(name, size, [=] { fill->FillCold(out); });
    add(name + " 2 threads", size, [=] { fill->FillColdByTwo(out); });
    add(name + " pages", size,
        [=] { fill->FillPages(out.first(kPageBytes), static_cast<int>(size)); });
    return fill;
  };
  const auto exact = add_table("exact", {.spec = kExact});
  add_table("exact split", {.spec = kExact, .format = Layout("COS_AND_SIN_HALF")});
  add_table("exact full", {.spec = kExact, .format = Layout("COS_AND_SIN_FULL")});
  add_table("exact pairs", {.spec = kExact, .format = Layout("PAIRS")});
  add_table("exact bf16", Bf16({.spec = kExact}), 32);
  add_table("float32", {.spec = kFloat32});
  add_table("float32 bf16", Bf16({.spec = kFloat32}), 32);
  const auto sinusoidal = add_table(
      "sinusoidal",
      {.spec = "sinusoidal { d_model: 1024 }", .selection = "position_range { end: 4096 }"}, 16);
  add_table("alibi", {.spec = "alibi { num_heads: 32 }", .selection = kGrid});
  add_table("alibi bf16", Bf16({.spec = "alibi { num_heads: 32 }", .selection = kGrid}));
  add_table("t5", {.spec = "t5 { }", .selection = kGrid});

  const auto add_with_plan = [&](const std::string& name, const std::shared_ptr<TableFill>& fill) {
    add(name, 16, [=] { fill->FillCold(all.first(16 * kMiB), *fill->MakePlan()); });
  };
  add_with_plan("exact 16 with plan", exact);
  add_with_plan("sinusoidal with plan", sinusoidal);
  for (const size_t size : {1u, 4u}) {  // many small tables
    add("exact by " + std::to_string(size), 64, [=] {
      for (size_t at = 0; at < all.size(); at += size * kMiB) {
        exact->FillCold(all.subspan(at, size * kMiB));
      }
    });
  }
}

std::vector<Goal> KernelGoals() {
  std::vector<Goal> goals = {
      {"G1", "RoPE EXACT f32 cos_sin 64 MiB / NT stores", "exact", "stores 64", 0.95},
      {"G1", "RoPE EXACT f32 cos, sin 64 MiB / NT stores", "exact split", "stores 64", 0.95},
      {"G1", "RoPE EXACT f32 full 64 MiB / NT stores", "exact full", "stores 64", 0.95},
      {"G1", "RoPE EXACT f32 pairs 64 MiB / NT stores", "exact pairs", "stores 64", 0.95},
      {"G2", "RoPE EXACT f32 16 MiB with its plan / NT stores", "exact 16 with plan", "stores 16",
       0.90},
      {"G2", "RoPE EXACT f32 tables of 1 MiB / NT stores", "exact by 1", "stores 64", 0.95},
      {"G2", "RoPE EXACT f32 tables of 4 MiB / NT stores", "exact by 4", "stores 64", 0.95},
      {"G4", "RoPE FLOAT32 f32 64 MiB / NT stores", "float32", "stores 64", 0.45},
      {"G4", "RoPE FLOAT32 f32 64 MiB, 2 threads / NT stores", "float32 2 threads", "stores 64",
       0.75},
      {"G6", "RoPE EXACT bf16 32 MiB, 2 threads / NT stores", "exact bf16 2 threads", "stores 32",
       0.85},
      {"G6", "RoPE FAST bf16: not offered, it would round 1 of 100000 wrongly", "not offered",
       "stores 32", 0.95},
      {"", "RoPE EXACT bf16 32 MiB / NT stores", "exact bf16", "stores 32", 0},
      {"", "RoPE FLOAT32 bf16 32 MiB / NT stores", "float32 bf16", "stores 32", 0},
      {"", "RoPE FLOAT32 bf16 32 MiB, 2 threads / NT stores", "float32 bf16 2 threads", "stores 32",
       0},
      {"G9", "ALiBi f32 [32,4096,4096], 64 MiB of it / NT stores", "alibi", "stores 64", 0.95},
      {"G9", "ALiBi bf16, the same / NT stores", "alibi bf16", "stores 64", 0.95},
      {"G9", "T5 buckets [4096,4096] i32 64 MiB / NT stores", "t5", "stores 64", 0.95},
      {"G10", "sinusoidal [4096,1024] f32 / NT stores", "sinusoidal", "stores 16", 0.75},
      {"", "sinusoidal with its plan / NT stores", "sinusoidal with plan", "stores 16", 0},
  };
  const auto add_pages = [&](const std::string& what, const std::string& name,
                             const std::string& stores) {
    goals.push_back({"", what + ", in pooled pages / NT stores", name + " pages", stores, 0});
  };
  add_pages("RoPE EXACT f32 cos_sin", "exact", "stores 64");
  add_pages("RoPE EXACT f32 pairs", "exact pairs", "stores 64");
  add_pages("RoPE EXACT bf16", "exact bf16", "stores 32");
  add_pages("RoPE FLOAT32 f32", "float32", "stores 64");
  add_pages("RoPE FLOAT32 bf16", "float32 bf16", "stores 32");
  add_pages("ALiBi f32", "alibi", "stores 64");
  add_pages("T5 buckets", "t5", "stores 64");
  add_pages("sinusoidal", "sinusoidal", "stores 16");
  return goals;
}

}  // namespace posenc::bench
