#include "core/tiles/shard_writer.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/of_thread.h"
#include "core/simd/crc32c.h"

namespace cdd::tiles {
namespace {

using zarr::ShardEntry;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kCopiedBytes = 1 << 20;  // at once

// A hidden file beside a shard.
std::string beside(const std::string& key, const char* ending) {
  const std::size_t name = key.rfind('/') + 1;
  return key.substr(0, name) + "." + key.substr(name) + ending;
}
// What a shard goes on in, whole from the moment that it has this name, and before.
std::string copy_of(const std::string& key) { return beside(key, ".growing"); }
std::string unfinished_copy_of(const std::string& key) { return beside(key, ".copying"); }

}  // namespace

ShardWriter::ShardWriter(ArrayFiles& files, const Tiling& tiling, bool index_at_end, bool has_check)
    : files_(files),
      tiling_(tiling),
      index_at_end_(index_at_end),
      has_check_(has_check),
      shards_(static_cast<std::size_t>(tiling.row_shards())) {
  places_.reserve(static_cast<std::size_t>(tiling.layer_tiles()));
  for (std::uint64_t t = 0; t < tiling.layer_tiles(); ++t) places_.push_back(tiling.place_of(t));
}

std::uint64_t ShardWriter::index_bytes() const noexcept {
  return zarr::shard_index_bytes(tiling_.shard_tiles());
}

std::uint64_t ShardWriter::first_tile_offset() const noexcept {
  return index_at_end_ ? 0 : align_up(index_bytes(), kPageBytes);
}

void ShardWriter::begin_row(std::uint64_t row) {
  row_ = row;
  is_row_shown_ = false;
  for (Shard& shard : shards_) {
    shard.file.reset();
    shard.entries.clear();
    shard.is_shown = shard.is_copy = false;
  }
}

void ShardWriter::begin_layer(std::uint64_t layer, std::uint64_t frames) {
  const std::uint64_t row = layer / tiling_.shard_layers();
  if (row != row_) begin_row(row);
  layer_ = layer;
  frames_ = frames;
}

std::vector<std::byte> ShardWriter::index_of(const Shard& shard) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(index_bytes()));
  zarr::put_shard_index(shard.entries, bytes);
  const std::size_t checked = bytes.size() - 4;
  store<std::uint32_t>(bytes.data() + checked, simd::crc32c(bytes.data(), checked));
  return bytes;
}

// The shard, made where it is not there: with an empty index from its first moment, where that stands at the
// start.
ShardWriter::Shard& ShardWriter::opened(std::uint64_t number) {
  Shard& shard = shards_[static_cast<std::size_t>(number)];
  const std::lock_guard lock(shard.opening);
  if (shard.is_shown) go_on_in_copy(number);
  if (shard.file) return shard;
  shard.entries.assign(static_cast<std::size_t>(tiling_.shard_tiles()), ShardEntry{});
  // A file without an index, where readers count on fill values, is damage to them.
  const bool is_copy = index_at_end_ && is_row_shown_;
  std::string key = tiling_.shard_key(row_, number);
  if (is_copy) key = copy_of(key);
  std::vector<std::byte> first;
  if (!index_at_end_) {
    first = index_of(shard);
    first.resize(static_cast<std::size_t>(first_tile_offset()));
  }
  files_.publish(key, first);
  shard.file = files_.open(key, true);
  if (!shard.file) fail(ErrorCode::Closed, "%s has gone while it was written", files_.name_of(key).c_str());
  shard.is_copy = is_copy;
  shard.end = first_tile_offset();
  return shard;
}

