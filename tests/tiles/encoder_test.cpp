// Layers of up to 64 dimensions, scattered, encoded and put into a sink in memory: as the definition of tiles
// says, element by element. Files of zarr have at most 32, so that no file can say this.
#include "core/tiles/encoder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "core/os/memory.h"
#include "core/threads/for_each.h"
#include "tests/rig/codec_rig.h"

namespace cdd::test {
namespace {

using tiles::Dimension;
using tiles::Tiling;

class MemorySink final : public tiles::TileSink {
 public:
  void put(std::uint64_t tile, std::span<const Bytes> parts) override {
    Buffer bytes;
    for (const Bytes part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    const std::lock_guard lock(mutex_);
    ++puts[tile];
    stored[tile] = std::move(bytes);
  }
  void put_fill(std::uint64_t tile) override {
    const std::lock_guard lock(mutex_);
    ++puts[tile];
  }
  std::map<std::uint64_t, Buffer> stored;  // what is not there is fill values
  std::map<std::uint64_t, int> puts;

 private:
  std::mutex mutex_;
};

struct Place {
  std::uint64_t tile, item;
};

// Of item `number` of a layer's frames, which follow one another in row-major order.
Place place_of(const std::vector<Dimension>& dimensions, std::uint64_t number) {
  Place place{0, 0};
  std::uint64_t tile_stride = 1, item_stride = 1;
  for (std::size_t d = dimensions.size(); d-- > 0;) {
    const Dimension& dimension = dimensions[d];
    const std::uint64_t size = d == 0 ? dimension.tile : dimension.size;
    const std::uint64_t index = number % size;
    number /= size;
    place.tile += index / dimension.tile * tile_stride;
    place.item += index % dimension.tile * item_stride;
    tile_stride *= (size + dimension.tile - 1) / dimension.tile;
    item_stride *= dimension.tile;
  }
  return place;
}

// `frames` of them, the last layer's rest is fill values.
void check_layer(const std::vector<Dimension>& dimensions, std::size_t item, const std::string& name,
                 std::uint64_t frames, unsigned seed) {
  const Tiling tiling = Tiling::make(dimensions, item);
  const tiles::TileCodec codec = tiles::TileCodec::named({name}, item, tiling.tile_bytes());
  const Buffer fill(static_cast<std::size_t>(tiling.plane_stride()), std::byte{0x55});
  tiles::Planes planes(static_cast<std::size_t>(tiling.layer_tiles() * tiling.layer_slabs()),
                       static_cast<std::size_t>(tiling.plane_stride()));
  tiles::Layer layer(tiling, planes, fill.data());
  layer.begin(0);
  const Buffer pixels = random_bytes(static_cast<std::size_t>(frames * tiling.frame_bytes()), seed);
  for (std::size_t at = 0, slab = 0; at < pixels.size(); ++slab) {
    const std::size_t n =
        std::min<std::size_t>(static_cast<std::size_t>(tiling.slab_bytes()), pixels.size() - at);
    ASSERT_TRUE(layer.take_slab(slab));
    tiles::scatter(tiling, 0, Bytes(pixels).subspan(at, n), layer.slab(slab));
    if (n < tiling.slab_bytes()) tiles::fill_rest(tiling, n, fill.data(), layer.slab(slab));
    at += n;
  }
  layer.set_frames(frames);
  MemorySink sink;
  tiles::CpuEncoder(codec).encode(layer, true, sink);
  EXPECT_EQ(planes.in_use(), 0u);

  std::vector<Buffer> expected(static_cast<std::size_t>(tiling.layer_tiles()),
                               Buffer(static_cast<std::size_t>(tiling.tile_bytes()), std::byte{0x55}));
  for (std::size_t i = 0; i < pixels.size() / item; ++i) {
    const Place place = place_of(dimensions, i);
    std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(i * item), item,
                expected[static_cast<std::size_t>(place.tile)].begin() +
                    static_cast<std::ptrdiff_t>(place.item * item));
  }
  for (std::uint64_t t = 0; t < tiling.layer_tiles(); ++t) {
    ASSERT_EQ(sink.puts[t], 1) << "tile " << t;
    Buffer tile(static_cast<std::size_t>(tiling.tile_bytes()), std::byte{0x55});
    if (const auto found = sink.stored.find(t); found != sink.stored.end()) {
      std::uint32_t check = tiles::check_of(std::vector<Bytes>{found->second});
      Buffer stored = found->second;
      if (codec.coding().has_check) {
        stored.resize(stored.size() + 4);
        store<std::uint32_t>(stored.data() + stored.size() - 4, check);
      }
      codec.decode(stored, tile);
    }
    ASSERT_EQ(tile, expected[static_cast<std::size_t>(t)]) << "tile " << t;
  }
}

TEST(TileEncoder, AnyNumberOfDimensionsIntoMemory) {
  std::mt19937_64 random(9);
  for (const std::size_t rank : {1u, 2u, 7u, 8u, 31u, 32u, 33u, 48u, 63u, 64u}) {
    for (int round = 0; round < 6; ++round) {
      // Sizes beyond one in seven places at most, so that the array stays small: but anywhere.
      std::vector<Dimension> dimensions(rank, Dimension{1, 1, 1, {}});
      dimensions[0] = {0, 1 + random() % 5, 2, {}};
      for (int places = 0; places < 7; ++places) {
        Dimension& dimension = dimensions[random() % rank];
        if (&dimension == dimensions.data()) continue;
        dimension.size = 1 + random() % 5;
        dimension.tile = 1 + random() % (dimension.size + 1);
      }
      const std::uint64_t frames = 1 + random() % dimensions[0].tile;
      SCOPED_TRACE(testing::Message() << rank << " dimensions, round " << round);
      for (const char* const codec : {"auto", "raw", "zstd"}) {
        check_layer(dimensions, std::size_t{1} << random() % 4, codec, frames, static_cast<unsigned>(round));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// As many dimensions of two as there are bits for: 2^17 tiles of one item each, and one tile of 2^17 items.
TEST(TileEncoder, ManyDimensionsOfTwo) {
  std::vector<Dimension> dimensions(64, Dimension{1, 1, 1, {}});
  dimensions[0] = {0, 2, 1, {}};
  for (std::size_t d = 1; d < 64; d += 4) dimensions[d] = {2, 1, 1, {}};
  check_layer(dimensions, 2, "raw", 2, 1);
  for (std::size_t d = 1; d < 64; d += 4) dimensions[d].tile = 2;
  check_layer(dimensions, 2, "auto", 2, 2);
  for (std::size_t d = 1; d < 64; d += 8) dimensions[d].tile = 1;
  check_layer(dimensions, 2, "auto", 1, 3);
}

// A layer of 13 tiles of one byte each.
Tiling row_of_bytes() { return Tiling::make(std::vector<Dimension>{{0, 1, 1, {}}, {13, 1, 1, {}}}, 1); }

// One thread is held up at its first tile until others have done what they can: all tiles but that one, those
// of its part included.
class HeldUpSink final : public tiles::TileSink {
 public:
  void put(std::uint64_t tile, std::span<const Bytes>) override {
    std::unique_lock lock(mutex_);
    ++puts[tile];
    changed_.notify_all();
    if (puts.size() == 1)
      changed_.wait_for(lock, std::chrono::seconds(60), [&] { return puts.size() == 13; });
  }
  void put_fill(std::uint64_t) override {}
  std::map<std::uint64_t, int> puts;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

TEST(TileEncoder, ThreadsThatAreDoneHelpOne) {
  if (!has_threads()) GTEST_SKIP() << "built without threads";
  const Tiling tiling = row_of_bytes();
  const tiles::TileCodec codec = tiles::TileCodec::named({"raw"}, 1, tiling.tile_bytes());
  const Buffer fill(static_cast<std::size_t>(tiling.plane_stride()), std::byte{0});
  for (const unsigned threads : {2u, 3u, 5u, 16u}) {
    set_threads(threads);
    tiles::Planes planes(13, static_cast<std::size_t>(tiling.plane_stride()));
    tiles::Layer layer(tiling, planes, fill.data());
    layer.begin(0);
    ASSERT_TRUE(layer.take_slab(0));
    tiles::scatter(tiling, 0, Buffer(13, std::byte{1}), layer.slab(0));
    layer.set_frames(1);
    HeldUpSink sink;
    tiles::CpuEncoder(codec).encode(layer, true, sink);
    ASSERT_EQ(sink.puts.size(), 13u) << threads << " threads";
    for (const auto& [tile, count] : sink.puts) EXPECT_EQ(count, 1) << "tile " << tile;
    EXPECT_EQ(planes.in_use(), 0u);
  }
  set_threads(0);
}

// Pages are warmed behind those that were taken, at most as many again, while others fill planes.
TEST(Planes, WarmMemoryIsWhatItWas) {
  constexpr std::size_t kStride = std::size_t{1} << 20, kCount = 96, kAhead = 64;
  for (int round = 0; round < 10; ++round) {
    tiles::Planes planes(kCount, kStride, kAhead);
    EXPECT_FALSE(planes.can_warm());  // no stream has come
    EXPECT_FALSE(planes.warm_some());
    std::atomic<bool> is_over{false};
    std::thread warms([&] {
      while (!is_over) planes.warm_some();
    });
    std::vector<std::byte*> taken(kCount);
    for (std::size_t i = 0; i < kCount; i += 4) {
      ASSERT_TRUE(planes.take(4, &taken[i]));
      for (std::size_t k = i; k < i + 4; ++k) std::memset(taken[k], static_cast<int>(k + 1), kStride);
    }
    is_over = true;
    warms.join();
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto value = static_cast<std::byte>(i + 1);
      ASSERT_TRUE(std::all_of(taken[i], taken[i] + kStride, [&](std::byte b) { return b == value; }));
    }
  }
}

TEST(Planes, NoMoreIsWarmThanWasTaken) {
  constexpr std::size_t kStride = std::size_t{1} << 20, kPage = std::size_t{2} << 20;
  Buffer probe(64 << 10);
  if (!take_pages(probe.data(), probe.size())) GTEST_SKIP() << "the system gives no pages ahead of their use";
  tiles::Planes planes(96, kStride, 64);
  std::vector<std::byte*> taken(96);
  std::size_t count = 0;
  for (const std::size_t more : {8u, 16u, 32u, 8u}) {
    ASSERT_TRUE(planes.take(more, &taken[count]));
    count += more;
    std::size_t calls = 0;
    while (planes.warm_some()) ++calls;
    EXPECT_FALSE(planes.can_warm());
    const std::size_t behind = std::min(count, 64 - count) * kStride;
    EXPECT_LE(calls * kPage, behind + kPage) << count;
    EXPECT_GE(calls * kPage + kPage, behind) << count;
  }
}

}  // namespace
}  // namespace cdd::test
