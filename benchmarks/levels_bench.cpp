// What LEVELS costs on real books, beside zstd, LZ4 and plain copies of the same chunks in the same run.
//
//   levels_bench [name part] [repetitions]
//
// Times are thread CPU time. "window" is 64 rows at random places of the whole set, decoded from the one to
// three chunks they touch; "copy" copies the same windows out of a buffer of 12 MB or more.

#include <time.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/codec/compressor.h"
#include "core/codec/levels/levels.h"
#include "tests/rig/test_data.h"

namespace {

using namespace cdd;

constexpr std::size_t kWindowRows = 64;
constexpr std::size_t kOverheadBytes = 90;  // record and index slot of a chunk

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The set stored one way: payloads of equal chunks one after another.
struct Stored {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> begins;  // of payloads, then their end
  std::size_t chunk_rows = 0;
  double encode_seconds = 0;

  std::size_t total() const { return begins.back() + kOverheadBytes * (begins.size() - 1); }
  Bytes payload(std::size_t i) const { return Bytes(bytes).subspan(begins[i], begins[i + 1] - begins[i]); }
};

enum class Method { Levels, Lz4, Zstd3, Zstd19 };

Stored store_set(const test::TestArray& a, std::size_t chunk_rows, Method method, bool over_levels = false) {
  Stored s;
  s.chunk_rows = chunk_rows;
  s.begins.push_back(0);
  std::vector<std::byte> out, inner;
  for (std::size_t row = 0; row < a.n_rows; row += chunk_rows) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(chunk_rows, a.n_rows - row));
    Bytes rows = a.rows(row, n);
    EncodeContext context;
    const double start = cpu_seconds();
    std::size_t size = 0;
    if (method == Method::Levels || over_levels) {
      out.resize(kLevelsCodec.bound(a.layout, n) + kScratchPadding);
      size = kLevelsCodec.encode(a.layout, rows, n, context,
                                 MutableBytes(out).first(out.size() - kScratchPadding));
      if (size == 0) std::printf("declined!\n");
    }
    if (method != Method::Levels) {
      if (over_levels) {
        inner.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size));
        rows = inner;
      }
      const Compressor c = method == Method::Lz4 ? Compressor::Lz4 : Compressor::Zstd;
      out.resize(compress_bound(c, rows.size()));
      const std::size_t packed = compress(c, rows, out, method == Method::Zstd19 ? 19 : 3);
      if (over_levels && packed >= size) {
        std::copy(inner.begin(), inner.end(), out.begin());
      } else {
        size = packed;
      }
    }
    s.encode_seconds += cpu_seconds() - start;
    s.bytes.insert(s.bytes.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size));
    s.begins.push_back(s.bytes.size());
  }
  s.bytes.resize(s.bytes.size() + kScratchPadding);
  return s;
}

// Rows [first, first + count) of the set into out; whole chunks through `spare` for byte compressors.
void read_rows(const test::TestArray& a, const Stored& s, Method method, std::size_t first, std::size_t count,
               std::byte* out, std::byte* spare) {
  const std::size_t row_bytes = a.layout.row_bytes();
  for (std::size_t row = first; row < first + count;) {
    const std::size_t chunk = row / s.chunk_rows, begin = chunk * s.chunk_rows;
    const std::size_t n = std::min<std::size_t>(s.chunk_rows, a.n_rows - begin);
    const std::size_t take = std::min(first + count, begin + n) - row;
    if (method == Method::Levels) {
      kLevelsCodec.decode_rows_into(a.layout, static_cast<std::uint32_t>(n), 0, s.payload(chunk),
                                    {row - begin, take}, out);
    } else {
      const Compressor c = method == Method::Lz4 ? Compressor::Lz4 : Compressor::Zstd;
      const bool whole = take == n;
      decompress(c, s.payload(chunk), {whole ? out : spare, n * row_bytes});
      if (!whole) std::memcpy(out, spare + (row - begin) * row_bytes, take * row_bytes);
    }
    out += take * row_bytes;
    row += take;
  }
}

struct Speed {
  double scan_gb_s = 0, window_us = 0;
};

