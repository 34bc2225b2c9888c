#include "core/packed/file2.h"

#include <algorithm>
#include <cstring>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/codec/compressor.h"
#include "core/packed/column_codec.h"
#include "core/packed/convert.h"
#include "core/packed/writer2.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

Compressor compressor_of(std::uint16_t flags) noexcept {
  if ((flags & kFlagLz4) != 0) return Compressor::Lz4;
  return (flags & kFlagZstd) != 0 ? Compressor::Zstd : Compressor::None;
}

// A stored body, checked. Throws Truncated, Checksum.
Bytes stored_body(Bytes file, const BlockHeader& header, std::size_t checked) {
  const std::uint64_t begin = header.position + kBlockHeaderBytes;
  if (header.stored > file.size() - begin) {
    fail_at({Place::Kind::Row, header.first_row, Place::kNone, header.position}, ErrorCode::Truncated,
            "rows from %llu on, the block at 0x%llx: it has %u bytes, the file %zu after it",
            static_cast<ull>(header.first_row), static_cast<ull>(header.position), header.stored,
            file.size() - static_cast<std::size_t>(begin));
  }
  const Bytes body = file.subspan(static_cast<std::size_t>(begin), header.stored);
  if (checked > body.size() || hash64(body.first(checked)) != header.body_check) {
    fail_at({Place::Kind::Row, header.first_row, Place::kNone, header.position}, ErrorCode::Checksum,
            "rows from %llu on, the block at 0x%llx: its check does not hold",
            static_cast<ull>(header.first_row), static_cast<ull>(header.position));
  }
  return body;
}

}  // namespace

File2::File2(Bytes bytes) : bytes_(bytes) {
  const Header header = parse_header(bytes);
  if (header.rows != kUnknown32 || header.columns != kUnknown32 || header.total_bytes != kUnknown64) {
    fail(ErrorCode::Corrupt, "the header of version 2 has numbers, which its footer has");
  }
  const std::optional<BlockHeader> schema = parse_block_header(bytes, kBlockAlign);
  if (!schema || schema->kind != BlockKind::Schema || schema->end() > bytes.size()) {
    fail(bytes.size() < 2 * kBlockAlign ? ErrorCode::Truncated : ErrorCode::Corrupt,
         "packed rows of version 2 without a schema");
  }
  const Bytes body = stored_body(bytes, *schema, schema->stored);
  if (compressor_of(schema->flags) == Compressor::None) {
    schema_ = parse_schema(body);
  } else {
    const Pages raw = unpack(compressor_of(schema->flags), body, schema->raw);
    schema_ = parse_schema({raw.data(), raw.size()});
  }
  for (const SchemaColumn& column : schema_.columns) names_.push_back(column.name);
  if (const std::optional<Trailer> trailer = parse_trailer(bytes)) {
    const std::optional<BlockHeader> footer = parse_block_header(bytes, trailer->footer);
    if (footer && footer->kind == BlockKind::Footer && footer->end() + kTrailerBytes == bytes.size()) {
      Footer found = parse_footer(stored_body(bytes, *footer, footer->stored));
      if (found.rows == trailer->rows) {
        index_ = std::move(found.blocks);
        rows_ = found.rows;
        finished_ = true;
        return;
      }
    }
  }
  walk(schema->end());
}

// Blocks by their headers from the front, each with its body; up to the first that does not hold.
void File2::walk(std::uint64_t position) {
  while (const std::optional<BlockHeader> header = parse_block_header(bytes_, position)) {
    const bool is_rows = header->kind == BlockKind::Rows || header->kind == BlockKind::Columns;
    if (header->first_row != rows_ || header->end() > bytes_.size() || header->kind == BlockKind::Schema)
      break;
    try {
      if (header->kind == BlockKind::Columns) {
        read_block(*header);
      } else {
        stored_body(bytes_, *header, header->stored);
      }
    } catch (const Error&) {
      break;
    }
    position = header->end();
    if (!is_rows) {  // the footer: what follows it is the trailer, whole or not
      finished_ = true;
      break;
    }
    index_.push_back(
        {header->position, header->first_row, header->rows, header->stored, header->kind, header->flags});
    rows_ += header->rows;
  }
  torn_ = bytes_.size() - position;
}

std::uint32_t File2::columns() const noexcept { return static_cast<std::uint32_t>(schema_.columns.size()); }

const IndexEntry& File2::entry_of(std::uint64_t row) const {
  const auto after =
      std::upper_bound(index_.begin(), index_.end(), row,
                       [](std::uint64_t r, const IndexEntry& entry) { return r < entry.first_row; });
  return *std::prev(after);
}

