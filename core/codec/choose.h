// Which plan a chunk gets, by measuring: a trial encodes the chunk with several candidates and keeps the
// cheapest; chunks between trials are encoded once, by the winner. The first chunk is a trial, then one in
// 16, 64, 256, 1024 as long as the winner stays the same; a new winner, or compression that drifts by a
// fifth, starts over. Trials closer than 256 chunks to one of all candidates leave out those that were far
// off in it: a codec may encode at a tenth of the winner's speed.
//
// Chunks come in groups of 16, and what is decided holds from the next group on. So the chunks of a group may
// be encoded at the same time, and the bytes are the same whether they are or not.
//
// A chunk that nothing shrinks is stored raw (not when a cast to float16 was asked for: then every chunk is
// cast). What was chosen is in the record; decoding knows nothing of this.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codec/chunk_codec.h"

namespace cdd {

enum class Profile : std::uint8_t {
  Fast,   // least time to get a window: reading its chunk at 250 MB/s, then decoding what must be
  Dense,  // fewest stored bytes
};

// What a stored chunk costs its readers, the less the better: nanoseconds (Fast) or bytes (Dense).
double reading_cost(Profile profile, const ChunkPlan& plan, const EncodedChunk& chunk, std::size_t raw_bytes,
                    std::uint32_t n_rows);

// A chunk that is encoded but not taken yet. Its buffer only grows and is used again.
struct Encoding {
  EncodedChunk chunk;
  std::vector<std::byte> record;
};

// Owned by one writer; not safe for concurrent use, but for encode_ahead().
class Chooser {
 public:
  // `plans` come from plans_for() with the same layout.
  Chooser(const RowLayout& layout, std::vector<ChunkPlan> plans, Profile profile);

  // Throws InvalidArgument where a cast to float16 is asked for and cannot hold these rows; encode() would
  // then throw too, whatever other rows they come with.
  void check_rows(Bytes rows, std::uint64_t n_rows) const;

  struct Chunk {
    Bytes rows;
    std::uint32_t n_rows;
    ChunkPlace place;
  };

  // Encodes a chunk and appends its record to `out`. Throws what encode_chunk throws, leaving `out` alone.
  EncodedChunk encode(const Chunk& chunk, std::vector<std::byte>& out);

  // The same in two steps, of which the first may be taken for the next ahead() chunks at once, by any
  // threads; the second follows in the order of the chunks.
  std::uint32_t ahead() const noexcept;
  void encode_ahead(const Chunk& chunk, Encoding& into) const;
  EncodedChunk take(const Chunk& chunk, const Encoding& encoded, std::vector<std::byte>& out);

 private:
  struct Candidate {
    ChunkPlan plan;
    bool rival = true;  // not far off in the last trial of all
  };

  void encode_as(const ChunkPlan& plan, const Chunk& chunk, Encoding& into) const;
  void store_raw_if_smaller(const Chunk& chunk, Encoding& into) const;
  void try_candidates(const Chunk& chunk);
  bool trial_is_due() const noexcept;
  void note_share(double share, bool after_trial);

  RowLayout layout_;
  std::vector<Candidate> candidates_;
  Profile profile_;
  bool lossless_;
  std::size_t winner_ = 0;
  std::size_t group_winner_ = 0;
  std::uint32_t in_group_ = 0;     // chunks of the present group so far
  std::uint32_t interval_ = 0;     // chunks from the last trial to the next
  std::uint32_t since_trial_ = 0;  // chunks
  std::uint32_t since_full_;       // chunks since the last trial of all candidates
  double recent_share_ = 0;        // stored / raw bytes, smoothed over some 8 chunks
  double settled_share_ = 0;       // the same after the last trial
  Encoding best_;                  // of a trial, or of a chunk that is encoded alone
  Encoding rival_;                 // the one a trial compares with it
};

}  // namespace cdd