// Whatever is written behind an index that stands at the end hides it, and all tiles with it, from readers.
// The copy stays where the writer is killed: the journal names what is in it.
void ShardWriter::go_on_in_copy(std::uint64_t number) {
  Shard& shard = shards_[static_cast<std::size_t>(number)];
  const std::string key = tiling_.shard_key(row_, number), unfinished = unfinished_copy_of(key);
  files_.publish(unfinished, {});
  std::unique_ptr<ArrayFile> copy = files_.open(unfinished, true);
  if (!copy) fail(ErrorCode::Closed, "%s has gone while it was written", files_.name_of(key).c_str());
  std::vector<std::byte> bytes(kCopiedBytes);
  for (std::uint64_t at = 0;;) {
    const std::size_t n = shard.file->read_at(at, bytes);
    if (n == 0) break;
    copy->write_at(at, Bytes(bytes).first(n));
    at += n;
  }
  copy->sync();
  copy.reset();
  files_.replace(unfinished, copy_of(key));
  copy = files_.open(copy_of(key), true);
  if (!copy) fail(ErrorCode::Closed, "%s has gone while it was written", files_.name_of(key).c_str());
  shard.file = std::move(copy);
  shard.is_shown = false;
  shard.is_copy = true;
}

void ShardWriter::show_finished() {
  is_row_shown_ = true;
  for (std::uint64_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[static_cast<std::size_t>(i)];
    // From here on readers see it, whatever becomes of the rest.
    if (!shard.is_copy) shard.is_shown = index_at_end_ && shard.file != nullptr;
    if (!shard.is_copy) continue;
    const std::string key = tiling_.shard_key(row_, i);
    // Whatever is promised of new frames: those that are there already stay durable.
    if (shard.is_unsynced.exchange(false)) shard.file->sync();
    shard.file.reset();  // some systems let no open file be renamed
    try {
      files_.replace(copy_of(key), key);
    } catch (...) {
      shard.file = files_.open(copy_of(key), true);
      throw;
    }
    shard.file = files_.open(key, true);
    shard.is_copy = false;
    shard.is_shown = true;
  }
}

ShardEntry& ShardWriter::entry_of(Shard& shard, std::uint64_t layer, std::uint64_t tile) const {
  const std::uint64_t slot = layer % tiling_.shard_layers() * tiling_.shard_layer_tiles() +
                             places_[static_cast<std::size_t>(tile)].slot;
  return shard.entries[static_cast<std::size_t>(slot)];
}

void ShardWriter::put(std::uint64_t tile, std::span<const Bytes> parts) {
  Shard& shard = opened(places_[static_cast<std::size_t>(tile)].shard);
  std::uint64_t bytes = has_check_ ? 4 : 0;
  for (const Bytes part : parts) bytes += part.size();
  std::uint32_t check = check_of(parts);
  thread_local OfThread<std::vector<Bytes>> list;
  std::byte tail[4];
  if (has_check_) {
    store<std::uint32_t>(tail, check);
    list.value.assign(parts.begin(), parts.end());
    list.value.emplace_back(tail, sizeof tail);
    parts = list.value;
    check = simd::crc32c(tail, sizeof tail, check);
  }
  const std::uint64_t offset = shard.end.fetch_add(bytes);
  shard.is_unsynced = true;
  shard.file->write_at(offset, parts);
  record(tile, {offset, bytes}, check);
}

void ShardWriter::put_fill(std::uint64_t tile) { record(tile, {}, 0); }

void ShardWriter::record(std::uint64_t tile, const ShardEntry& entry, std::uint32_t check) {
  Shard& shard = shards_[static_cast<std::size_t>(places_[static_cast<std::size_t>(tile)].shard)];
  bool is_there = !entry.is_absent();
  if (!is_there) {
    const std::lock_guard lock(shard.opening);
    is_there = shard.file != nullptr;
  }
  if (is_there) {
    const ShardEntry before = std::exchange(entry_of(shard, layer_, tile), entry);
    if (!before.is_absent()) {
      wasted_bytes_ += before.bytes;
      stored_bytes_ -= before.bytes;
    }
    shard.index_changed = true;
  }
  if (!entry.is_absent()) stored_bytes_ += entry.bytes;
  const std::lock_guard lock(records_mutex_);
  records_.push_back({layer_ * tiling_.layer_tiles() + tile, entry.offset, entry.bytes, frames_, check});
}

std::vector<JournalRecord> ShardWriter::take_records() {
  const std::lock_guard lock(records_mutex_);
  return std::exchange(records_, {});
}

