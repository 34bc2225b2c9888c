// Goes on with an array that a writer closed or left: what the journal and the indexes name, and what of it
// is really there.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <optional>

#include "core/simd/crc32c.h"
#include "core/threads/for_each.h"
#include "core/tiles/tile_writer.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;
using zarr::ShardEntry;

constexpr U64 kMostFrames = std::numeric_limits<U64>::max() >> 1;

// The text of the zarr.json that is there.
zarr::ArrayMetadata read_metadata(const ArrayFiles& files) {
  const auto bytes = read_whole(files, kMetadataKey, Json::kMaxBytes);
  if (!bytes) fail_io(ENOENT, files.name_of(kMetadataKey), "cannot open %s");
  return zarr::ArrayMetadata::parse(
      Json::parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()}));
}

// What is known of one tile: by the journal, or by an index.
struct Candidate {
  ShardEntry entry;
  U64 frames = 0;
  std::optional<std::uint32_t> check;  // of its bytes, by the journal
  bool is_proved = false;              // a checkpoint came after it, or the array was closed
};

// Frames that are there whatever happened: of an array that was closed, and by the last checkpoint.
U64 proved_by(const JournalContents& journal) {
  const auto& records = journal.records;
  const auto found = std::find_if(records.rbegin(), records.rend(), [](const JournalRecord& record) {
    return record.tile == JournalRecord::kCheckpoint;
  });
  return std::max(journal.header.frames, found == records.rend() ? 0 : found->offset);
}

class Row {
 public:
  Row(const ShardWriter& shards, const Tiling& tiling, U64 row, bool has_check)
      : shards_(shards), tiling_(tiling), row_(row), has_check_(has_check) {}

  void add_records(const std::vector<JournalRecord>& records);
  void add_indexes(U64 readable_frames, U64 proved_frames);
  // Of the tiles of a layer that are there, the frames that all have; their entries.
  U64 find(U64 layer, std::vector<ShardEntry>& entries) const;

 private:
  void add_shown(U64 tile, Candidate shown, bool is_later_shown, bool is_shard_shown);
  bool holds(U64 tile, const Candidate& candidate) const;

  const ShardWriter& shards_;
  const Tiling& tiling_;
  const U64 row_;
  const bool has_check_;                              // behind each tile's bytes
  std::map<U64, std::vector<Candidate>> candidates_;  // by tile of the array, the latest last
};

void Row::add_records(const std::vector<JournalRecord>& records) {
  const U64 first = row_ * tiling_.shard_layers() * tiling_.layer_tiles();
  const U64 count = tiling_.shard_layers() * tiling_.layer_tiles();
  std::size_t proved = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].tile == JournalRecord::kCheckpoint) proved = i;
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    const JournalRecord& record = records[i];
    if (record.tile < first || record.tile - first >= count || record.frames > tiling_.layer_frames())
      continue;
    candidates_[record.tile].push_back(
        {{record.offset, record.bytes}, record.frames, record.check, i < proved});
  }
}

// What readers are shown, whatever has become of the journal.
void Row::add_indexes(U64 readable_frames, U64 proved_frames) {
  const U64 tiles = tiling_.layer_tiles(), shard_tiles = tiling_.shard_layer_tiles();
  std::vector<ShardWriter::ShownIndex> indexes;
  std::vector<U64> shown_layers;  // up to the last one of which the index names a tile
  for (U64 s = 0; s < tiling_.row_shards(); ++s) {
    indexes.push_back(shards_.shown_index(s));
    const auto& entries = indexes.back().entries;
    const auto last = std::find_if(entries.rbegin(), entries.rend(),
                                   [](const ShardEntry& entry) { return !entry.is_absent(); });
    const auto named = static_cast<U64>(entries.rend() - last);
    shown_layers.push_back((named + shard_tiles - 1) / shard_tiles);
  }
  for (U64 i = 0; i < tiling_.shard_layers(); ++i) {
    const U64 layer = row_ * tiling_.shard_layers() + i;
    const U64 first = layer * tiling_.layer_frames();
    if (first >= readable_frames) return;
    const U64 frames = std::min(tiling_.layer_frames(), readable_frames - first);
    for (U64 t = 0; t < tiles; ++t) {
      const Tiling::Place place = tiling_.place_of(t);
      const auto& [has_file, entries] = indexes[static_cast<std::size_t>(place.shard)];
      if (has_file && entries.empty()) continue;  // torn, or not there yet: only the journal knows
      Candidate shown{{}, frames, std::nullopt, !has_file || first + frames <= proved_frames};
      if (has_file) shown.entry = entries[static_cast<std::size_t>(i * shard_tiles + place.slot)];
      const U64 layers = shown_layers[static_cast<std::size_t>(place.shard)];
      add_shown(layer * tiles + t, shown, i + 1 < layers, i < layers);
    }
  }
}

