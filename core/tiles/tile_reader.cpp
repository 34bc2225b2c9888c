#include "core/tiles/tile_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/base/of_thread.h"
#include "core/base/scratch.h"
#include "core/os/fork_gate.h"
#include "core/simd/crc32c.h"
#include "core/threads/for_each.h"
#include "core/tiles/tile_writer.h"
#include "core/tiles/tiling.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;
using zarr::ShardEntry;

constexpr std::size_t kCachedShards = 64;
constexpr std::size_t kMaxRank = zarr::kMaxRank;

struct ReadBuffers {
  Scratch stored, tile;
};
// While several threads decode a lone tile, its reader's thread may be lent to a read of many tiles, which
// must not take the buffers from under them.
ReadBuffers& buffers(bool is_alone) {
  thread_local OfThread<std::array<ReadBuffers, 2>> own;
  return own.value[is_alone ? 1 : 0];
}

unsigned long long n(U64 value) { return value; }

constexpr U64 ceil_div(U64 a, U64 b) noexcept { return a / b + (a % b != 0); }

// Fills `out` with copies of one item.
void fill_items(Bytes item, MutableBytes out) noexcept {
  if (std::all_of(item.begin(), item.end(), [](std::byte b) { return b == std::byte{0}; })) {
    std::memset(out.data(), 0, out.size());
    return;
  }
  std::memcpy(out.data(), item.data(), item.size());
  for (std::size_t done = item.size(); done < out.size();) {
    const std::size_t more = std::min(done, out.size() - done);
    std::memcpy(out.data() + done, out.data(), more);
    done += more;
  }
}

// A large index at the start of a shard that grows is written over while it is read. Only what stays wrong is
// damaged.
template <class Read>
bool is_read_soon(Read&& is_read) {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    if (is_read()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1 << i));
  }
  return is_read();
}

}  // namespace

class TileReader::View {
 public:
  View(const ArrayFiles& files, zarr::ArrayMetadata metadata);

  const zarr::ArrayMetadata& metadata() const noexcept { return metadata_; }
  void read(std::span<const U64> start, std::span<const U64> count, MutableBytes out) const;
  Stored stored() const;

 private:
  struct Shard {
    std::unique_ptr<ArrayFile> file;  // null: no such file, all of it is fill values
    std::vector<ShardEntry> entries;
  };
  struct Cached {
    U64 number, used;
    std::shared_ptr<const Shard> shard;
  };
  // A box of the array, in items.
  struct Box {
    std::size_t rank = 0;
    std::array<U64, kMaxRank> start{}, count{}, first_tile{}, tiles{};
  };

  std::vector<U64> shard_index_of(U64 number) const;
  std::shared_ptr<const Shard> shard(U64 number) const;
  std::shared_ptr<const Shard> open_shard(U64 number) const;
  void read_tile(const Box& box, std::span<const U64> tile, bool is_alone, MutableBytes out) const;
  void decode_tile(const Shard& shard, U64 slot, bool is_alone, MutableBytes out) const;
  U64 tiles_along(std::size_t d) const noexcept { return ceil_div(metadata_.shape[d], metadata_.tile[d]); }

  const ArrayFiles& files_;
  const zarr::ArrayMetadata metadata_;
  U64 shard_tiles_ = 1;  // set while tile_bytes_ is
  const U64 tile_bytes_;
  const TileCodec codec_;
  mutable std::mutex mutex_;
  mutable std::vector<Cached> cache_;
  mutable U64 uses_ = 0;
};

// ---------------------------------------------------------------- what a reader has in hand

TileReader::TileReader(std::unique_ptr<ArrayFiles> files) : files_(std::move(files)) { refresh(); }

TileReader::~TileReader() = default;

bool TileReader::refresh() {
  const std::string name = files_->name_of(kMetadataKey);
  const auto bytes = read_whole(*files_, kMetadataKey, Json::kMaxBytes);
  if (!bytes) fail_io(ENOENT, name, "cannot open %s");
  std::shared_ptr<const View> fresh;
  try {
    fresh = std::make_shared<View>(
        *files_, zarr::ArrayMetadata::parse(
                     Json::parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()})));
  } catch (const Error& error) {
    throw Error(error.code(), name + ": " + error.what(), error.place());
  }
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  const bool has_changed = !view_ || fresh->metadata().shape != view_->metadata().shape;
  view_ = std::move(fresh);
  return has_changed;
}

std::shared_ptr<const TileReader::View> TileReader::view() const {
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  return view_;
}

std::shared_ptr<const zarr::ArrayMetadata> TileReader::metadata() const {
  const auto now = view();
  return {now, &now->metadata()};
}

void TileReader::read(std::span<const U64> start, std::span<const U64> count, MutableBytes out) const {
  view()->read(start, count, out);
}

TileReader::Stored TileReader::stored() const { return view()->stored(); }

// ---------------------------------------------------------------- reading

