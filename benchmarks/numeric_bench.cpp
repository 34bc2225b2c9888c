// NUMERIC on every real array: ratio, decode and encode speed beside zstd-3 on the raw rows of the same
// chunks. Times are thread CPU time, the best of a few rounds over all chunks of the array, one core, data
// warm.
//
// usage: numeric_bench [name part] [rows,rows,...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "core/codec/compressor.h"
#include "core/codec/numeric/numeric.h"
#include "core/codec/work.h"
#include "tests/rig/test_data.h"

namespace cdd {
namespace {

constexpr std::uint32_t kWindowRows = 64;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds of one call of `body`: the best of rounds that together take at least 60 ms.
template <class Body>
double best_seconds(Body&& body) {
  double best = 1e9;
  for (double spent = 0; spent < 0.06;) {
    const double start = cpu_seconds();
    body();
    const double took = cpu_seconds() - start;
    best = std::min(best, took);
    spent += took + 1e-6;
  }
  return best;
}

struct Stored {
  std::uint32_t n_rows;
  std::vector<std::byte> payload;  // with padding
  std::size_t bytes;
};

struct Result {
  std::size_t bytes = 0;
  double window_seconds = 0;
  double decode_seconds = 0;
  double encode_seconds = 0;
};

template <class Encode, class Decode>
Result measure(const test::TestArray& array, std::uint32_t chunk_rows, std::size_t bound, Encode encode,
               Decode decode) {
  Result result;
  std::vector<Stored> chunks;
  std::vector<std::byte> out(bound + kScratchPadding);
  const auto encode_all = [&](bool keep) {
    for (std::uint32_t first = 0; first < array.n_rows; first += chunk_rows) {
      const std::uint32_t n = std::min(chunk_rows, array.n_rows - first);
      const std::size_t bytes = encode(array.rows(first, n), n, MutableBytes(out).first(bound));
      if (!keep) continue;
      chunks.push_back(
          {n, {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes + kScratchPadding)}, bytes});
      result.bytes += bytes;
    }
  };
  encode_all(true);
  result.encode_seconds = best_seconds([&] { encode_all(false); });
  std::vector<std::byte> rows(array.data.size());
  result.decode_seconds = best_seconds([&] {
    std::byte* to = rows.data();
    for (const Stored& chunk : chunks) {
      decode(Bytes(chunk.payload).first(chunk.bytes), chunk.n_rows, {0, chunk.n_rows}, to);
      to += std::size_t{chunk.n_rows} * array.layout.row_bytes();
    }
  });
  // Windows of 64 rows, each within a chunk, all over the array.
  const Stored& any = chunks.front();
  const std::uint32_t window = std::min(kWindowRows, any.n_rows);
  std::size_t windows = 0;
  std::vector<std::byte> part(std::size_t{window} * array.layout.row_bytes());
  const double seconds = best_seconds([&] {
    windows = 0;
    for (const Stored& chunk : chunks) {
      if (chunk.n_rows < window) continue;
      const std::uint64_t first = windows * 2654435761u % (chunk.n_rows - window + 1);
      decode(Bytes(chunk.payload).first(chunk.bytes), chunk.n_rows, {first, window}, part.data());
      ++windows;
    }
  });
  result.window_seconds = seconds / static_cast<double>(windows);
  if (!std::equal(rows.begin(), rows.end() - kScratchPadding, array.data.begin())) {
    std::fprintf(stderr, "%s: decoded rows differ\n", array.name.c_str());
    std::exit(1);
  }
  return result;
}

void bench(const test::TestArray& array, std::uint32_t chunk_rows) {
  const RowLayout& layout = array.layout;
  const Codec& codec = kNumericCodec;
  EncodeContext context;
  const Result numeric = measure(
      array, chunk_rows, codec.bound(layout, chunk_rows),
      [&](Bytes rows, std::uint32_t n, MutableBytes out) {
        return codec.encode(layout, rows, n, context, out);
      },
      [&](Bytes payload, std::uint32_t n, RowRange range, std::byte* to) {
        codec.decode_rows_into(layout, n, 0, payload, range, to);
      });
  const std::size_t chunk_bytes = std::size_t{chunk_rows} * layout.row_bytes();
  const Result zstd = measure(
      array, chunk_rows, compress_bound(Compressor::Zstd, chunk_bytes),
      [&](Bytes rows, std::uint32_t, MutableBytes out) { return compress(Compressor::Zstd, rows, out, 3); },
      [&](Bytes payload, std::uint32_t n, RowRange range, std::byte* to) {
        const std::size_t row_bytes = layout.row_bytes();
        const MutableBytes whole = scratch<ChunkRows>().get(n * row_bytes);
        decompress(Compressor::Zstd, payload, range.count == n ? MutableBytes(to, n * row_bytes) : whole);
        if (range.count != n)
          std::memcpy(to, whole.data() + range.first * row_bytes, range.count * row_bytes);
      });
  const auto raw = static_cast<double>(array.rows().size());
  std::printf("%-46s %6u | %9zu %7.2f %6.2f %7.0f %6.2f | %7.2f %6.2f %7.0f %6.2f\n", array.name.c_str(),
              chunk_rows, numeric.bytes, raw / static_cast<double>(numeric.bytes),
              raw / numeric.decode_seconds / 1e9, raw / numeric.encode_seconds / 1e6,
              numeric.window_seconds * 1e6, raw / static_cast<double>(zstd.bytes),
              raw / zstd.decode_seconds / 1e9, raw / zstd.encode_seconds / 1e6, zstd.window_seconds * 1e6);
}

}  // namespace
}  // namespace cdd

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  std::vector<std::uint32_t> sizes;
  std::string text = argc > 2 ? argv[2] : "256,1024,4096";
  for (char* p = text.data(); *p != '\0'; p += *p == ',')
    sizes.push_back(static_cast<std::uint32_t>(std::strtoul(p, &p, 10)));
  std::printf("%-46s %6s | %9s %7s %6s %7s %6s | %7s %6s %7s %6s\n", "array", "rows", "bytes", "ratio",
              "GB/s", "MB/s", "us 64", "zstd-3", "GB/s", "MB/s", "us 64");
  for (const char* folder : {"series", "lob"}) {
    for (const cdd::test::TestArray& array : cdd::test::load_arrays(folder)) {
      if (array.name.find(part) == std::string::npos) continue;
      for (const std::uint32_t rows : sizes) cdd::bench(array, rows);
    }
  }
  return 0;
}
