// The constants of the Fast profile's cost model (core/codec/choose.cpp): what a decoding step takes, in
// nanoseconds for each byte it makes and for each byte it is given, fitted to whole-chunk decoding of all
// recorded arrays on this machine. Run it on a quiet one; only the proportions between the rows matter.
//
// The fit minimises relative errors: a slow chunk of one array counts no more than a fast one of another.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/codec/chunk_codec.h"
#include "core/codec/scheme.h"
#include "tests/rig/test_data.h"

namespace cdd {
namespace {

// Raw bytes of chunks: what fits the nearest cache, and what fits none of a core's own.
constexpr std::size_t kChunkBytes[] = {std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{1} << 20};
constexpr std::size_t kChunksOfEach = 100;
constexpr int kRounds = 9;

struct Sample {
  double ns;
  double made;
  double taken;
};

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

// One sample for each of some chunks of `array`, of about `raw_bytes`, where the scheme suits it. The chunks
// are decoded in turns, as windows at random are: a processor that decodes one over and over knows its
// branches.
void sample(const test::TestArray& array, const Scheme& scheme, std::size_t raw_bytes,
            std::vector<Sample>& samples) {
  const auto n_rows =
      static_cast<std::uint32_t>(std::max<std::size_t>(1, raw_bytes / array.layout.row_bytes()));
  const std::size_t step = std::max<std::size_t>(n_rows, array.n_rows / kChunksOfEach);
  std::vector<std::byte> out(std::size_t{n_rows} * array.layout.row_bytes());
  std::vector<std::vector<std::byte>> records;
  const std::size_t first_sample = samples.size();
  for (std::size_t first = 0; first + n_rows <= array.n_rows; first += step) {
    std::vector<std::byte> record(record_bound(array.layout, n_rows, scheme) + kScratchPadding);
    const EncodedChunk chunk = encode_chunk(array.layout, array.rows(first, n_rows), n_rows, scheme, {},
                                            MutableBytes(record).first(record.size() - kScratchPadding));
    if (chunk.record_bytes == 0) continue;
    const double taken = scheme.compressor == Compressor::None ? chunk.transformed_bytes : chunk.record_bytes;
    samples.push_back({1e18, static_cast<double>(out.size()), taken});
    record.resize(chunk.record_bytes + kScratchPadding);
    records.push_back(std::move(record));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Bytes record = Bytes(records[i]).first(records[i].size() - kScratchPadding);
      const double begin = now_ns();
      decode_chunk_rows(array.layout, record, {}, Verify::None, n_rows, {0, n_rows}, out.data());
      double& ns = samples[first_sample + i].ns;
      ns = std::min(ns, now_ns() - begin);
    }
  }
}

// made and taken with the least sum of squared relative errors, neither below zero.
std::array<double, 2> fit(const std::vector<Sample>& samples) {
  double mm = 0, mt = 0, tt = 0, m1 = 0, t1 = 0;
  for (const Sample& s : samples) {
    const double m = s.made / s.ns;
    const double t = s.taken / s.ns;
    mm += m * m;
    mt += m * t;
    tt += t * t;
    m1 += m;
    t1 += t;
  }
  const double determinant = mm * tt - mt * mt;
  const double made = (m1 * tt - t1 * mt) / determinant;
  const double taken = (t1 * mm - m1 * mt) / determinant;
  if (taken < 0 || !std::isfinite(taken)) return {m1 / mm, 0};
  if (made < 0) return {0, t1 / tt};
  return {made, taken};
}

double typical_error(const std::vector<Sample>& samples, std::array<double, 2> constants) {
  std::vector<double> errors;
  for (const Sample& s : samples) {
    errors.push_back(std::fabs(constants[0] * s.made + constants[1] * s.taken - s.ns) / s.ns);
  }
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2),
                   errors.end());
  return errors[errors.size() / 2];
}

// `alone`: the codec's own step, without the compressor that it is stored with.
void calibrate(const std::vector<test::TestArray>& arrays, const std::string& name, bool alone,
               std::size_t raw_bytes) {
  std::vector<Sample> samples;
  for (const test::TestArray& array : arrays) {
    try {
      Scheme scheme = schemes_for(name, array.layout).front();
      if (alone) scheme.compressor = Compressor::None;
      sample(array, scheme, raw_bytes, samples);
    } catch (const Error&) {
      continue;  // the scheme does not suit this array
    }
  }
  if (samples.empty()) return;
  const auto constants = fit(samples);
  std::printf("%-12s %5zu KiB  made %6.3f  taken %6.3f ns a byte   (%zu chunks, median error %.0f %%)\n",
              name.c_str(), raw_bytes >> 10, constants[0], constants[1], samples.size(),
              100 * typical_error(samples, constants));
}

}  // namespace
}  // namespace cdd

int main() {
  if (!cdd::test::have_data()) {
    std::printf("no recorded arrays at %s\n", cdd::test::data_folder().string().c_str());
    return 1;
  }
  std::vector<cdd::test::TestArray> arrays = cdd::test::load_arrays("lob");
  for (auto& array : cdd::test::load_arrays("series")) arrays.push_back(std::move(array));
  for (const std::size_t raw_bytes : cdd::kChunkBytes) {
    for (const char* name : {"lz4", "zstd"}) cdd::calibrate(arrays, name, false, raw_bytes);
    for (const char* name : {"raw", "planes", "okx_ob_f32", "generic_ob", "levels", "numeric"}) {
      cdd::calibrate(arrays, name, true, raw_bytes);
    }
  }
}
