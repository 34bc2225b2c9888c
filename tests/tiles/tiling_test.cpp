#include "core/tiles/tiling.h"

#include <random>

#include "tests/rig/codec_rig.h"

namespace cdd::test {
namespace {

using tiles::Dimension;
using tiles::Tiling;

std::string refusal(std::vector<Dimension> dimensions, std::size_t item_bytes = 2) {
  try {
    Tiling::make(std::move(dimensions), item_bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "";
}

// Planes for one slab, each beside a byte that must stay as it is.
struct Planes {
  Planes(const Tiling& tiling, std::byte with) : stride(tiling.plane_stride() + tiles::kPlaneAlignment) {
    memory.assign(tiling.layer_tiles() * stride + tiles::kPlaneAlignment, with);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    std::byte* const first = memory.data() + (64 - address % 64) % 64;
    for (std::uint64_t t = 0; t < tiling.layer_tiles(); ++t) at.push_back(first + t * stride);
  }
  std::size_t stride;
  std::vector<std::byte> memory;
  std::vector<std::byte*> at;
};

void expect_same(const Tiling& tiling, const Planes& got, const Planes& expected) {
  for (std::uint64_t t = 0; t < tiling.layer_tiles(); ++t) {
    ASSERT_TRUE(same(Bytes(got.at[t], tiling.plane_stride()), Bytes(expected.at[t], tiling.plane_stride())))
        << "tile " << t;
  }
}

std::vector<Dimension> random_dimensions(std::mt19937_64& random, std::size_t rank, std::uint64_t most) {
  std::vector<Dimension> dimensions;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t size = 1 + random() % most;
    dimensions.push_back({size, 1 + random() % (size + 2), 1 + random() % 3, {}});
  }
  return dimensions;
}

TEST(Tiling, ScattersAsTheDefinitionSaysWhereverItIsCut) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 400; ++round) {
    const std::size_t rank = 1 + random() % 6;
    const std::size_t item = std::size_t{1} << random() % 5;
    const std::uint64_t most = rank < 3 ? 90 : rank < 4 ? 20 : 6;
    const Tiling tiling = Tiling::make(random_dimensions(random, rank, most), item);
    SCOPED_TRACE(round);
    const Buffer slab = random_bytes(tiling.slab_bytes(), static_cast<unsigned>(round));
    Planes got(tiling, std::byte{0xee}), expected(tiling, std::byte{0xee});
    for (std::size_t done = 0; done < slab.size();) {
      const std::size_t n = std::min<std::size_t>(slab.size() - done, 1 + random() % slab.size());
      tiles::scatter(tiling, done, Bytes(slab).subspan(done, n), got.at.data());
      done += n;
    }
    tiles::reference::scatter(tiling, 0, slab, expected.at.data());
    expect_same(tiling, got, expected);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// What no frame fills is filled, and nothing else: a whole slab over it leaves only fill values and frames.
TEST(Tiling, PaddingAndWhatIsMissingAreFilled) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    const Tiling tiling = Tiling::make(random_dimensions(random, 1 + random() % 5, 9), 2);
    SCOPED_TRACE(round);
    const Buffer slab = random_bytes(tiling.slab_bytes(), static_cast<unsigned>(round));
    const Buffer fill(tiling.plane_stride(), std::byte{0x55});
    const std::size_t cut = random() % (slab.size() + 1);
    Planes got(tiling, std::byte{0xee}), expected(tiling, std::byte{0x55});
    tiles::fill_padding(tiling, fill.data(), got.at.data());
    tiles::scatter(tiling, 0, Bytes(slab).first(cut), got.at.data());
    tiles::fill_rest(tiling, cut, fill.data(), got.at.data());
    tiles::reference::scatter(tiling, 0, Bytes(slab).first(cut), expected.at.data());
    for (std::uint64_t t = 0; t < tiling.layer_tiles(); ++t) {
      ASSERT_TRUE(same(Bytes(got.at[t], tiling.plane_bytes()), Bytes(expected.at[t], tiling.plane_bytes())))
          << t;
    }
  }
}

TEST(Tiling, SixtyFourDimensionsOfWhichMostAreOne) {
  std::vector<Dimension> dimensions(64, Dimension{1, 1, 1, {}});
  dimensions[0] = {0, 4, 2, {}};
  dimensions[20] = {5, 3, 1, {}};
  dimensions[41] = {7, 7, 1, {}};
  dimensions[63] = {10, 4, 2, {}};
  const Tiling tiling = Tiling::make(dimensions, 2);
  EXPECT_EQ(tiling.axes().size(), 2u);  // the 7 is one run with the 5
  EXPECT_EQ(tiling.layer_tiles(), 2u * 3u);
  EXPECT_EQ(tiling.frame_bytes(), 5u * 7u * 10u * 2u);
  const Buffer slab = random_bytes(tiling.slab_bytes(), 3);
  Planes got(tiling, std::byte{0}), expected(tiling, std::byte{0});
  tiles::scatter(tiling, 0, slab, got.at.data());
  tiles::reference::scatter(tiling, 0, slab, expected.at.data());
  expect_same(tiling, got, expected);
  // Two of each, as far as 64 bits go.
  std::vector<Dimension> all(24, Dimension{2, 1, 1, {}});
  all.resize(64, Dimension{1, 1, 1, {}});
  EXPECT_EQ(Tiling::make(all, 1).layer_tiles(), std::uint64_t{1} << 23);
}

TEST(Tiling, NeighboursWithOneTileAreOneRun) {
  const Tiling full = Tiling::make({{0, 8, 1, {}}, {16, 4, 2, {}}, {10, 10, 1, {}}, {6, 6, 1, {}}}, 2);
  ASSERT_EQ(full.axes().size(), 1u);
  EXPECT_EQ(full.axes()[0].size, 16u * 10 * 6 * 2);
  EXPECT_EQ(full.axes()[0].tile, 4u * 10 * 6 * 2);
  const Tiling whole = Tiling::make({{0, 64, 1, {}}, {10, 10, 1, {}}}, 2);  // a tile is one run of the input
  EXPECT_EQ(whole.slab_frames(), 64u);
  EXPECT_EQ(whole.layer_slabs(), 1u);
}

TEST(Tiling, RefusesWhatDoesNotFitAndNamesTheDimension) {
  EXPECT_NE(refusal({}).find("1 to 64"), std::string::npos);
  EXPECT_NE(refusal(std::vector<Dimension>(65, Dimension{1, 1, 1, {}})).find("got 65"), std::string::npos);
  EXPECT_NE(refusal({{0, 1, 1, {}}, {0, 1, 1, {}}}).find("dimension 1 has size 0"), std::string::npos);
  EXPECT_NE(refusal({{4, 0, 1, {}}}).find("dimension 0 has a tile of 0"), std::string::npos);
  EXPECT_NE(refusal({{4, 1, 0, {}}}).find("a shard of 0"), std::string::npos);
  EXPECT_NE(refusal({{0, 1, 1, {}}, {~std::uint64_t{0}, 1 << 20, 1, {}}}).find("dimension 1"),
            std::string::npos);
  EXPECT_NE(refusal({{0, 1 << 20, 1, {}}, {4096, 4096, 1, {}}}).find("bytes of a tile"), std::string::npos);
  EXPECT_NE(refusal({{0, 1, 1 << 26, {}}, {4, 2, 2, {}}}).find("index"), std::string::npos);
  EXPECT_NE(refusal({{0, 1, 1, {}}, {1ull << 30, 16, 1, {}}, {1ull << 30, 16, 1, {}}}).find("layer"),
            std::string::npos);
  EXPECT_NE(refusal({{1ull << 62, 1, 1, {}}, {1024, 16, 1, {}}}).find("the array"), std::string::npos);
  EXPECT_EQ(refusal({{0, 1, 1, {}}}), "");
}

TEST(Tiling, PlacesCoverEachShardOnce) {
  const Tiling tiling = Tiling::make({{0, 2, 3, {}}, {50, 8, 3, {}}, {30, 7, 2, {}}}, 1);
  EXPECT_EQ(tiling.layer_tiles(), 7u * 5u);
  EXPECT_EQ(tiling.row_shards(), 3u * 3u);
  EXPECT_EQ(tiling.shard_tiles(), 3u * 3 * 2);
  std::vector<int> seen(tiling.row_shards() * tiling.shard_layer_tiles(), 0);
  for (std::uint64_t t = 0; t < tiling.layer_tiles(); ++t) {
    const Tiling::Place place = tiling.place_of(t);
    ++seen[place.shard * tiling.shard_layer_tiles() + place.slot];
  }
  for (const int count : seen) EXPECT_LE(count, 1);
  EXPECT_EQ(tiling.place_of(5 * 3 + 2).shard, 3u + 1u);  // tile (3, 2) of shards of 3 x 2
  EXPECT_EQ(tiling.shard_key(4, 5), "c/4/1/2");
}

}  // namespace
}  // namespace cdd::test
