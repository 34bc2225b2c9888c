// One chunk in memory: raw rows <-> a whole CHUNK record, checks included.
//
//   encode_chunk      transform_chunk -> make_record (compress, header, hash) -> seal_record (record_check)
//   decode_chunk_rows check -> decompress -> inverse transform -> the caller's rows
//
// When a record's flags name a compressor, its payload is: u32 size of the transform's output, then the
// compressed bytes. Layout of the record itself: core/format/cdd/record.h. Specification:
// docs/formats/cdd.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/hash.h"
#include "core/codec/codec.h"
#include "core/codec/compressor.h"
#include "core/format/cdd/record.h"

namespace cdd {

// How to write a chunk: a codec and what follows it. Decoding needs none of this, the record says it all.
struct Scheme {
  const Codec* codec = nullptr;
  Compressor compressor = Compressor::None;
  int level = 3;
  bool byte_planes = false;
  Float16Options float16;
  bool smallest = false;
  bool coded = false;
};

// Where a record stands: what its check is keyed with.
struct ChunkKey {
  std::uint64_t salt = 0;
  std::uint64_t number = 0;
};

// Which checks a read makes (format.md, "Reading"). Memory safety never depends on it.
enum class Verify : std::uint8_t {
  None,    // no check at all
  Stored,  // record_check over the stored bytes
  Full,    // also the hash of the decoded rows; decodes the whole chunk
};

// Most bytes of the record for n_rows rows under `scheme`.
std::size_t record_bound(const RowLayout& layout, std::uint32_t n_rows, const Scheme& scheme);

struct EncodedChunk {
  std::uint32_t record_bytes = 0;       // 0: the scheme's codec declined this chunk
  std::uint32_t record_check = 0;       // once it is sealed
  std::uint32_t transformed_bytes = 0;  // what the codec made of the rows, before the compressor
  CastError cast_error;
};

// Encodes `rows` (n_rows of `layout`) as the record of chunk `key`. `out` has record_bound() bytes and
// padding behind them. No record where the codec declines; LEVELS and NUMERIC also do where their payload,
// decoded again, is not the rows.
EncodedChunk encode_chunk(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Scheme& scheme,
                          const ChunkKey& key, MutableBytes out);

// The same in three steps, so that schemes which differ in the compressor share the first, and all schemes
// the hash of the rows. The third is seal_record().
//
// What the scheme's codec makes of the rows, in this thread's scratch until the next call; or where
// make_record needs it in `record`, if one is given and no compressor follows.
struct Transformed {
  Bytes bytes;  // none: the codec declined
  std::uint64_t flags = 0;
  std::optional<Hash128> hash;  // after a cast to float16: of the rows that readers get
  CastError cast_error;
};
Transformed transform_chunk(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Scheme& scheme,
                            MutableBytes record = {});
// A record without its check. `hash` is of the rows; `out` as for encode_chunk.
EncodedChunk make_record(const RowLayout& layout, std::uint32_t n_rows, const Scheme& scheme,
                         const Transformed& transformed, const Hash128& hash, MutableBytes out);

// Says in a finished record whether more records of its append follow, and gives it the record_check of
// `key`, which it returns.
std::uint32_t seal_record(MutableBytes record, const ChunkKey& key, bool continued) noexcept;

// Error{Checksum} unless the record's last four bytes are the check of those before. At least
// kMinRecordBytes.
void check_record(Bytes record, const ChunkKey& key);
// The same for a record whose check stands elsewhere, too.
void check_record(Bytes record, const ChunkKey& key, std::uint32_t expected);

// Decodes rows of one record into out (range.count * row_bytes), or `cells` of these rows, which must be
// within a row (range.count * cells_bytes). `record` is exactly the stored record with kScratchPadding
// readable bytes behind it. Throws Checksum, Corrupt or Unsupported; `out` may then hold anything.
void decode_chunk_rows(const RowLayout& layout, Bytes record, const ChunkKey& key, Verify verify,
                       std::uint32_t n_rows, RowRange range, std::byte* out, const Cells* cells = nullptr);

// Whether a record of at least kMinRecordBytes says that its payload must be decompressed whole.
bool is_compressed(Bytes record) noexcept;

// Whether decoding some rows of such a record costs so much that a copy of the record is had for a few
// percent of it.
bool is_dear(Bytes record) noexcept;

// "levels", "okx_ob_f32+zstd", "planes+lz4": the name of what a record holds, for people.
std::string codec_name(std::uint16_t type, std::uint64_t flags);

}  // namespace cdd