// Among those of the journal by the time when it was stored. Tiles are put behind one another, so that the
// offset tells. A tile that is not stored has none: it was before those that are, or is the last of its kind.
// After a power cut an index may be an old one: it tells of such a tile only where it names what came later.
void Row::add_shown(U64 tile, Candidate shown, bool is_later_shown, bool is_shard_shown) {
  std::vector<Candidate>& known = candidates_[tile];
  auto place = known.begin();
  if (shown.entry.is_absent()) {
    const bool is_one_kind =
        std::all_of(known.begin(), known.end(), [](const Candidate& c) { return c.entry.is_absent(); });
    shown.is_proved |= is_later_shown || (is_shard_shown && is_one_kind);
    if (is_one_kind && !known.empty() && known.back().frames < shown.frames) place = known.end();
  } else {
    place = std::find_if(known.begin(), known.end(), [&](const Candidate& c) {
      return !c.entry.is_absent() && c.entry.offset >= shown.entry.offset;
    });
    for (const Candidate& c : known) {
      if (c.entry == shown.entry && c.check && *c.check != 0) shown.check = c.check;
    }
  }
  known.insert(place, shown);
}

bool Row::holds(U64 tile, const Candidate& candidate) const {
  if (candidate.entry.is_absent()) return candidate.is_proved || candidate.check;
  const U64 shard = tiling_.place_of(tile % tiling_.layer_tiles()).shard;
  U64 end = 0;
  if (!checked_add(candidate.entry.offset, candidate.entry.bytes, &end) || end > shards_.file_bytes(shard)) {
    return false;
  }
  // Of what readers are shown without any check the journal alone could say that it is something else.
  if (candidate.is_proved || (!candidate.check && !has_check_)) return true;
  const std::vector<std::byte> bytes = shards_.read(shard, candidate.entry.offset, candidate.entry.bytes);
  if (candidate.check) return simd::crc32c(bytes.data(), bytes.size()) == *candidate.check;
  if (bytes.size() < 4) return false;
  const std::size_t checked = bytes.size() - 4;
  return simd::crc32c(bytes.data(), checked) == load<std::uint32_t>(bytes.data() + checked);
}

U64 Row::find(U64 layer, std::vector<ShardEntry>& entries) const {
  const U64 tiles = tiling_.layer_tiles();
  entries.assign(static_cast<std::size_t>(tiles), ShardEntry{});
  std::vector<U64> frames(static_cast<std::size_t>(tiles), 0);
  for_each(static_cast<std::size_t>(tiles), [&](std::size_t t) {
    const auto found = candidates_.find(layer * tiles + t);
    if (found == candidates_.end()) return;
    for (auto c = found->second.rbegin(); c != found->second.rend(); ++c) {
      if (!holds(found->first, *c)) continue;
      entries[t] = c->entry;
      frames[t] = c->frames;
      return;
    }
  });
  return *std::min_element(frames.begin(), frames.end());
}

}  // namespace

std::unique_ptr<TileWriter> TileWriter::open(std::unique_ptr<ArrayFiles> files, const TileOptions& given,
                                             U64 bound, U64 most) {
  const std::string name = files->name_of(kMetadataKey);
  try {
    zarr::ArrayMetadata metadata = read_metadata(*files);  // first, so that nothing is made where no array is
    auto journal = std::make_unique<Journal>(*files);
    metadata = read_metadata(*files);  // what it is now that nobody else writes
    const std::uint32_t fingerprint = fingerprint_of(metadata);
    const auto& found = journal->found();
    if (journal->is_damaged() && metadata.index_at_end) {
      fail(ErrorCode::Corrupt, "its journal is damaged, and nothing else names what is in its last shards");
    }
    if (found && found->header.fingerprint != fingerprint) {
      fail(ErrorCode::Corrupt, "its journal is of another array");
    }
    if (bound == 0 && found) bound = found->header.bound;
    const U64 readable = metadata.shape[0];
    if (bound > kMostFrames || (bound != 0 && bound < readable)) {
      fail(ErrorCode::InvalidArgument, "a bound of %llu frames for an array that has %llu",
           static_cast<unsigned long long>(bound), static_cast<unsigned long long>(readable));
    }
    const TileOptions options = options_of(metadata, given, bound);
    std::unique_ptr<TileWriter> writer(new TileWriter(std::move(files), options, std::move(journal)));
    writer->resume(readable, most);
    return writer;
  } catch (Error& error) {
    if (error.code() == ErrorCode::Io) throw;
    throw Error(error.code(), name + ": " + error.what(), error.place());
  }
}

