#include "core/codec/blosc/frame.h"

#include <bit>
#include <cstring>
#include <random>

#include "tests/rig/codec_rig.h"

namespace cdd::test {
namespace {

using blosc::Options;
using zarr::BloscShuffle;

// Items that grow slowly, with noise in their lowest byte.
Buffer items(std::size_t n, std::size_t item_bytes, unsigned seed) {
  Buffer out = random_bytes(n * item_bytes, seed);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t b = 1; b < item_bytes; ++b) out[i * item_bytes + b] = std::byte(i / 300 >> b);
  }
  return out;
}

Buffer encoded(const Buffer& content, const Options& options, std::size_t pieces) {
  std::vector<Bytes> parts;
  const std::size_t n = content.size() / options.item_bytes;
  for (std::size_t p = 0; p < pieces; ++p) {
    const std::size_t first = n * p / pieces * options.item_bytes,
                      last = n * (p + 1) / pieces * options.item_bytes;
    parts.push_back(Bytes(content).subspan(first, last - first));
  }
  Buffer out(blosc::encode_bound(content.size(), options));
  out.resize(blosc::encode(parts, content.size(), options, out));
  return out;
}

TEST(Blosc, EveryShapeComesBack) {
  for (const Compressor compressor : {Compressor::Zstd, Compressor::Lz4}) {
    for (const BloscShuffle shuffle : {BloscShuffle::None, BloscShuffle::Byte, BloscShuffle::Bit}) {
      for (const std::size_t item : {1u, 2u, 4u, 8u, 16u}) {
        for (const std::size_t n : {1u, 7u, 8u, 127u, 1000u, 40000u, 140001u, 262144u}) {
          for (const bool skips : {false, true}) {
            const Options options{compressor, 1, shuffle, item, skips};
            const Buffer content = items(n, item, static_cast<unsigned>(n));
            const Buffer frame = encoded(content, options, 1 + n % 5);
            EXPECT_LE(frame.size(), content.size() + blosc::kHeaderBytes);
            Buffer back(content.size());
            blosc::decode(frame, back);
            ASSERT_EQ(back, content) << n << " items of " << item;
          }
        }
      }
    }
  }
}

TEST(Blosc, TheBytesDoNotDependOnHowTheContentLies) {
  const Options options{Compressor::Zstd, 1, BloscShuffle::Byte, 2, false};
  const Buffer content = items(300000, 2, 5);
  EXPECT_EQ(encoded(content, options, 1), encoded(content, options, 37));
}

// Words of few kinds, 20,000 items that come again and again: streams of 16 KiB never see all of them twice.
TEST(Blosc, StreamsAreLongWhereWhatCameBeforeComesAgain) {
  const Options options{Compressor::Zstd, 1, BloscShuffle::Byte, 2, false};
  const Buffer words = random_bytes(256 * 16, 11), order = random_bytes(2500, 12);
  Buffer once, content;
  for (const std::byte word : order) {
    const auto first = words.begin() + 16 * std::to_integer<int>(word);
    once.insert(once.end(), first, first + 16);
  }
  while (content.size() < (4 << 20)) content.insert(content.end(), once.begin(), once.end());
  content.resize(4 << 20);
  const Buffer frame = encoded(content, options, 3);
  EXPECT_EQ(load<std::uint32_t>(frame.data() + 8), 128u << 10);
  EXPECT_LT(frame.size(), content.size() / 5);
  Buffer back(content.size());
  blosc::decode(frame, back);
  EXPECT_EQ(back, content);
}

TEST(Blosc, NoiseIsStored) {
  Options options{Compressor::Zstd, 1, BloscShuffle::Byte, 2, true};
  const Buffer content = items(131072, 2, 6);
  const Buffer frame = encoded(content, options, 1);
  EXPECT_GT(frame.size(), 131072u);  // the plane of noise as it is
  EXPECT_LT(frame.size(), 140000u);
}

