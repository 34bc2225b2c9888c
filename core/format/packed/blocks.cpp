#include "core/format/packed/blocks.h"

#include <algorithm>
#include <cstring>

#include "core/base/hash.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

constexpr std::size_t kIndexEntryBytes = 32;

template <class T>
void append(std::vector<std::byte>& out, std::type_identity_t<T> value) {
  const std::byte* const p = as_bytes(&value);
  out.insert(out.end(), p, p + sizeof value);
}

bool all_zero(const std::byte* p, std::size_t n) noexcept {
  return std::all_of(p, p + n, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

void put_block_header(const BlockHeader& header, std::byte* out) noexcept {
  std::memset(out, 0, kBlockHeaderBytes);
  store<std::uint32_t>(out, kBlockMagic);
  store<std::uint16_t>(out + 4, static_cast<std::uint16_t>(header.kind));
  store<std::uint16_t>(out + 6, header.flags);
  store<std::uint64_t>(out + 8, header.position);
  store<std::uint64_t>(out + 16, header.first_row);
  store<std::uint32_t>(out + 24, header.rows);
  store<std::uint32_t>(out + 28, header.fields);
  store<std::uint32_t>(out + 32, header.stored);
  store<std::uint32_t>(out + 36, header.raw);
  store<std::uint8_t>(out + 40, header.width);
  store<std::uint64_t>(out + 48, header.body_check);
  store<std::uint32_t>(out + 60, static_cast<std::uint32_t>(hash64({out, 60})));
}

std::optional<BlockHeader> parse_block_header(Bytes file, std::uint64_t position) {
  if (position > file.size() || file.size() - position < kBlockHeaderBytes) return std::nullopt;
  const std::byte* const in = file.data() + position;
  if (load<std::uint32_t>(in) != kBlockMagic || load<std::uint64_t>(in + 8) != position ||
      load<std::uint32_t>(in + 60) != static_cast<std::uint32_t>(hash64({in, 60}))) {
    return std::nullopt;
  }
  BlockHeader header;
  const auto kind = load<std::uint16_t>(in + 4);
  header.kind = static_cast<BlockKind>(kind);
  header.flags = load<std::uint16_t>(in + 6);
  header.position = position;
  header.first_row = load<std::uint64_t>(in + 16);
  header.rows = load<std::uint32_t>(in + 24);
  header.fields = load<std::uint32_t>(in + 28);
  header.stored = load<std::uint32_t>(in + 32);
  header.raw = load<std::uint32_t>(in + 36);
  header.width = load<std::uint8_t>(in + 40);
  header.body_check = load<std::uint64_t>(in + 48);
  if (kind < 1 || kind > 4) {
    fail(ErrorCode::Unsupported, "the block at 0x%llx is of kind %u: this version of cdd knows 1 to 4",
         static_cast<ull>(position), kind);
  }
  const unsigned known = header.kind == BlockKind::Rows     ? kFlagLz4 | kFlagZstd | kFlagRagged
                         : header.kind == BlockKind::Schema ? kFlagLz4 | kFlagZstd
                                                            : 0u;
  if ((header.flags & ~known) != 0) {
    fail(ErrorCode::Unsupported, "the block at 0x%llx has unknown flags 0x%x", static_cast<ull>(position),
         header.flags & ~known);
  }
  const bool both = (header.flags & kFlagLz4) != 0 && (header.flags & kFlagZstd) != 0;
  const bool packed = (header.flags & (kFlagLz4 | kFlagZstd)) != 0;
  const unsigned width = header.width;
  const bool width_fits =
      header.kind == BlockKind::Rows ? width == 1 || width == 2 || width == 4 : width == 0;
  const bool reserved = all_zero(in + 41, 7) && all_zero(in + 56, 4);
  if (both || header.stored > kMaxStored || header.raw > kMaxRaw ||
      (!packed && header.stored != header.raw) || !width_fits || !reserved) {
    fail(ErrorCode::Corrupt, "the block at 0x%llx has a header that no writer makes",
         static_cast<ull>(position));
  }
  return header;
}

void put_stream_header(std::byte* out) noexcept { put_header({2, kUnknown32, kUnknown32, kUnknown64}, out); }

std::vector<std::byte> schema_body(const Schema& schema) {
  std::vector<std::byte> body(kHeaderBytes);
  put_stream_header(body.data());
  append<std::uint32_t>(body, static_cast<std::uint32_t>(schema.user_meta.size()));
  append<std::uint32_t>(body, static_cast<std::uint32_t>(schema.columns.size()));
  for (const SchemaColumn& column : schema.columns) {
    append<std::uint16_t>(body, column.type);
    append<std::uint16_t>(body, column.nullable);
    append<std::uint32_t>(body, static_cast<std::uint32_t>(column.name.size()));
    const std::byte* const name = as_bytes(static_cast<const void*>(column.name.data()));
    body.insert(body.end(), name, name + column.name.size());
  }
  body.insert(body.end(), schema.user_meta.begin(), schema.user_meta.end());
  return body;
}

Schema parse_schema(Bytes body) {
  ByteReader in(body);
  std::byte expected[kHeaderBytes];
  put_stream_header(expected);
  if (std::memcmp(in.take(kHeaderBytes).data(), expected, kHeaderBytes) != 0) {
    fail(ErrorCode::Corrupt, "the schema repeats another header than the file's");
  }
  Schema schema;
  const auto meta_bytes = in.take<std::uint32_t>();
  const auto columns = in.take<std::uint32_t>();
  if (columns > in.left() / 8) fail(ErrorCode::Corrupt, "%u columns do not fit in the schema", columns);
  for (std::uint32_t c = 0; c < columns; ++c) {
    SchemaColumn column;
    column.type = in.take<std::uint16_t>();
    const auto flags = in.take<std::uint16_t>();
    if (flags > 1) fail(ErrorCode::Unsupported, "column %u has unknown flags 0x%x", c, flags);
    column.nullable = flags == 1;
    const Bytes name = in.take(in.take<std::uint32_t>());
    column.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    schema.columns.push_back(std::move(column));
  }
  const Bytes meta = in.take(meta_bytes);
  schema.user_meta.assign(meta.begin(), meta.end());
  if (in.left() != 0) fail(ErrorCode::Corrupt, "%zu bytes follow the schema", in.left());
  return schema;
}

void put_column_entry(const ColumnEntry& entry, std::byte* out) noexcept {
  std::memset(out, 0, kEntryBytes);
  store<std::uint16_t>(out, entry.type);
  store<std::uint8_t>(out + 2, entry.encoding);
  store<std::uint8_t>(out + 3, entry.width);
  store<std::uint16_t>(out + 4, entry.codec);
  store<std::uint32_t>(out + 8, entry.nulls);
  store<std::uint32_t>(out + 12, entry.offset);
  store<std::uint32_t>(out + 16, entry.stored);
  store<std::uint32_t>(out + 20, entry.raw);
  store<std::uint64_t>(out + 24, entry.check);
  store<std::uint64_t>(out + 32, entry.codec_flags);
}

ColumnEntry parse_column_entry(const std::byte* in) {
  ColumnEntry entry;
  entry.type = load<std::uint16_t>(in);
  entry.encoding = load<std::uint8_t>(in + 2);
  entry.width = load<std::uint8_t>(in + 3);
  entry.codec = load<std::uint16_t>(in + 4);
  entry.nulls = load<std::uint32_t>(in + 8);
  entry.offset = load<std::uint32_t>(in + 12);
  entry.stored = load<std::uint32_t>(in + 16);
  entry.raw = load<std::uint32_t>(in + 20);
  entry.check = load<std::uint64_t>(in + 24);
  entry.codec_flags = load<std::uint64_t>(in + 32);
  if (entry.encoding > 3)
    fail(ErrorCode::Unsupported, "a column has the unknown encoding %u", entry.encoding);
  const bool right_width = entry.type == kTypeDictionary
                               ? entry.width == 1 || entry.width == 2 || entry.width == 4
                               : entry.width == 0;
  const bool right_codec = entry.encoding == 3 || (entry.codec == 0 && entry.codec_flags == 0);
  if (load<std::uint16_t>(in + 6) != 0 || !right_width || !right_codec ||
      (entry.encoding == 0 && entry.stored != entry.raw)) {
    fail(ErrorCode::Corrupt, "a column has a directory entry that no writer makes");
  }
  return entry;
}

std::vector<std::byte> footer_body(const Footer& footer) {
  std::vector<std::byte> body;
  append<std::uint64_t>(body, 0);
  append<std::uint64_t>(body, footer.rows);
  append<std::uint32_t>(body, static_cast<std::uint32_t>(footer.blocks.size()));
  append<std::uint32_t>(body, 0);
  for (const IndexEntry& entry : footer.blocks) {
    append<std::uint64_t>(body, entry.position);
    append<std::uint64_t>(body, entry.first_row);
    append<std::uint32_t>(body, entry.rows);
    append<std::uint32_t>(body, entry.stored);
    append<std::uint16_t>(body, static_cast<std::uint16_t>(entry.kind));
    append<std::uint16_t>(body, entry.flags);
    append<std::uint32_t>(body, 0);
  }
  return body;
}

Footer parse_footer(Bytes body) {
  ByteReader in(body);
  Footer footer;
  if (in.take<std::uint64_t>() != 0) fail(ErrorCode::Unsupported, "the file has a chain of footers");
  footer.rows = in.take<std::uint64_t>();
  const auto count = in.take<std::uint32_t>();
  if (in.take<std::uint32_t>() != 0 || in.left() != std::uint64_t{count} * kIndexEntryBytes) {
    fail(ErrorCode::Corrupt, "the footer has not the size of %u blocks", count);
  }
  std::uint64_t rows = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    IndexEntry entry;
    entry.position = in.take<std::uint64_t>();
    entry.first_row = in.take<std::uint64_t>();
    entry.rows = in.take<std::uint32_t>();
    entry.stored = in.take<std::uint32_t>();
    entry.kind = static_cast<BlockKind>(in.take<std::uint16_t>());
    entry.flags = in.take<std::uint16_t>();
    in.take<std::uint32_t>();
    if (entry.first_row != rows)
      fail(ErrorCode::Corrupt, "block %u of the footer begins at row %llu, not %llu", i,
           static_cast<ull>(entry.first_row), static_cast<ull>(rows));
    rows += entry.rows;
    footer.blocks.push_back(entry);
  }
  if (rows != footer.rows)
    fail(ErrorCode::Corrupt, "the footer's blocks have %llu rows, the file %llu", static_cast<ull>(rows),
         static_cast<ull>(footer.rows));
  return footer;
}

void put_trailer(const Trailer& trailer, std::byte* out) noexcept {
  std::memset(out, 0, kTrailerBytes);
  store<std::uint64_t>(out, trailer.footer);
  store<std::uint64_t>(out + 8, trailer.rows);
  store<std::uint64_t>(out + 16, trailer.file_bytes);
  store<std::uint32_t>(out + 24, static_cast<std::uint32_t>(hash64({out, 24})));
  store<std::uint32_t>(out + 28, kTrailerMagic);
}

std::optional<Trailer> parse_trailer(Bytes file) noexcept {
  if (file.size() < kTrailerBytes) return std::nullopt;
  const std::byte* const in = file.data() + file.size() - kTrailerBytes;
  const Trailer trailer{load<std::uint64_t>(in), load<std::uint64_t>(in + 8), load<std::uint64_t>(in + 16)};
  const bool holds = load<std::uint32_t>(in + 28) == kTrailerMagic && trailer.file_bytes == file.size() &&
                     load<std::uint32_t>(in + 24) == static_cast<std::uint32_t>(hash64({in, 24})) &&
                     all_zero(in + 32, 32);
  return holds ? std::optional<Trailer>(trailer) : std::nullopt;
}

}  // namespace cdd::packed
