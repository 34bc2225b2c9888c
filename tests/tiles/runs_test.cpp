#include "core/codec/blosc/runs.h"

#include <cmath>
#include <random>

#include "core/codec/blosc/literals.h"
#include "core/codec/compressor.h"
#include "tests/rig/codec_rig.h"

namespace cdd::test {
namespace {

using blosc::RunEncoder;

// The frame, of which zstd makes the stream again; nothing where there is none.
Buffer checked(RunEncoder& encoder, const Buffer& stream) {
  Buffer out(blosc::literals_bound(stream.size()));
  const std::size_t stored = encoder.encode(stream, out);
  if (stored == 0) return {};
  EXPECT_LT(stored, stream.size());
  out.resize(stored);
  Buffer back(stream.size());
  decompress(Compressor::Zstd, out, back);
  EXPECT_EQ(back, stream);
  EXPECT_EQ(zstd_content_bytes(out), stream.size());
  return out;
}

std::size_t zstd_size(const Buffer& stream) {
  Buffer out(compress_bound(Compressor::Zstd, stream.size()));
  return compress_zstd(Search::Level1, stream, out);
}

// The high bytes of a camera's pixels, whose mean grows along rows of 256.
Buffer high_bytes(std::size_t n, double first, double step, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  Buffer out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double mean = first + step * static_cast<double>(i % 256);
    out[i] = std::byte(static_cast<unsigned>(std::lround(std::max(0.0, mean + normal(random)))) >> 8 & 0xff);
  }
  return out;
}

// Runs of any length between `least` and `most` of bytes of so many kinds.
Buffer runs_of_bytes(std::size_t n, std::size_t least, std::size_t most, unsigned kinds, unsigned seed) {
  std::mt19937 random(seed);
  Buffer out;
  while (out.size() < n) {
    const auto byte = std::byte(random() % kinds * 7);
    out.insert(out.end(), least + random() % (most - least + 1), byte);
  }
  out.resize(n);
  return out;
}

TEST(Runs, HighBytesOfPixelsTakeHardlyMoreThanZstdGivesThem) {
  RunEncoder encoder;
  std::size_t ours = 0, zstds = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Buffer stream = high_bytes(16384, 100 + 9 * seed, 0.01 * seed, 3 + seed / 4, seed);
    const Buffer frame = checked(encoder, stream);
    ours += frame.empty() ? zstd_size(stream) : frame.size();
    zstds += zstd_size(stream);
  }
  EXPECT_LE(ours * 100, zstds * 115);
}

TEST(Runs, EveryLengthOfRunsAndOfWhatIsBetween) {
  RunEncoder encoder;
  for (const std::size_t n : {4096u, 4097u, 16384u, 65791u, 65792u, 131071u, 131072u}) {
    for (const std::size_t most : {17u, 40u, 200u, 3000u, 70000u, 131072u}) {
      for (const unsigned kinds : {2u, 3u, 30u}) {
        const Buffer stream = runs_of_bytes(n, 1, most, kinds, static_cast<unsigned>(n + most));
        const bool has_frame = !checked(encoder, stream).empty();
        EXPECT_TRUE(has_frame || most <= 40) << n << ' ' << most << ' ' << kinds;
      }
    }
  }
}

// One run of each length, at each place of a mask's byte, behind each number of other bytes.
TEST(Runs, OneRun) {
  RunEncoder encoder;
  const Buffer noise = random_bytes(131072, 4);
  for (std::size_t length = 1; length < 131072; length += length < 300 ? 1 : length / 9) {
    for (const std::size_t before :
         {std::size_t{1}, length % 67 + 2, std::size_t{2000}, std::size_t{20000}}) {
      Buffer stream(noise.begin(), noise.begin() + static_cast<std::ptrdiff_t>(before));
      stream.insert(stream.end(), length, std::byte{9});
      while (stream.size() < 4096) stream.push_back(std::byte(stream.size() % 2));
      if (stream.size() <= 131072) checked(encoder, stream);
    }
  }
}

TEST(Runs, NoFrameWhereThereAreNoRuns) {
  RunEncoder encoder;
  EXPECT_TRUE(checked(encoder, random_bytes(16384, 1)).empty());
  EXPECT_TRUE(checked(encoder, runs_of_bytes(16384, 1, 8, 256, 1)).empty());
  EXPECT_TRUE(checked(encoder, Buffer(4095)).empty());
  EXPECT_TRUE(checked(encoder, Buffer((128 << 10) + 1)).empty());
  EXPECT_FALSE(checked(encoder, Buffer(128 << 10)).empty());
}

// The same bytes whatever was encoded before: tiles are equal wherever they are packed.
TEST(Runs, KeepNothing) {
  RunEncoder used, fresh;
  checked(used, high_bytes(131072, 700, 1, 20, 1));
  const Buffer stream = high_bytes(16384, 230, 0.2, 9, 2);
  EXPECT_EQ(checked(used, stream), checked(fresh, stream));
}

TEST(Runs, RandomStreams) {
  RunEncoder encoder;
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = blosc::kLeastLiterals + random() % 20000;
    const std::size_t most = 1 + (1u << random() % 12);
    checked(encoder, runs_of_bytes(n, 1, most, 1 + random() % 256, static_cast<unsigned>(round)));
  }
}

}  // namespace
}  // namespace cdd::test
