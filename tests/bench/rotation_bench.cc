// How fast rows of cosines and sines are filled: pages of 1 MiB that stay in the
// cache (what a stream fills), whole tables, single rows (position_ids), and how
// long a plan takes. items/s are pairs, bytes/s what is written.
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/rotation.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

constexpr int64_t kPairs = 64;  // rotary_dim 128, theta 5e5: Llama 3.1

std::vector<float> InvFreq32() {
  std::vector<float> inv_freq;
  for (int i = 0; i < kPairs; ++i) {
    inv_freq.push_back(1.0f / PowF(5e5f, static_cast<float>(i) / kPairs));
  }
  return inv_freq;
}

std::vector<WideFloat> WideInvFreq() {
  std::vector<WideFloat> inv_freq;
  for (int i = 0; i < kPairs; ++i) {
    inv_freq.push_back(
        Pow(WideFloat::From(5e5), WideFloat::From(-static_cast<double>(i) / kPairs)));
  }
  return inv_freq;
}

// The layout of cos_sin_cache: cosines, then sines.
template <typename Element>
void Fill(benchmark::State& state, const Rotation& rotation, int64_t first, int64_t rows) {
  std::vector<Element> table(static_cast<size_t>(rows * 2 * kPairs));
  for (auto _ : state) {
    rotation.Fill(first, RotationRows<Element>{.count = rows,
                                               .stride = 2 * kPairs,
                                               .cos = table.data(),
                                               .sin = table.data() + kPairs});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * kPairs);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(table.size() * sizeof(Element)));
}

template <typename Element>
void Exact(benchmark::State& state) {
  Fill<Element>(state, Rotation::Exact(WideInvFreq(), 1.0), 65536, state.range(0));
}

template <typename Element>
void Float32(benchmark::State& state) {
  Fill<Element>(state, Rotation::Float32(InvFreq32(), 1.0), 65536, state.range(0));
}

// Rows of a page; of a table of 65536 positions; one.
BENCHMARK(Exact<float>)->Arg(2048)->Arg(65536)->Arg(1);
BENCHMARK(Exact<Bf16>)->Arg(4096);
BENCHMARK(Exact<F16>)->Arg(4096);
BENCHMARK(Exact<double>)->Arg(64);
BENCHMARK(Float32<float>)->Arg(2048)->Arg(65536)->Arg(1);
BENCHMARK(Float32<Bf16>)->Arg(4096);
BENCHMARK(Float32<F16>)->Arg(4096);
BENCHMARK(Float32<double>)->Arg(1024);

void MakeExact(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Rotation::Exact(WideInvFreq(), 1.0).pairs());
}
BENCHMARK(MakeExact)->Unit(benchmark::kMicrosecond);

void MakeFloat32(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Rotation::Float32(InvFreq32(), 1.0).pairs());
}
BENCHMARK(MakeFloat32)->Unit(benchmark::kMicrosecond);

void PowFloat(benchmark::State& state) {
  float exponent = 0;
  for (auto _ : state) {
    exponent += 0x1p-20f;
    benchmark::DoNotOptimize(PowF(5e5f, exponent));
  }
}
BENCHMARK(PowFloat);

}  // namespace
}  // namespace posenc
