// What a writer has stored since its last row of shards was finished: ".cdd-journal" beside zarr.json. A
// writer that is killed leaves it, the next one takes up from there. It is also the writer's lock.
//
// Bytes: a header of 64 (magic, version, 16 random bytes, the bound of dimension 0, how many frames an array
// that was closed had, a fingerprint of the array, a check), then records of 40: tile, offset, stored bytes,
// frames, CRC-32C of the stored bytes, check of the record. Both checks enter the random bytes: records of
// another journal do not count. A record that says kCheckpoint for its tile says that everything before it is
// durable, and in its offset how many frames that are.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/tiles/files.h"

namespace cdd::tiles {

inline constexpr const char* kJournalKey = ".cdd-journal";

struct JournalRecord {
  static constexpr std::uint64_t kCheckpoint = ~std::uint64_t{0};
  std::uint64_t tile = 0;    // layer * tiles of a layer + tile of the layer
  std::uint64_t offset = 0;  // in its shard; both of a tile that is not stored are zarr's "absent"
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;  // of its layer, that were there when it was encoded
  std::uint32_t check = 0;   // of the stored bytes, their own check included
  bool operator==(const JournalRecord&) const noexcept = default;
};

struct JournalHeader {
  std::array<std::byte, 16> id{};
  std::uint64_t bound = 0;   // frames the array may have; 0: any number
  std::uint64_t frames = 0;  // that were there, whole, when the journal was begun
  std::uint32_t fingerprint = 0;
};

struct JournalContents {
  JournalHeader header;
  std::vector<JournalRecord> records;
  std::uint64_t dropped = 0;  // records whose check does not hold
};

// What the bytes of a journal say; nullopt where not even the header holds. Total on any bytes.
std::optional<JournalContents> parse_journal(Bytes bytes);

class Journal {
 public:
  // Takes the lock; EAGAIN while another writer has it. What was there is in found().
  explicit Journal(ArrayFiles& files);
  const std::optional<JournalContents>& found() const noexcept { return found_; }
  // Something was there that is no journal: not one that was begun and cut off.
  bool is_damaged() const noexcept { return is_damaged_; }

  // Begins anew, with fresh random bytes and no records; durable on return. `frames` are there already.
  void begin(std::uint64_t bound, std::uint64_t frames, std::uint32_t fingerprint);
  // Goes on behind the whole records that were found, of which the first `frames` frames are kept.
  void go_on(std::uint64_t bound, std::uint64_t frames);
  void append(std::span<const JournalRecord> records);
  // Forgets all records: their row of shards is finished.
  void clear();
  void sync() { file_->sync(); }
  // Removes the file and lets go of the lock.
  void remove(ArrayFiles& files);

 private:
  std::unique_ptr<ArrayFile> file_;
  std::optional<JournalContents> found_;
  bool is_damaged_ = false;
  JournalHeader header_;
  std::uint64_t end_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace cdd::tiles
