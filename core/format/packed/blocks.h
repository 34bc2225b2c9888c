// The blocks of version 2: headers, schema, directory of columns, footer and trailer, as structs and as
// bytes. docs/formats/packed.md has every field. No I/O, no compression.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/format/packed/rows.h"

namespace cdd::packed {

inline constexpr std::size_t kBlockAlign = 64;
inline constexpr std::size_t kBlockHeaderBytes = 64;
inline constexpr std::uint32_t kBlockMagic = 0x32424B50;    // "PKB2"
inline constexpr std::uint32_t kTrailerMagic = 0x32454B50;  // "PKE2"
inline constexpr std::uint64_t kMaxStored = (1u << 31) - 64;
inline constexpr std::uint64_t kMaxRaw = 1u << 31;

enum class BlockKind : std::uint16_t { Schema = 1, Rows = 2, Columns = 3, Footer = 4 };

inline constexpr std::uint16_t kFlagLz4 = 1;
inline constexpr std::uint16_t kFlagZstd = 2;
inline constexpr std::uint16_t kFlagRagged = 4;  // of rows

struct BlockHeader {
  BlockKind kind = BlockKind::Rows;
  std::uint16_t flags = 0;
  std::uint64_t position = 0;
  std::uint64_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t fields = 0;
  std::uint32_t stored = 0;
  std::uint32_t raw = 0;
  std::uint8_t width = 0;
  std::uint64_t body_check = 0;

  std::uint64_t end() const noexcept { return align_up(position + kBlockHeaderBytes + stored, kBlockAlign); }
};

void put_block_header(const BlockHeader& header, std::byte* out) noexcept;

// The header at `position` of the file, or nothing where there is none that holds: fewer bytes, another magic
// or position, a wrong check. Throws Unsupported for a whole header with an unknown kind or flag, Corrupt for
// one whose numbers no writer makes.
std::optional<BlockHeader> parse_block_header(Bytes file, std::uint64_t position);

// The 24 bytes that a file of version 2 begins with: numbers are not known when it is begun.
void put_stream_header(std::byte* out) noexcept;

inline constexpr std::uint16_t kTypeText = 0x4000;
inline constexpr std::uint16_t kTypeBytes = 0x4001;
inline constexpr std::uint16_t kTypeDictionary = 0x4002;  // of a column that the schema calls text

struct SchemaColumn {
  std::string name;
  std::uint16_t type = kTypeText;
  bool nullable = false;
};

struct Schema {
  std::vector<SchemaColumn> columns;
  std::vector<std::byte> user_meta;
};

std::vector<std::byte> schema_body(const Schema& schema);
Schema parse_schema(Bytes body);  // throws Corrupt, Unsupported

inline constexpr std::size_t kEntryBytes = 40;

// Of the directory of a block of columns.
struct ColumnEntry {
  std::uint16_t type = kTypeText;
  std::uint8_t encoding = 0;  // 0 plain, 1 LZ4, 2 zstd, 3 a payload of `codec`
  std::uint8_t width = 0;     // of a dictionary's codes, 1, 2 or 4 bytes
  std::uint16_t codec = 0;
  std::uint32_t nulls = 0;
  std::uint32_t offset = 0;  // in the body
  std::uint32_t stored = 0;
  std::uint32_t raw = 0;
  std::uint64_t check = 0;
  std::uint64_t codec_flags = 0;
};

void put_column_entry(const ColumnEntry& entry, std::byte* out) noexcept;
ColumnEntry parse_column_entry(const std::byte* in);

struct IndexEntry {
  std::uint64_t position = 0;
  std::uint64_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t stored = 0;
  BlockKind kind = BlockKind::Rows;
  std::uint16_t flags = 0;
};

struct Footer {
  std::uint64_t rows = 0;
  std::vector<IndexEntry> blocks;
};

std::vector<std::byte> footer_body(const Footer& footer);
Footer parse_footer(Bytes body);

inline constexpr std::size_t kTrailerBytes = 64;

struct Trailer {
  std::uint64_t footer = 0;  // its position
  std::uint64_t rows = 0;
  std::uint64_t file_bytes = 0;
};

void put_trailer(const Trailer& trailer, std::byte* out) noexcept;

// The trailer at the end of a finished file, or nothing.
std::optional<Trailer> parse_trailer(Bytes file) noexcept;

}  // namespace cdd::packed