void TileWriter::resume(U64 readable, U64 most) {
  std::vector<JournalRecord> records;
  const std::uint32_t fingerprint = fingerprint_of(metadata_of(options_, tiling_, codec_, 0));
  if (journal_->found()) records = journal_->found()->records;
  const U64 proved = journal_->found() ? proved_by(*journal_->found()) : ~U64{0};
  const U64 n0 = tiling_.layer_frames();
  readable = std::min(readable, most);
  shown_->frames = readable;
  U64 layer = readable / n0 / tiling_.shard_layers() * tiling_.shard_layers();
  std::vector<ShardEntry> entries;
  std::vector<JournalRecord> kept;
  U64 frames = n0;
  while (frames == n0) {
    const U64 row = layer / tiling_.shard_layers();
    shards_.open_row(row, journal_->found().has_value(), readable > layer * n0);
    Row candidates(shards_, tiling_, row, codec_.coding().has_check);
    candidates.add_records(records);
    candidates.add_indexes(readable, proved);
    kept.clear();
    for (U64 i = 0; i < tiling_.shard_layers() && frames == n0; ++i) {
      frames = candidates.find(layer, entries);
      frames = std::min(frames, most - std::min(most, layer * n0));
      if (bound_ != 0) frames = std::min(frames, bound_ - std::min(bound_, layer * n0));
      for (U64 t = 0; frames != 0 && t < entries.size(); ++t) {
        const ShardEntry& entry = entries[static_cast<std::size_t>(t)];
        shards_.adopt(layer, t, entry);
        kept.push_back({layer * tiling_.layer_tiles() + t, entry.offset, entry.bytes, frames, 0});
      }
      if (frames == n0) ++layer;
    }
    if (frames == n0) {  // a whole row whose end nobody has noted
      shards_.write_indexes(true);
      if (options_.durability != Durability::None) shards_.sync();
      shards_.show_finished();
      shards_.leave_row();
    }
  }
  const U64 total = layer * n0 + frames;
  check_whole(total, readable, most);
  head_ = tail_ = layer;
  received_bytes_ = total * tiling_.frame_bytes();
  if (frames != 0) refill(layer, frames);
  if (journal_->found()) {
    journal_->go_on(bound_, total);
  } else {
    journal_->begin(bound_, total, fingerprint);
  }
  // What is kept has been looked at: the records need no check of the bytes where a checkpoint follows.
  const bool durable = options_.durability != Durability::None;
  kept.push_back({JournalRecord::kCheckpoint, durable ? total : 0, 0, 0, 0});
  if (durable) shards_.sync();
  journal_->append(kept);
  encoded_frames_ = total;
  commit(total, durable, false);
}

// What was durable must be there. Frames that readers saw may be gone after a power cut; without a journal,
// the array was closed, and all of them must be there.
void TileWriter::check_whole(U64 total, U64 readable, U64 most) const {
  U64 least = readable;
  if (journal_->found()) least = std::min(most, proved_by(*journal_->found()));
  if (total >= least) return;
  fail(ErrorCode::Corrupt, "%llu frames are to be there, %llu of them are whole",
       static_cast<unsigned long long>(least), static_cast<unsigned long long>(total));
}

// Decodes the tiles of a layer that is not full back into planes.
void TileWriter::refill(U64 number, U64 frames) {
  Layer& layer = filling();
  layer.begin(number);
  const U64 slabs = (frames + tiling_.slab_frames() - 1) / tiling_.slab_frames();
  for (U64 s = 0; s < slabs; ++s) layer.take_slab(s);
  const auto plane = static_cast<std::size_t>(tiling_.plane_bytes());
  for_each(static_cast<std::size_t>(tiling_.layer_tiles()), [&](std::size_t t) {
    std::vector<std::byte> tile(static_cast<std::size_t>(tiling_.tile_bytes()));
    const ShardEntry entry = shards_.entry(number, t);
    if (entry.is_absent()) {
      for (std::size_t at = 0; at < tile.size(); at += plane) {
        std::copy_n(fill_.begin(), plane, tile.begin() + static_cast<std::ptrdiff_t>(at));
      }
    } else {
      codec_.decode(shards_.read(tiling_.place_of(t).shard, entry.offset, entry.bytes), tile);
    }
    for (U64 s = 0; s < slabs; ++s) std::copy_n(tile.data() + s * plane, plane, layer.slab(s)[t]);
  });
  layer.set_frames(frames);
  slab_ = frames / tiling_.slab_frames();
  at_ = frames % tiling_.slab_frames() * tiling_.frame_bytes();
  has_slab_ = at_ != 0;
  flushed_frames_ = frames;
}

}  // namespace cdd::tiles
