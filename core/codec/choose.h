// Which scheme a chunk gets, by measuring: a trial encodes the chunk with several candidates and keeps the
// cheapest; chunks between trials are encoded once, by the winner.
//
// What a trial decides holds for chunks of about as many rows (a power of two and less than the next) that
// are like it: a chunk whose share of its raw bytes the winner never won with is a trial of all candidates,
// and so is the first of its number of rows, so that a few rows that were flushed early, or rows of zeros
// before a feed begins, decide nothing but their own chunk. All others of a kind are one in 16, 64, 256, 1024
// as long as the winner stays the same. Trials closer than 256 chunks to one of all candidates leave out
// those that were far off in it: a codec may encode at a tenth of the winner's speed.
//
// RAW, LZ4, zstd and byte planes are tried beside LEVELS and NUMERIC only where zstd makes fewer bytes than
// these. Profile::Dense takes the better compressor for each chunk, since what is compressed is there.
//
// A decision holds from the next chunk on. Chunks may be encoded ahead, by other threads; those that a
// decision overtakes are encoded anew, so the bytes are the same whether they were or not.
//
// A chunk that nothing shrinks is stored raw (not when a cast to float16 was asked for: then every chunk is
// cast). What was chosen is in the record; decoding knows nothing of this.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/codec/chunk_codec.h"

namespace cdd {

enum class Profile : std::uint8_t {
  Fast,   // least time to get a window: reading its chunk at 500 MB/s, then decoding what must be
  Dense,  // fewest stored bytes
};

// What a stored chunk costs its readers, the less the better: nanoseconds (Fast) or bytes (Dense).
double reading_cost(Profile profile, const Scheme& scheme, const EncodedChunk& chunk, std::size_t raw_bytes,
                    std::uint32_t n_rows);

// A chunk that is encoded but not taken yet. Its buffers only grow and are used again.
struct Encoding {
  EncodedChunk chunk;
  std::size_t asked = 0;    // the candidate that was to encode it
  std::size_t encoder = 0;  // the one that did: of several compressors the better
  double cost = 0;
  std::vector<std::byte> record;
  std::vector<std::byte> other;  // one that it is compared with
};

// Owned by one writer; not safe for concurrent use, but for encode_ahead().
class Chooser {
 public:
  // `schemes` come from schemes_for() with the same layout.
  Chooser(const RowLayout& layout, const std::vector<Scheme>& schemes, Profile profile);

  // Throws InvalidArgument where a cast to float16 is asked for and cannot hold these rows; encode() would
  // then throw too, whatever other rows they come with.
  void check_rows(Bytes rows, std::uint64_t n_rows) const;
  // Whether it may throw.
  bool casts() const noexcept { return !lossless_; }

  struct Chunk {
    Bytes rows;
    std::uint32_t n_rows;
  };

  // Encodes a chunk and appends its record to `out`, for seal_record() to finish. Throws what encode_chunk
  // throws, leaving `out` alone.
  EncodedChunk encode(const Chunk& chunk, std::vector<std::byte>& out);

  // encode() in two steps, of which the first may be taken for the next ahead() chunks of n_rows rows at
  // once, by any threads; the second follows in the order of the chunks, as long as stands() says so.
  std::uint32_t ahead(std::uint32_t n_rows) const noexcept;
  void encode_ahead(const Chunk& chunk, Encoding& into) const;
  bool stands(const Chunk& chunk, const Encoding& encoded) const noexcept;
  EncodedChunk take(const Chunk& chunk, const Encoding& encoded, std::vector<std::byte>& out);

 private:
  // Candidates that differ in the compressor only: one transform serves them all.
  struct Family {
    std::size_t begin;
    std::size_t end;
    bool plain;  // the rows or their planes
  };

  // What decisions about chunks of about as many rows know of a family.
  struct Standing {
    bool rival = true;  // not far off in the last trial of all
    // Stored by raw bytes of the trials that it won.
    double least_share = std::numeric_limits<double>::infinity();
    double most_share = 0;
  };

  struct Decision {
    std::size_t winner = 0;         // of the candidates
    std::uint32_t interval = 0;     // chunks from the last trial to the next; 0: there was none
    std::uint32_t since_trial = 0;  // chunks
    std::uint32_t since_full = std::numeric_limits<std::uint32_t>::max() / 2;  // the last trial of all
    std::vector<Standing> standings;
  };

  // The least of a family; these where all decline.
  struct Tried {
    double cost = std::numeric_limits<double>::infinity();
    std::uint32_t bytes = std::numeric_limits<std::uint32_t>::max();
  };

  Decision& decision(std::uint32_t n_rows) noexcept;
  const Decision& decision(std::uint32_t n_rows) const noexcept;
  bool is_alone() const noexcept { return candidates_.size() == 1; }
  bool trial_is_due(const Decision& decision) const noexcept;
  bool is_unlike(const Decision& decision, const Chunk& chunk, const Encoding& encoded) const noexcept;
  bool is_worse(const Decision& decision, const Chunk& chunk, const Encoding& encoded) const noexcept;
  static double share_of(const Chunk& chunk, const Encoding& encoded) noexcept;
  void begin(Decision& fresh, std::uint32_t n_rows) noexcept;
  std::size_t family_of(std::size_t candidate) const noexcept;
  Tried try_schemes(std::size_t begin, std::size_t end, const Chunk& chunk, std::optional<Hash128>& hash,
                    Encoding& into) const;
  void encode_by(std::size_t candidate, const Chunk& chunk, Encoding& into) const;
  void store_raw_if_smaller(const Chunk& chunk, Encoding& into) const;
  void try_candidates(const Chunk& chunk, Decision& decision, bool all);
  void consider_raw(const Chunk& chunk);
  void note_trial(const Chunk& chunk, Decision& decision, bool was_due) const;

  RowLayout layout_;
  std::vector<Scheme> candidates_;
  std::vector<Family> families_;
  Profile profile_;
  bool lossless_;
  std::array<Decision, 33> decisions_;  // by the bits of the number of rows
  std::uint32_t last_rows_ = 0;         // of the last chunk
  Encoding best_;                       // of a trial, or of a chunk that is encoded alone
};

}  // namespace cdd
