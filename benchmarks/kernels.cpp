// Every SIMD kernel by every target that this CPU has: how fast it makes what it makes, in bytes of decoded
// values a second. LEVELS and NUMERIC are measured as codecs, on chunks of a book and of a series made here.
//
//   python3 dev.py bench kernels [--benchmark_filter=levels]     (google-benchmark's options)
#include <benchmark/benchmark.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/base/scratch.h"
#include "core/codec/levels/levels.h"
#include "core/codec/numeric/numeric.h"
#include "core/simd/bitpack.h"
#include "core/simd/half.h"
#include "core/simd/planes.h"
#include "core/simd/xor_rows.h"
#include "hwy/highway.h"

namespace cdd {
namespace {

constexpr std::size_t kItems = 9600;  // 64 rows of 150: within the L1 and L2 caches, as chunks are
constexpr std::uint32_t kDims[] = {50, 3};

using Buffer = std::vector<std::byte>;
// Something to time, which makes so many bytes.
using Run = std::function<void()>;
void add(const std::string& name, std::size_t bytes, const Run& run) {
  for (std::int64_t left = HWY_SUPPORTED_TARGETS & HWY_TARGETS; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    const auto body = [=](benchmark::State& state) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      for (auto _ : state) {
        run();
        benchmark::ClobberMemory();
      }
      state.SetBytesProcessed(static_cast<std::int64_t>(bytes * state.iterations()));
      hwy::SetSupportedTargetsForTest(0);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    };
    benchmark::RegisterBenchmark((name + "/" + hwy::TargetName(target)).c_str(), body);
  }
}

// Memory that lives as long as the benchmarks, which run after main() has described them.
std::byte* room(std::size_t bytes) { return (new Buffer(bytes + kScratchPadding))->data(); }

std::byte* random_room(std::size_t bytes) {
  std::byte* const data = room(bytes);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(random());
  return data;
}

template <class T>
T* as(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

void add_bitpack() {
  std::byte* const in = random_room(8 * kItems);
  std::byte* const out = room(8 * kItems);
  for (const unsigned width : {3u, 8u, 13u, 24u}) {
    add("unpack32 " + std::to_string(width) + " bits", 4 * kItems,
        [=] { simd::unpack32(in, kItems, width, 7, as<std::uint32_t>(out)); });
  }
  for (const unsigned width : {5u, 20u, 45u}) {
    add("unpack64 " + std::to_string(width) + " bits", 8 * kItems,
        [=] { simd::unpack64(in, kItems, width, 7, as<std::uint64_t>(out)); });
  }
}

void add_planes_and_xor() {
  std::byte* const in = random_room(8 * kItems);
  std::byte* const out = room(8 * kItems);
  for (const std::size_t bytes : {2, 4, 8}) {
    const std::string items = std::to_string(bytes) + " bytes";
    add("join_planes " + items, bytes * kItems, [=] { simd::join_planes(in, kItems, kItems, bytes, out); });
    const simd::XorRows shape{64, 150, bytes, 32};
    add("join_xor_rows " + items, bytes * kItems, [=] { simd::join_xor_rows(shape, in, 0, 64, out); });
  }
}

void add_half() {
  std::byte* const halves = random_room(2 * kItems);
  std::byte* const floats = room(4 * kItems);
  const auto* const in = as<std::uint16_t>(halves);
  auto* const masks = as<std::uint32_t>(room(4 * 150));
  auto* const mids = as<float>(room(4 * 64));
  for (std::size_t i = 0; i < 150; i += 3) masks[i] = ~0u;
  for (std::size_t i = 0; i < 64; ++i) mids[i] = 4000.0f;
  add("half_to_float", 4 * kItems, [=] { simd::half_to_float(in, kItems, floats); });
  add("float_to_half", 2 * kItems,
      [=] { simd::float_to_half(as<float>(floats), kItems, as<std::uint16_t>(halves)); });
  add("scale_half_rows", 4 * kItems, [=] {
    simd::scale_half_rows({64, 150, masks, mids, 2.0f}, in, floats);
  });
}

// A chunk of `rows` as the codec stores it, decoded whole.
void add_codec(const std::string& name, const Codec& codec, const RowLayout& layout, const Buffer& rows) {
  const auto n_rows = static_cast<std::uint32_t>(rows.size() / layout.row_bytes());
  std::byte* const payload = room(codec.bound(layout, n_rows));
  std::byte* const out = room(rows.size());
  EncodeContext context;
  const std::size_t size =
      codec.encode(layout, rows, n_rows, context, {payload, codec.bound(layout, n_rows)});
  add(name, rows.size(), [=, &codec] {
    codec.decode_rows_into(layout, n_rows, context.flags, {payload, size}, {0, n_rows}, out);
  });
}

// Prices on a ladder that moves now and then, and `changes` sizes that change in each row.
Buffer book_rows(std::size_t n_rows, unsigned changes, unsigned moves_in_100) {
  std::mt19937 random(2);
  std::vector<float> sizes(2000);
  for (float& size : sizes) size = static_cast<float>(random() % 400);
  Buffer rows(n_rows * 600);
  int best = 1000;
  for (std::size_t r = 0; r < n_rows; ++r) {
    if (random() % 100 < moves_in_100) best += random() % 2 == 0 ? 1 : -1;
    for (unsigned i = 0; i < changes; ++i) {
      sizes[static_cast<std::size_t>(best) + random() % 50 - 25] = static_cast<float>(random() % 400);
    }
    for (int j = 0; j < 50; ++j) {
      const int price = j < 25 ? best + 1 + j : best - (j - 25);
      const float size = sizes[static_cast<std::size_t>(price)];
      const float items[3] = {static_cast<float>(price) * 0.25f, size, 1 + size / 4};
      std::memcpy(rows.data() + (r * 50 + static_cast<std::size_t>(j)) * 12, items, sizeof items);
    }
  }
  return rows;
}

template <class T>
Buffer walk(std::size_t n, double start, double step) {
  std::mt19937 random(3);
  Buffer rows(n * sizeof(T));
  double value = start;
  for (std::size_t i = 0; i < n; ++i) {
    value += step * (static_cast<double>(random() % 21) - 10);
    store<T>(rows.data() + i * sizeof(T), static_cast<T>(value));
  }
  return rows;
}

void add_codecs() {
  const RowLayout book(Kind::Float32, kDims);
  add_codec("levels quiet book", kLevelsCodec, book, book_rows(256, 2, 5));
  add_codec("levels busy book", kLevelsCodec, book, book_rows(256, 10, 30));
  add_codec("levels redrawn book", kLevelsCodec, book, book_rows(64, 200, 100));
  add_codec("numeric int64 times", kNumericCodec, RowLayout(Kind::Int64, {}),
            walk<std::int64_t>(4096, 1e12, 7));
  add_codec("numeric float64 prices", kNumericCodec, RowLayout(Kind::Float64, {}),
            walk<double>(4096, 4000, 0.25));
  add_codec("numeric float32 prices", kNumericCodec, RowLayout(Kind::Float32, {}),
            walk<float>(4096, 4000, 0.25));
}

}  // namespace
}  // namespace cdd

int main(int argc, char** argv) {
  cdd::add_bitpack();
  cdd::add_planes_and_xor();
  cdd::add_half();
  cdd::add_codecs();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