TileReader::View::View(const ArrayFiles& files, zarr::ArrayMetadata metadata)
    : files_(files),
      metadata_(std::move(metadata)),
      tile_bytes_([&] {
        U64 bytes = metadata_.dtype.item_bytes(), tiles = 1;
        for (std::size_t d = 0; d < metadata_.shape.size(); ++d) {
          const U64 along = metadata_.shard[d] / metadata_.tile[d];
          if (!checked_mul(bytes, metadata_.tile[d], &bytes) || bytes > kMaxTileBytes ||
              !checked_mul(shard_tiles_, along, &shard_tiles_) || shard_tiles_ > kMaxIndexBytes / 16 ||
              !checked_mul(tiles, tiles_along(d), &tiles)) {
            fail(ErrorCode::Limit, "its tiles or shards are larger than what is read");
          }
        }
        return bytes;
      }()),
      codec_(metadata_.coding, metadata_.dtype.item_bytes(), tile_bytes_) {}

std::vector<U64> TileReader::View::shard_index_of(U64 number) const {
  std::vector<U64> index(metadata_.shape.size());
  for (std::size_t d = index.size(); d-- > 0;) {
    const U64 shards = ceil_div(metadata_.shape[d], metadata_.shard[d]);
    index[d] = number % shards;
    number /= shards;
  }
  return index;
}

std::shared_ptr<const TileReader::View::Shard> TileReader::View::open_shard(U64 number) const {
  const std::string key = metadata_.key_of(shard_index_of(number));
  auto shard = std::make_shared<Shard>();
  shard->file = files_.open(key, false);
  if (!shard->file) return shard;
  const U64 size = shard->file->size();
  if (!metadata_.is_sharded) {
    shard->entries = {{0, size}};
    return shard;
  }
  const U64 index_bytes = zarr::shard_index_bytes(shard_tiles_, metadata_.index_has_check);
  const std::string name = files_.name_of(key);
  if (size < index_bytes) {
    fail_at({Place::Kind::Index, number}, ErrorCode::Truncated, "%s: %llu bytes, its index alone has %llu",
            name.c_str(), n(size), n(index_bytes));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(index_bytes));
  const std::size_t entries = static_cast<std::size_t>(16 * shard_tiles_);
  const auto is_read = [&] {
    const std::size_t got = shard->file->read_at(metadata_.index_at_end ? size - index_bytes : 0, bytes);
    return got == bytes.size() &&
           (!metadata_.index_has_check ||
            load<std::uint32_t>(bytes.data() + entries) == simd::crc32c(bytes.data(), entries));
  };
  if (!is_read_soon(is_read)) {
    fail_at({Place::Kind::Index, number}, ErrorCode::Checksum, "%s: the check of its index does not hold",
            name.c_str());
  }
  shard->entries = zarr::parse_shard_index(Bytes(bytes).first(entries));
  return shard;
}

// From the cache, where the one least recently used gives way.
std::shared_ptr<const TileReader::View::Shard> TileReader::View::shard(U64 number) const {
  {
    const ForkGate gate;
    const std::lock_guard lock(mutex_);
    for (Cached& cached : cache_) {
      if (cached.number != number) continue;
      cached.used = ++uses_;
      return cached.shard;
    }
  }
  std::shared_ptr<const Shard> opened = open_shard(number);
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  const Cached fresh{number, ++uses_, opened};
  if (cache_.size() < kCachedShards) {
    cache_.push_back(fresh);
  } else {
    *std::min_element(cache_.begin(), cache_.end(),
                      [](const Cached& a, const Cached& b) { return a.used < b.used; }) = fresh;
  }
  return opened;
}

void TileReader::View::decode_tile(const Shard& shard, U64 slot, bool is_alone, MutableBytes out) const {
  const ShardEntry entry = shard.file ? shard.entries[static_cast<std::size_t>(slot)] : ShardEntry{};
  if (entry.is_absent()) return fill_items(metadata_.fill, out);
  const U64 size = shard.file->size();
  if (entry.offset > size || entry.bytes > size - entry.offset) {
    fail(ErrorCode::Truncated, "%llu bytes at %llu, the shard has %llu", n(entry.bytes), n(entry.offset),
         n(size));
  }
  const auto bytes = static_cast<std::size_t>(entry.bytes);
  const MutableBytes stored = buffers(is_alone).stored.get(bytes).first(bytes);
  if (shard.file->read_at(entry.offset, stored) != bytes) {
    fail(ErrorCode::Truncated, "the shard ends within its %llu bytes", n(entry.bytes));
  }
  codec_.decode(stored, out, is_alone);
}