// Lowest bytes that are noise, but for stretches of one byte and of noise that comes again: those are tried
// once more, from where they would have been stored.
TEST(Blosc, NoiseInPartsOnly) {
  for (const std::size_t item : {2u, 4u, 8u}) {
    for (const Compressor compressor : {Compressor::Zstd, Compressor::Lz4}) {
      Buffer content = items((4 << 20) / item, item, 21);
      const auto low = [&](std::size_t i) -> std::byte& { return content[i * item]; };
      const std::size_t n = content.size() / item;
      for (std::size_t i = 0; i < n; ++i) {
        if (i * 16 / n % 5 == 3) low(i) = std::byte{7};
        if (i * 16 / n % 5 == 4) low(i) = low(i % 10000);
      }
      const Options options{compressor, 1, BloscShuffle::Byte, item, true};
      const Buffer frame = encoded(content, options, 1);
      EXPECT_EQ(encoded(content, options, 37), frame);
      EXPECT_LT(frame.size(), content.size() / item * 10 / 9);
      Buffer back(content.size());
      blosc::decode(frame, back);
      EXPECT_EQ(back, content);
    }
  }
}

enum class Kind { Ramp, Constant, Noise, Bell };

// Stretches of `n` items each.
template <class Item>
Buffer stretches(std::initializer_list<Kind> kinds, std::size_t n) {
  std::mt19937_64 random(41);
  std::vector<Item> items;
  for (const Kind kind : kinds) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t r = random();
      const unsigned bell = std::popcount(r) + std::popcount(random()) + 900u;
      items.push_back(static_cast<Item>(kind == Kind::Ramp       ? i
                                        : kind == Kind::Constant ? 7
                                        : kind == Kind::Noise    ? r
                                                                 : bell));
    }
  }
  const Bytes bytes = std::as_bytes(std::span(items));
  return {bytes.begin(), bytes.end()};
}

// The plan of a tile is of its middle, which need not be like the rest.
TEST(Blosc, PlansFollowTheContent) {
  using enum Kind;
  const auto check = [](const Buffer& content, std::size_t item, bool skips, std::size_t most) {
    const Options options{Compressor::Zstd, 1, BloscShuffle::Byte, item, skips};
    const Buffer frame = encoded(content, options, 1);
    EXPECT_LT(frame.size(), most) << content.size() << " in items of " << item << ", " << skips;
    EXPECT_EQ(encoded(content, options, 37), frame);
    Buffer back(content.size());
    blosc::decode(frame, back);
    EXPECT_EQ(back, content);
  };
  for (const bool skips : {false, true}) {
    for (const std::size_t n : {46202u, 87381u, 333333u}) {
      // A block that is noise in part may be stored.
      const std::size_t noise = 4 * n + (skips ? 64 << 10 : 0), bell = 5 * n / 8;
      check(stretches<std::uint16_t>({Ramp, Bell, Ramp}, n), 2, skips, bell + 6 * n / 16);
      check(stretches<std::uint16_t>({Ramp, Bell, Bell, Ramp, Bell}, n), 2, skips, 3 * bell + 7 * n / 16);
      check(stretches<std::uint32_t>({Constant, Noise, Constant}, n), 4, skips, noise + n / 8);
      check(stretches<std::uint32_t>({Ramp, Noise, Ramp}, n), 4, skips, noise + n / 2);
      check(stretches<std::uint32_t>({Bell, Noise, Bell}, n), 4, skips, noise + 2 * bell + n / 2);
    }
  }
}

// What other writers give LZ4: their files would be smaller otherwise.
TEST(Blosc, Lz4HasStreamsOf128KbAtLeast) {
  for (const std::size_t item : {1u, 2u, 4u, 8u}) {
    const Buffer frame =
        encoded(items((4 << 20) / item, item, 3), {Compressor::Lz4, 1, BloscShuffle::Byte, item}, 1);
    EXPECT_GE(load<std::uint32_t>(frame.data() + 8), item * (128u << 10));
  }
}

// They have headers, each of them.
TEST(Blosc, ShortStreamsOfZstdAreOne) {
  constexpr unsigned kUnsplit = 16;
  for (const std::size_t n : {2048u, 4095u, 4096u}) {
    const Buffer frame = encoded(items(n, 2, 3), {Compressor::Zstd, 1, BloscShuffle::Byte, 2}, 1);
    EXPECT_EQ(std::to_integer<unsigned>(frame[2]) & kUnsplit, n < 4096 ? kUnsplit : 0u) << n;
  }
}

// c-blosc leaves the bits of such blocks where they are, and LZ4 finds rows that come again.
TEST(Blosc, BitsOfItemsThatAreNoMultipleOf8AreLeftWhereThatIsSmaller) {
  const Buffer row = random_bytes(600, 31);
  for (const Compressor compressor : {Compressor::Zstd, Compressor::Lz4}) {
    for (const std::size_t n : {4001u, 9999u, 100003u}) {
      Buffer content(n * 4);
      for (std::size_t i = 0; i < content.size(); ++i) content[i] = row[i % row.size()];
      const Options options{compressor, compressor == Compressor::Lz4 ? -5 : 1, BloscShuffle::Bit, 4};
      const Buffer frame = encoded(content, options, 3);
      EXPECT_LT(frame.size(), content.size() / 6) << n;
      Buffer back(content.size());
      blosc::decode(frame, back);
      EXPECT_EQ(back, content);
    }
  }
}