BlockHeader File2::header_of(const IndexEntry& entry) const {
  const std::optional<BlockHeader> header = parse_block_header(bytes_, entry.position);
  if (!header || header->kind != entry.kind || header->rows != entry.rows ||
      header->first_row != entry.first_row || header->stored != entry.stored) {
    fail_at({Place::Kind::Row, entry.first_row, Place::kNone, entry.position}, ErrorCode::Checksum,
            "rows from %llu on: the header of their block at 0x%llx does not hold",
            static_cast<ull>(entry.first_row), static_cast<ull>(entry.position));
  }
  return *header;
}

std::shared_ptr<RowBlock> File2::read_rows(const BlockHeader& header) const {
  auto block = std::make_shared<RowBlock>();
  Bytes body = stored_body(bytes_, header, header.stored);
  const Compressor compressor = compressor_of(header.flags);
  if (compressor != Compressor::None) {
    block->memory = unpack(compressor, body, header.raw);
    body = {block->memory.data(), header.raw};
  }
  const std::uint64_t offsets = 4 * std::uint64_t{header.rows};
  if (offsets > body.size())
    fail(ErrorCode::Corrupt, "the ends of %u rows do not fit in %zu bytes", header.rows, body.size());
  RowsView& view = block->view;
  view.offsets = body.data();
  view.bytes = body.subspan(static_cast<std::size_t>(offsets));
  view.rows = header.rows;
  view.columns = header.fields;
  view.width = header.width;
  view.by_ends = true;
  view.ragged = (header.flags & kFlagRagged) != 0;
  view.first_row = header.first_row;
  return block;
}

Columns File2::read_block(const BlockHeader& header) const {
  const std::size_t directory = kEntryBytes * std::size_t{header.fields};
  const Bytes body = stored_body(bytes_, header, directory);
  if (header.fields != columns())
    fail(ErrorCode::Corrupt, "a block of %u columns, the schema has %u", header.fields, columns());
  Columns made;
  made.rows = header.rows;
  made.names = names_;
  made.columns.resize(header.fields);
  for (std::uint32_t c = 0; c < header.fields; ++c) {
    const ColumnEntry entry = parse_column_entry(body.data() + kEntryBytes * c);
    const bool by_dictionary = entry.type == kTypeDictionary && schema_.columns[c].type == kTypeText;
    if (entry.type != schema_.columns[c].type && !by_dictionary)
      fail(ErrorCode::Corrupt, "column %u is of type 0x%04x, the schema says 0x%04x", c, entry.type,
           schema_.columns[c].type);
    if (entry.offset < directory || entry.stored > body.size() || entry.offset > body.size() - entry.stored) {
      fail(ErrorCode::Corrupt, "column %u lies outside its block", c);
    }
    const Bytes stored = body.subspan(entry.offset, entry.stored);
    if (hash64(stored) != entry.check) {
      fail_at({Place::Kind::Row, header.first_row, c, header.position + kBlockHeaderBytes + entry.offset},
              ErrorCode::Checksum, "rows from %llu on, column %u: its check does not hold",
              static_cast<ull>(header.first_row), c);
    }
    decode_column(stored, entry, header.rows, &made.columns[c]);
  }
  return made;
}

std::shared_ptr<const RowBlock> File2::block_of(std::uint64_t row) const {
  const BlockHeader header = header_of(entry_of(row));
  std::shared_ptr<RowBlock> block =
      header.kind == BlockKind::Columns ? rows_of_columns(read_block(header)) : read_rows(header);
  block->first_row = header.first_row;
  return block;
}

void File2::check(Check check) const {
  if (check == Check::Header) return;
  for (const IndexEntry& entry : index_) {
    const BlockHeader header = header_of(entry);
    if (header.kind == BlockKind::Columns) {
      read_block(header);
      continue;
    }
    try {
      check_rows(read_rows(header)->view, check);
    } catch (Error& error) {
      error.at({Place::Kind::Row, header.first_row, Place::kNone, header.position});
      throw;
    }
  }
}