void ShardWriter::sync() {
  for (Shard& shard : shards_) {
    if (shard.file && shard.is_unsynced.exchange(false)) shard.file->sync();
  }
}

void ShardWriter::write_indexes(bool is_finished) {
  if (index_at_end_ && !is_finished) return;
  for (std::uint64_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[static_cast<std::size_t>(i)];
    if (!shard.file || !shard.index_changed) continue;
    if (shard.is_shown) {
      if (read_index(*shard.file) == shard.entries) continue;
      go_on_in_copy(i);
    }
    shard.file->write_at(index_at_end_ ? shard.end.load() : 0, Bytes(index_of(shard)));
    shard.index_changed = false;
    shard.is_unsynced = true;
  }
}

// ---------------------------------------------------------------- taking up

void ShardWriter::remove_if_there(const std::string& key) {
  if (files_.open(key, false)) files_.remove(key);
}

void ShardWriter::open_row(std::uint64_t row, bool has_journal, bool is_shown) {
  begin_row(row);
  is_row_shown_ = is_shown;
  for (std::uint64_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[static_cast<std::size_t>(i)];
    const std::string key = tiling_.shard_key(row, i);
    if (index_at_end_) {
      if (has_journal) shard.file = files_.open(copy_of(key), true);
      if (!has_journal) remove_if_there(copy_of(key));
      remove_if_there(unfinished_copy_of(key));
    }
    shard.is_copy = shard.file != nullptr;
    if (!shard.file) shard.file = files_.open(key, true);
    if (!shard.file) continue;
    shard.is_shown = index_at_end_ && !shard.is_copy && !read_index(*shard.file).empty();
    shard.entries.assign(static_cast<std::size_t>(tiling_.shard_tiles()), ShardEntry{});
    shard.end = std::max(shard.file->size(), first_tile_offset());
    shard.index_changed = shard.is_unsynced = true;
  }
}

std::uint64_t ShardWriter::file_bytes(std::uint64_t shard) const {
  const auto& file = shards_[static_cast<std::size_t>(shard)].file;
  return file ? file->size() : 0;
}

std::vector<std::byte> ShardWriter::read(std::uint64_t shard, std::uint64_t offset,
                                         std::uint64_t bytes) const {
  std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  out.resize(shards_[static_cast<std::size_t>(shard)].file->read_at(offset, out));
  return out;
}

std::vector<ShardEntry> ShardWriter::read_index(const ArrayFile& file) const {
  const std::uint64_t size = file.size();
  if (size < index_bytes()) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(index_bytes()));
  if (file.read_at(index_at_end_ ? size - index_bytes() : 0, bytes) != bytes.size()) return {};
  const std::size_t checked = bytes.size() - 4;
  if (load<std::uint32_t>(bytes.data() + checked) != simd::crc32c(bytes.data(), checked)) return {};
  return zarr::parse_shard_index(Bytes(bytes).first(checked));
}

ShardWriter::ShownIndex ShardWriter::shown_index(std::uint64_t number) const {
  const Shard& shard = shards_[static_cast<std::size_t>(number)];
  std::unique_ptr<ArrayFile> shown;
  if (shard.is_copy) shown = files_.open(tiling_.shard_key(row_, number), false);
  const ArrayFile* const file = shard.is_copy ? shown.get() : shard.file.get();
  if (!file || file->size() == 0) return {};
  return {true, read_index(*file)};
}

void ShardWriter::adopt(std::uint64_t layer, std::uint64_t tile, const ShardEntry& entry) {
  Shard& shard = shards_[static_cast<std::size_t>(places_[static_cast<std::size_t>(tile)].shard)];
  if (!shard.file) return;
  entry_of(shard, layer, tile) = entry;
  if (!entry.is_absent()) stored_bytes_ += entry.bytes;
}

ShardEntry ShardWriter::entry(std::uint64_t layer, std::uint64_t tile) {
  Shard& shard = shards_[static_cast<std::size_t>(places_[static_cast<std::size_t>(tile)].shard)];
  return shard.file ? entry_of(shard, layer, tile) : ShardEntry{};
}

}  // namespace cdd::tiles