Speed measure(const test::TestArray& a, const Stored& s, Method method, int repetitions) {
  std::vector<std::byte> out(a.data.size() + kScratchPadding),
      spare(s.chunk_rows * a.layout.row_bytes() + 64);
  Speed speed;
  const auto scan = [&] {
    for (std::size_t row = 0; row < a.n_rows; row += s.chunk_rows) {
      read_rows(a, s, method, row, std::min<std::size_t>(s.chunk_rows, a.n_rows - row), out.data(),
                spare.data());
    }
  };
  read_rows(a, s, method, 0, a.n_rows, out.data(), spare.data());
  if (!std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(a.rows().size()),
                  a.rows().begin())) {
    std::printf("WRONG ROWS\n");
    std::exit(1);
  }
  double best = 1e9;
  for (int r = 0; r < repetitions; ++r) {
    const double start = cpu_seconds();
    scan();
    best = std::min(best, cpu_seconds() - start);
  }
  speed.scan_gb_s = static_cast<double>(a.rows().size()) / best / 1e9;
  const std::size_t window = std::min<std::size_t>(kWindowRows, a.n_rows / 2);
  constexpr int kWindows = 2000;
  best = 1e9;
  for (int r = 0; r < repetitions; ++r) {
    std::mt19937 random(7);
    const double start = cpu_seconds();
    for (int i = 0; i < kWindows; ++i) {
      read_rows(a, s, method, random() % (a.n_rows - window + 1), window, out.data(), spare.data());
    }
    best = std::min(best, cpu_seconds() - start);
  }
  speed.window_us = best / kWindows * 1e6;
  return speed;
}

double copy_window_us(const test::TestArray& a, int repetitions) {
  const std::size_t bytes = kWindowRows * a.layout.row_bytes();
  std::vector<std::byte> buffer(std::max<std::size_t>(a.rows().size(), std::size_t{12} << 20)), out(bytes);
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<std::byte>(i);
  constexpr int kWindows = 2000;
  double best = 1e9;
  for (int r = 0; r < repetitions; ++r) {
    std::mt19937 random(7);
    const double start = cpu_seconds();
    for (int i = 0; i < kWindows; ++i) {
      std::memcpy(out.data(), buffer.data() + random() % ((buffer.size() - bytes) / 4) * 4, bytes);
    }
    best = std::min(best, cpu_seconds() - start);
  }
  return best / kWindows * 1e6;
}

double ratio(const test::TestArray& a, const Stored& s) {
  return static_cast<double>(a.rows().size()) / static_cast<double>(s.total());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 5;
  const bool deep = argc > 3;
  double product[4] = {1, 1, 1, 1};
  int sets = 0;
  std::printf(
      "%-22s rows |  ratio: levels zstd3  lz4 zst19 lv+z19 | scan GB/s: lv zstd3 lz4 | window us: lv zstd3 "
      "lz4 copy | encode MB/s\n",
      "set");
  std::vector<test::TestArray> arrays = test::load_arrays("lob");
  for (test::TestArray& a : test::load_arrays("series")) arrays.push_back(std::move(a));
  for (const test::TestArray& a : arrays) {
    if (a.name.find(part) == std::string::npos || !kLevelsCodec.accepts(a.layout)) continue;
    ++sets;
    const Stored probe = store_set(a, 64, Method::Levels);
    // Rows that take about 4 KiB, from the marginal cost of a row.
    const Stored probe256 = store_set(a, 256, Method::Levels);
    const double per_row = static_cast<double>(probe256.begins.back()) / a.n_rows;
    const auto four_kib = std::max<std::size_t>(16, static_cast<std::size_t>(4006 / per_row));
    for (const std::size_t rows : {std::size_t{64}, std::size_t{256}, four_kib}) {
      const Stored lv = store_set(a, rows, Method::Levels), z = store_set(a, rows, Method::Zstd3),
                   l = store_set(a, rows, Method::Lz4);
      double r19 = 0, rz = 0;
      if (deep) {
        r19 = ratio(a, store_set(a, rows, Method::Zstd19));
        rz = ratio(a, store_set(a, rows, Method::Zstd19, true));
      }
      if (rows == 64) product[0] *= ratio(a, lv) / ratio(a, z);
      if (rows == 256) product[1] *= ratio(a, lv) / ratio(a, z);
      if (deep && rows == 64) product[2] *= rz / r19;
      if (deep && rows == 256) product[3] *= rz / r19;
      const Speed sl = measure(a, lv, Method::Levels, repetitions), sz = measure(a, z, Method::Zstd3, 1),
                  s4 = measure(a, l, Method::Lz4, 1);
      std::printf(
          "%-22s %4zu | %6.1f %6.1f %6.1f %6.1f %6.1f | %5.1f %4.1f %4.1f | %5.2f %5.1f %5.1f %4.1f | "
          "%5.0f\n",
          a.name.substr(4).c_str(), rows, ratio(a, lv), ratio(a, z), ratio(a, l), r19, rz, sl.scan_gb_s,
          sz.scan_gb_s, s4.scan_gb_s, sl.window_us, sz.window_us, s4.window_us,
          copy_window_us(a, repetitions), static_cast<double>(a.rows().size()) / lv.encode_seconds / 1e6);
    }
  }
  if (sets != 0) {
    std::printf(
        "geometric mean over zstd-3: %.3f at 64 rows, %.3f at 256; over zstd-19 (levels+zstd-19): %.3f, "
        "%.3f\n",
        std::pow(product[0], 1.0 / sets), std::pow(product[1], 1.0 / sets), std::pow(product[2], 1.0 / sets),
        std::pow(product[3], 1.0 / sets));
  }
}