// Rows of which each has two items that the one before has not.
TEST(Blosc, BitsAreLeftAboveLevel1Too) {
  constexpr std::size_t kItem = 4, kRow = 150 * kItem;
  const Buffer news = random_bytes(250001 * kItem, 33);
  for (const std::size_t n : {28567u, 65535u, 250001u}) {
    Buffer content(news.begin(), news.begin() + n * kItem);
    std::mt19937 random(34);
    for (std::size_t at = kRow; at < content.size(); at += kItem) {
      if (random() % 75 != 0) std::memcpy(&content[at], &content[at - kRow], kItem);
    }
    for (const int level : {3, 9}) {
      const Buffer frame = encoded(content, {Compressor::Zstd, level, BloscShuffle::Bit, kItem}, 3);
      EXPECT_LT(frame.size(), content.size() / 20) << n << " at level " << level;
      Buffer back(content.size());
      blosc::decode(frame, back);
      EXPECT_EQ(back, content);
    }
  }
}

// Noise of which all bytes of the items come again after 3,000 bytes.
TEST(Blosc, TilesArePackedAsCBloscDoesWhereThatIsSmaller) {
  const Buffer once = random_bytes(3000, 32);
  for (const std::size_t size : {29756u, 100000u, 1u << 20}) {
    for (const bool skips : {false, true}) {
      Buffer content(size);
      for (std::size_t i = 0; i < size; ++i) content[i] = once[i % once.size()];
      for (const std::size_t item : {1u, 4u}) {
        const Options options{Compressor::Zstd, 1, item == 1 ? BloscShuffle::None : BloscShuffle::Byte, item,
                              skips};
        EXPECT_LT(encoded(content, options, 1).size(), size / 6) << size << " in items of " << item;
      }
    }
  }
}

TEST(Blosc, HigherLevelsAreNoLarger) {
  for (const std::size_t n : {1000u, 70001u, 2u << 20}) {
    const Buffer slope = items(n, 2, 9);
    const Buffer random = random_bytes(n * 4, 10);
    const auto of_random = [&](std::size_t i) { return std::to_integer<unsigned>(random[i]); };
    Buffer noise(n * 2);
    for (std::size_t i = 0; i < n; ++i) {
      noise[2 * i] = std::byte(of_random(4 * i) % 32 + of_random(4 * i + 1) % 32 + of_random(4 * i + 2) % 32);
      noise[2 * i + 1] = std::byte{of_random(4 * i + 3) < 5};
    }
    for (const Buffer& content : {slope, noise}) {
      Options options{Compressor::Zstd, 1, BloscShuffle::Byte, 2};
      const Buffer fast = encoded(content, options, 1);
      for (const int level : {2, 4, 7}) {
        options.level = level;
        const Buffer slow = encoded(content, options, 3);
        EXPECT_LE(slow.size(), fast.size()) << level;
        Buffer back(content.size());
        blosc::decode(slow, back);
        EXPECT_EQ(back, content);
      }
    }
  }
}

TEST(Blosc, DamageIsAnErrorOrTheRightSize) {
  std::mt19937 random(7);
  for (const BloscShuffle shuffle : {BloscShuffle::None, BloscShuffle::Byte, BloscShuffle::Bit}) {
    const Options options{Compressor::Lz4, 1, shuffle, 4, false};
    const Buffer content = items(70000, 4, 8);
    const Buffer frame = encoded(content, options, 1);
    for (int round = 0; round < 2000; ++round) {
      Buffer damaged = frame;
      if (round % 4 == 0) damaged.resize(random() % damaged.size());
      // Most often in the header and the offsets, where it matters most.
      for (int i = 0; i < 1 + round % 3 && !damaged.empty(); ++i) {
        damaged[random() % std::min<std::size_t>(damaged.size(), round % 2 ? 40 : damaged.size())] =
            std::byte(random());
      }
      Buffer out(content.size());
      try {
        blosc::decode(damaged, out);
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == ErrorCode::Corrupt || error.code() == ErrorCode::Unsupported)
            << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace cdd::test
