// Every constant of the .cdd file format, version 1. Writer, reader and recovery share this header; the
// specification with the reasons is docs/formats/cdd.md.
//
//   file    := header block record* (block record*)*
//   header  := u32 MAGIC, u16 VERSION, u32 length, METADATA (zstd), u32 length, USER_META (zstd, or nothing)
//   block   := u32 size, u16 type, u64 hash[2], entries, link                    CHUNK_OFFSETS
//   record  := u32 size, u16 type, u16 dtype, u64 hash[2], u64 flags, u32 dims..., u32 0, payload, u32 check
//   CHUNK
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd {

// ---- header
inline constexpr std::uint32_t kMagic = 0x46444443;  // "CDDF"
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kMetadataAt = 6;       // of METADATA's length
inline constexpr std::size_t kMetadataBytes = 128;  // before compression
inline constexpr std::uint32_t kMaxMetadataBlob = 4096;
inline constexpr std::uint32_t kMaxUserMetaBytes = 64u << 20;  // of the user's bytes, before compression

// ---- CHUNK_OFFSETS blocks
inline constexpr std::size_t kBlockHeaderBytes = 22;
inline constexpr std::size_t kBlockHashAt = 6;
inline constexpr std::uint64_t kSlotArrayAlignment = 64;
inline constexpr std::uint32_t kDefaultFirstCapacity =
    128;  // chunks of the first block; each block doubles it
inline constexpr std::uint32_t kMaxCapacity = 1u << 20;
inline constexpr std::uint32_t kGrowth = 2;

enum class BlockType : std::uint16_t {
  Offsets = 0,     // u64 offsets, sealed
  OffsetsLz4 = 1,  // the same through LZ4, sealed
  Slots = 2,       // 32-byte slots, what the writer uses
};

// ---- slots: u64 offset | u64 row_end | u32 size | u32 record_check | u32 flags | u32 slot_check
inline constexpr std::size_t kSlotBytes = 32;
namespace slot_flags {
inline constexpr std::uint32_t kSynced = 1;  // everything before this slot was durable when it was written
inline constexpr std::uint32_t kEnd = 2;     // last chunk of one append
inline constexpr std::uint32_t kCommit = 4;  // not a chunk: what was written ends here, and is durable
inline constexpr std::uint32_t kLink = 8;    // not a chunk: offset is the next block's
}  // namespace slot_flags
inline constexpr std::uint64_t kLinkKey = std::uint64_t{1}
                                          << 63;  // check key of block k's link: kLinkKey | k

inline constexpr std::uint64_t kMaxRows = ~std::uint64_t{0} >> 1;  // of a store

// ---- CHUNK records
inline constexpr std::size_t kRecordFixedBytes = 32;  // before the dimensions
inline constexpr std::size_t kRecordTypeAt = 4;
inline constexpr std::size_t kRecordFlagsAt = 24;
inline constexpr std::size_t kRecordCheckBytes = 4;
inline constexpr std::uint64_t kRecordAlignment = 8;
// The smallest record: one dimension, the terminating zero, an empty payload.
inline constexpr std::uint32_t kMinRecordBytes = kRecordFixedBytes + 4 + 4 + kRecordCheckBytes;

// Flags of a CHUNK. Bits that this version does not know are refused.
namespace chunk_flags {
inline constexpr std::uint64_t kLz4 = 1;           // the payload is LZ4-compressed
inline constexpr std::uint64_t kZstd = 2;          // the payload is zstd-compressed
inline constexpr std::uint64_t kLittleEndian = 4;  // byte order of the items; this version writes no other
inline constexpr std::uint64_t kBigEndian = 8;
inline constexpr std::uint64_t kDownCast8 = 16;  // items are stored smaller than the reader returns them
inline constexpr std::uint64_t kDownCast16 = 32;
inline constexpr std::uint64_t kDownCast32 = 64;
inline constexpr std::uint64_t kDownCast64 = 128;
inline constexpr std::uint64_t kDownCast128 = 256;
inline constexpr std::uint64_t kRecordCheck = 512;  // the record ends with its check; always set
inline constexpr std::uint64_t kBatchCont = 1024;   // more records of this append follow
inline constexpr std::uint64_t kBytePlanes = 2048;  // type 1: byte planes rather than rows
inline constexpr std::uint64_t kKnown =
    kLz4 | kZstd | kLittleEndian | kDownCast16 | kRecordCheck | kBatchCont | kBytePlanes;  // by this version
}  // namespace chunk_flags

}  // namespace cdd
