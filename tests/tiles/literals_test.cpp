#include "core/codec/blosc/literals.h"

#include <cmath>
#include <random>

#include "core/codec/compressor.h"
#include "tests/rig/codec_rig.h"

namespace cdd::test {
namespace {

using blosc::LiteralEncoder;

Buffer normal_bytes(std::size_t n, double mean, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  Buffer out(n);
  for (std::byte& byte : out) byte = std::byte(static_cast<unsigned>(std::lround(normal(random))) & 0xff);
  return out;
}

// Bytes below `kinds`, each half as frequent as the one before where `halves`.
Buffer kinds_of_bytes(std::size_t n, unsigned kinds, bool halves, unsigned seed) {
  std::mt19937 random(seed);
  std::geometric_distribution<unsigned> geometric(0.5);
  Buffer out(n);
  for (std::byte& byte : out) byte = std::byte((halves ? geometric(random) : random()) % kinds);
  return out;
}

// The frame, of which zstd makes the stream again; nothing where there is none.
Buffer checked(LiteralEncoder& encoder, const Buffer& stream) {
  Buffer out(blosc::literals_bound(stream.size()));
  const std::size_t stored = encoder.encode(stream, out);
  if (stored == 0 || stored == stream.size()) return {};
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
  return compress_zstd(Search::Literals, stream, out);
}

TEST(Literals, NoiseTakesWhatZstdGivesIt) {
  LiteralEncoder encoder;
  for (const std::size_t n : {4096u, 4097u, 16384u, 40001u, 65535u, 65791u, 65792u, 131071u, 131072u}) {
    for (const double deviation : {1.0, 3.5, 12.0, 30.0}) {
      for (const double mean : {0.0, 100.0, 250.0}) {
        const Buffer stream = normal_bytes(n, mean, deviation, static_cast<unsigned>(n));
        encoder.forget();
        const Buffer frame = checked(encoder, stream);
        ASSERT_FALSE(frame.empty());
        EXPECT_LE(frame.size() * 1000, zstd_size(stream) * 1010) << n << ' ' << deviation << ' ' << mean;
      }
    }
  }
}

TEST(Literals, StreamsThatAreAlikeShareCodes) {
  LiteralEncoder encoder;
  std::size_t ours = 0, zstds = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {  // three kinds, in turns
    const Buffer stream = normal_bytes(16384, 40.0 * (seed % 3), 4.0 + seed % 3 * 7, seed);
    ours += checked(encoder, stream).size();
    zstds += zstd_size(stream);
  }
  EXPECT_LE(ours * 1000, zstds * 1012);
}

TEST(Literals, EveryNumberOfKinds) {
  LiteralEncoder encoder;
  for (unsigned kinds = 1; kinds <= 256; ++kinds) {
    for (const bool halves : {false, true})
      checked(encoder, kinds_of_bytes(4096 + kinds, kinds, halves, kinds));
  }
  EXPECT_TRUE(checked(encoder, kinds_of_bytes(16384, 256, false, 1)).empty());  // no smaller
  EXPECT_TRUE(checked(encoder, Buffer(4095)).empty());
  EXPECT_TRUE(checked(encoder, Buffer((128 << 10) + 1)).empty());
}

// Bytes that the codes of streams before do not have.
TEST(Literals, BytesThatAreNew) {
  LiteralEncoder encoder;
  Buffer stream = kinds_of_bytes(16384, 16, true, 3);
  EXPECT_FALSE(checked(encoder, stream).empty());
  for (unsigned byte = 0; byte < 256; ++byte) {
    stream[(byte * 977) % stream.size()] = std::byte(byte);
    EXPECT_FALSE(checked(encoder, stream).empty());
  }
}

TEST(Literals, TheSameAgainAfterForgetting) {
  LiteralEncoder encoder;
  const Buffer first = normal_bytes(16384, 90, 9, 1), second = normal_bytes(16384, 91, 9, 2);
  const Buffer a = checked(encoder, second);
  encoder.forget();
  checked(encoder, first);
  const Buffer b = checked(encoder, second);
  encoder.forget();
  EXPECT_EQ(checked(encoder, second), a);
  EXPECT_NE(b, a);  // by the codes of the first
}

TEST(Literals, OneByteAgainAndAgain) {
  for (const std::size_t n : {4095u, 4096u, 16384u, 65791u, 65792u, 131072u, 131073u}) {
    Buffer stream(n, std::byte{0x5a}), out(blosc::literals_bound(n)), back(n);
    const std::size_t stored = blosc::repeat_frame(stream, out);
    ASSERT_EQ(stored != 0, n >= blosc::kLeastLiterals && n <= blosc::kMostLiterals) << n;
    if (stored == 0) continue;
    EXPECT_LE(stored, 13u);
    decompress(Compressor::Zstd, Bytes(out).first(stored), back);
    EXPECT_EQ(back, stream);
    for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      stream[at] = std::byte{0x5b};
      EXPECT_EQ(blosc::repeat_frame(stream, out), 0u);
      stream[at] = std::byte{0x5a};
    }
  }
}

// Anything at all, of few kinds or many.
TEST(Literals, RandomStreams) {
  LiteralEncoder encoder;
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = blosc::kLeastLiterals + random() % 20000;
    std::vector<double> shares(256, 0.0);
    const unsigned kinds = 1 + random() % 256;
    for (unsigned k = 0; k < kinds; ++k)
      shares[random() % 256] = std::exp2(-static_cast<double>(random() % 20));
    std::discrete_distribution<unsigned> byte(shares.begin(), shares.end());
    Buffer stream(n);
    for (std::byte& b : stream) b = std::byte(byte(random));
    checked(encoder, stream);
  }
}

}  // namespace
}  // namespace cdd::test