// The part of one tile that lies in the box, to its place.
void TileReader::View::read_tile(const Box& box, std::span<const U64> tile, bool is_alone,
                                 MutableBytes out) const {
  const std::size_t item = metadata_.dtype.item_bytes();
  std::array<U64, kMaxRank> from{}, length{};  // of the part, within the tile
  U64 shard_number = 0, slot = 0, tile_number = 0, out_at = 0;
  bool is_whole = true;
  U64 run_dims = box.rank;  // dimensions from here on lie together in the tile and in `out`
  bool together = true;
  for (std::size_t d = 0; d < box.rank; ++d) {
    const U64 side = metadata_.tile[d], per_shard = metadata_.shard[d] / side;
    const U64 begin = std::max(box.start[d], tile[d] * side);
    const U64 end = std::min(box.start[d] + box.count[d], (tile[d] + 1) * side);
    from[d] = begin - tile[d] * side;
    length[d] = end - begin;
    is_whole = is_whole && length[d] == side && box.count[d] == side;
    shard_number = shard_number * ceil_div(metadata_.shape[d], metadata_.shard[d]) + tile[d] / per_shard;
    slot = slot * per_shard + tile[d] % per_shard;
    tile_number = tile_number * tiles_along(d) + tile[d];
    out_at = out_at * box.count[d] + (begin - box.start[d]);
  }
  for (std::size_t d = box.rank; d-- > 0 && together;) {
    run_dims = d;
    together = length[d] == metadata_.tile[d] && length[d] == box.count[d];
  }
  try {
    const std::shared_ptr<const Shard> found = shard(shard_number);
    if (is_whole) return decode_tile(*found, slot, is_alone, out);
    const auto bytes = static_cast<std::size_t>(tile_bytes_);
    const MutableBytes decoded = buffers(is_alone).tile.get(bytes).first(bytes);
    decode_tile(*found, slot, is_alone, decoded);
    U64 run = item, runs = 1, tile_at = 0;
    for (std::size_t d = 0; d < box.rank; ++d) {
      tile_at = tile_at * metadata_.tile[d] + from[d];
      (d < run_dims ? runs : run) *= length[d];
    }
    std::array<U64, kMaxRank> index{};
    for (U64 r = 0; r < runs; ++r) {
      std::memcpy(out.data() + out_at * item, decoded.data() + tile_at * item, static_cast<std::size_t>(run));
      U64 tile_stride = 1, out_stride = 1;
      for (std::size_t d = box.rank; d-- > 0;) {
        if (d < run_dims) {
          tile_at += tile_stride;
          out_at += out_stride;
          if (++index[d] < length[d]) break;
          tile_at -= length[d] * tile_stride;
          out_at -= length[d] * out_stride;
          index[d] = 0;
        }
        tile_stride *= metadata_.tile[d];
        out_stride *= box.count[d];
      }
    }
  } catch (Error& error) {
    error.at({Place::Kind::Tile, tile_number},
             files_.name_of(metadata_.key_of(shard_index_of(shard_number))));
    throw;
  }
}

void TileReader::View::read(std::span<const U64> start, std::span<const U64> count, MutableBytes out) const {
  Box box;
  box.rank = metadata_.shape.size();
  if (start.size() != box.rank || count.size() != box.rank) {
    fail(ErrorCode::InvalidArgument, "a box of %zu dimensions, the array has %zu", start.size(), box.rank);
  }
  U64 bytes = metadata_.dtype.item_bytes(), tiles = 1;
  for (std::size_t d = 0; d < box.rank; ++d) {
    if (start[d] > metadata_.shape[d] || count[d] > metadata_.shape[d] - start[d]) {
      fail(ErrorCode::OutOfRange, "%llu from %llu on along dimension %zu, the array has %llu", n(count[d]),
           n(start[d]), d, n(metadata_.shape[d]));
    }
    box.start[d] = start[d];
    box.count[d] = count[d];
    box.first_tile[d] = start[d] / metadata_.tile[d];
    box.tiles[d] = count[d] == 0 ? 0 : (start[d] + count[d] - 1) / metadata_.tile[d] - box.first_tile[d] + 1;
    if (!checked_mul(bytes, count[d], &bytes)) fail(ErrorCode::InvalidArgument, "the box is beyond 64 bits");
    tiles *= box.tiles[d];
  }
  if (bytes != out.size()) {
    fail(ErrorCode::InvalidArgument, "out has %zu bytes, the box %llu", out.size(), n(bytes));
  }
  if (bytes == 0) return;
  for_each(static_cast<std::size_t>(tiles), [&](std::size_t i) {
    std::array<U64, kMaxRank> tile{};
    for (std::size_t d = box.rank; d-- > 0;) {
      tile[d] = box.first_tile[d] + i % box.tiles[d];
      i /= static_cast<std::size_t>(box.tiles[d]);
    }
    read_tile(box, std::span(tile).first(box.rank), tiles == 1, out);
  });
}

TileReader::Stored TileReader::View::stored() const {
  U64 shards = 1;
  for (std::size_t d = 0; d < metadata_.shape.size(); ++d)
    shards *= ceil_div(metadata_.shape[d], metadata_.shard[d]);
  Stored total;
  for (U64 s = 0; s < shards; ++s) {
    const std::shared_ptr<const Shard> one = open_shard(s);
    for (const ShardEntry& entry : one->entries) {
      if (entry.is_absent()) continue;
      ++total.tiles;
      total.bytes += entry.bytes;
    }
  }
  U64 all = 1;
  for (std::size_t d = 0; d < metadata_.shape.size(); ++d) all *= tiles_along(d);
  total.absent_tiles = all - std::min(all, total.tiles);
  return total;
}

}  // namespace cdd::tiles