std::shared_ptr<RowBlock> rows_of_columns(const Columns& columns) {
  std::vector<std::byte> fields;
  std::vector<std::uint32_t> ends;
  const auto put = [&](const char* data, std::size_t bytes) {
    const auto length = static_cast<std::uint32_t>(bytes);
    const std::byte* const p = as_bytes(&length);
    fields.insert(fields.end(), p, p + sizeof length);
    const std::byte* const text = as_bytes(static_cast<const void*>(data));
    fields.insert(fields.end(), text, text + bytes);
  };
  for (std::size_t r = 0; r < columns.rows; ++r) {
    for (const Column& column : columns.columns) {
      char text[kMaxNumberText];
      if (column.nulls > 0 && column.valid.data()[r] == std::byte{0}) {
        put(text, 0);
      } else if (column.type == Type::Text) {
        const auto begin = load<std::int64_t>(column.values.data() + 8 * r);
        const auto end = load<std::int64_t>(column.values.data() + 8 * (r + 1));
        put(reinterpret_cast<const char*>(column.text.data()) + begin, static_cast<std::size_t>(end - begin));
      } else {
        put(text, format_item(column.type, column.values.data() + r * item_bytes(column.type), text));
      }
    }
    if (fields.size() > kMaxRaw)
      fail(ErrorCode::Limit, "a block of columns whose text is more than 2^31 bytes");
    ends.push_back(static_cast<std::uint32_t>(fields.size()));
  }
  auto block = std::make_shared<RowBlock>();
  const std::size_t offsets = 4 * ends.size();
  block->memory = Pages(offsets + fields.size());
  if (!ends.empty()) std::memcpy(block->memory.data(), ends.data(), offsets);
  if (!fields.empty()) std::memcpy(block->memory.data() + offsets, fields.data(), fields.size());
  RowsView& view = block->view;
  view.offsets = block->memory.data();
  view.bytes = {block->memory.data() + offsets, fields.size()};
  view.rows = static_cast<std::uint32_t>(ends.size());
  view.columns = static_cast<std::uint32_t>(columns.columns.size());
  view.width = 4;
  view.by_ends = true;
  return block;
}

// One block after the other into arrays of the whole range.
Columns File2::read_columns(std::uint64_t first, std::uint64_t count) const {
  Columns made;
  made.names = names_;
  made.rows = count;
  made.columns.resize(columns());
  std::vector<std::vector<std::byte>> texts(columns());
  const auto rows = static_cast<std::size_t>(count);
  for (std::uint32_t c = 0; c < columns(); ++c) {
    Column& column = made.columns[c];
    column.type = type_of_schema(schema_.columns[c].type);
    column.values = Pages(column.type == Type::Text ? 8 * (rows + 1) : rows * item_bytes(column.type));
    if (column.type == Type::Text) store<std::int64_t>(column.values.data(), 0);
  }
  for (std::uint64_t row = first; row < first + count;) {
    const BlockHeader header = header_of(entry_of(row));
    if (header.kind != BlockKind::Columns)
      fail(ErrorCode::InvalidArgument,
           "row %llu lies in a block of rows of text, which has no typed columns: read it as rows",
           static_cast<ull>(row));
    const Columns block = read_block(header);
    const auto from = static_cast<std::size_t>(row - header.first_row);
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(header.rows - from, first + count - row));
    const auto to = static_cast<std::size_t>(row - first);
    for (std::uint32_t c = 0; c < columns(); ++c) {
      const Column& source = block.columns[c];
      Column& column = made.columns[c];
      if (source.nulls > 0) {
        if (column.valid.data() == nullptr) {
          column.valid = Pages(rows);
          std::memset(column.valid.data(), 1, rows);
        }
        std::memcpy(column.valid.data() + to, source.valid.data() + from, n);
        column.nulls += static_cast<std::uint64_t>(
            std::count(source.valid.data() + from, source.valid.data() + from + n, std::byte{0}));
      }
      const std::size_t bytes = item_bytes(column.type);
      if (column.type != Type::Text) {
        std::memcpy(column.values.data() + to * bytes, source.values.data() + from * bytes, n * bytes);
        continue;
      }
      const auto begin = load<std::int64_t>(source.values.data() + 8 * from);
      const auto base = static_cast<std::int64_t>(texts[c].size()) - begin;
      for (std::size_t r = 1; r <= n; ++r) {
        store<std::int64_t>(column.values.data() + 8 * (to + r),
                            load<std::int64_t>(source.values.data() + 8 * (from + r)) + base);
      }
      const auto end = load<std::int64_t>(source.values.data() + 8 * (from + n));
      texts[c].insert(texts[c].end(), source.text.data() + begin, source.text.data() + end);
    }
    row += n;
  }
  for (std::uint32_t c = 0; c < columns(); ++c) {
    if (made.columns[c].type != Type::Text) continue;
    made.columns[c].text_bytes = texts[c].size();
    made.columns[c].text = Pages(texts[c].size());
    if (!texts[c].empty()) std::memcpy(made.columns[c].text.data(), texts[c].data(), texts[c].size());
  }
  return made;
}

}  // namespace cdd::packed
