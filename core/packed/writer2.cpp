#include "core/packed/writer2.h"

#include <algorithm>
#include <cstring>

#include "core/base/dtype.h"
#include "core/base/hash.h"
#include "core/packed/column_codec.h"

namespace cdd::packed {
namespace {

void pad(std::vector<std::byte>& bytes) { bytes.resize(align_up(bytes.size(), kBlockAlign)); }

void add(std::vector<std::byte>& to, const std::byte* data, std::size_t bytes) {
  to.insert(to.end(), data, data + bytes);
}

}  // namespace

Writer2::Writer2(const Writer2Options& options, const Schema& schema) : options_(options) {
  for (const SchemaColumn& column : schema.columns) types_.push_back(column.type);
  out_.resize(kHeaderBytes);
  put_stream_header(out_.data());
  pad(out_);
  position_ = out_.size();
  const std::vector<std::byte> raw = schema_body(schema);
  if (raw.size() > kMaxStored)
    fail(ErrorCode::InvalidArgument, "a schema of %zu bytes is more than 2^31", raw.size());
  BlockHeader header;
  header.kind = BlockKind::Schema;
  header.fields = static_cast<std::uint32_t>(schema.columns.size());
  header.raw = static_cast<std::uint32_t>(raw.size());
  put_block(header, raw);
}

void Writer2::put_block(BlockHeader header, Bytes body) {
  if (closed_) fail(ErrorCode::Closed, "the writer is closed");
  header.position = position_;
  header.first_row = footer_.rows;
  header.stored = static_cast<std::uint32_t>(body.size());
  if (header.kind != BlockKind::Columns) header.body_check = hash64(body);
  std::byte bytes[kBlockHeaderBytes];
  put_block_header(header, bytes);
  add(out_, bytes, sizeof bytes);
  add(out_, body.data(), body.size());
  out_.resize(out_.size() + (header.end() - position_ - kBlockHeaderBytes - body.size()));
  position_ = header.end();
  if (header.kind != BlockKind::Rows && header.kind != BlockKind::Columns) return;
  footer_.blocks.push_back(
      {header.position, header.first_row, header.rows, header.stored, header.kind, header.flags});
  footer_.rows += header.rows;
}

void Writer2::pack_body(Bytes raw, BlockHeader* header, std::vector<std::byte>* body) const {
  if (options_.compressor != Compressor::None) {
    body->resize(compress_bound(options_.compressor, raw.size()));
    const std::size_t bytes = compress(options_.compressor, raw, *body, options_.level);
    if (bytes < raw.size()) {
      body->resize(bytes);
      header->flags |= options_.compressor == Compressor::Lz4 ? kFlagLz4 : kFlagZstd;
      return;
    }
  }
  body->assign(raw.begin(), raw.end());
}

void Writer2::add_field(Bytes field) {
  if (field.size() >= kMaxStored / 2) {
    fail_at({Place::Kind::Row, rows(), in_row_, Place::kNone}, ErrorCode::InvalidArgument,
            "row %llu, field %u has %zu bytes, fewer than 2^30 are allowed",
            static_cast<unsigned long long>(rows()), in_row_, field.size());
  }
  const auto bytes = static_cast<std::uint32_t>(field.size());
  add(fields_, as_bytes(&bytes), sizeof bytes);
  add(fields_, field.data(), field.size());
  longest_ = std::max(longest_, field.size());
  ++in_row_;
}

void Writer2::end_row() {
  ends_.push_back(fields_.size());
  row_fields_.push_back(in_row_);
  in_row_ = 0;
  if (fields_.size() >= options_.block_bytes || ends_.size() >= options_.block_bytes) flush();
}

void Writer2::flush() {
  if (ends_.empty()) return;
  BlockHeader header;
  header.rows = static_cast<std::uint32_t>(ends_.size());
  header.width = longest_ <= 0xff ? 1 : longest_ <= 0xffff ? 2 : 4;
  const auto [least, most] = std::minmax_element(row_fields_.begin(), row_fields_.end());
  header.fields = *most;
  if (*least != *most) header.flags = kFlagRagged;
  std::vector<std::byte> raw(4 * ends_.size());
  raw.reserve(raw.size() + fields_.size());
  std::size_t at = 0;
  for (std::size_t r = 0; r < ends_.size(); ++r) {
    while (at < ends_[r]) {
      const auto bytes = load<std::uint32_t>(fields_.data() + at);
      add(raw, fields_.data() + at, header.width);  // the low bytes of the length
      add(raw, fields_.data() + at + 4, bytes);
      at += 4 + bytes;
    }
    store<std::uint32_t>(raw.data() + 4 * r, static_cast<std::uint32_t>(raw.size() - 4 * ends_.size()));
  }
  if (raw.size() > kMaxStored)
    fail(ErrorCode::InvalidArgument, "a row of %zu bytes is more than 2^31", raw.size());
  header.raw = static_cast<std::uint32_t>(raw.size());
  std::vector<std::byte> body;
  pack_body(raw, &header, &body);
  put_block(header, body);
  fields_.clear();
  ends_.clear();
  row_fields_.clear();
  longest_ = 0;
}

void Writer2::add_columns(const Columns& columns) {
  flush();
  if (columns.rows == 0) return;
  if (columns.columns.size() != types_.size()) {
    fail(ErrorCode::InvalidArgument, "%zu columns are given, the schema has %zu", columns.columns.size(),
         types_.size());
  }
  const auto rows = static_cast<std::size_t>(columns.rows);
  std::vector<std::byte> body(align_up(kEntryBytes * types_.size(), kBlockAlign));
  for (std::size_t c = 0; c < types_.size(); ++c) {
    const Column& column = columns.columns[c];
    ColumnEntry entry;
    entry.type = schema_type(column.type);
    if (entry.type != types_[c] && !(types_[c] == kTypeBytes && entry.type == kTypeText)) {
      fail(ErrorCode::InvalidArgument, "column %zu is of type 0x%04x, the schema says 0x%04x", c, entry.type,
           types_[c]);
    }
    const std::vector<std::byte> stored =
        encode_column(column, rows, types_[c], options_.compressor, options_.level, &entry);
    entry.offset = static_cast<std::uint32_t>(body.size());
    entry.stored = static_cast<std::uint32_t>(stored.size());
    entry.check = hash64(stored);
    add(body, stored.data(), stored.size());
    pad(body);
    if (body.size() > kMaxStored)
      fail(ErrorCode::InvalidArgument, "columns of more than 2^31 bytes: give fewer rows at once");
    put_column_entry(entry, body.data() + kEntryBytes * c);
  }
  BlockHeader header;
  header.kind = BlockKind::Columns;
  header.rows = static_cast<std::uint32_t>(rows);
  header.fields = static_cast<std::uint32_t>(types_.size());
  header.raw = static_cast<std::uint32_t>(body.size());
  header.body_check = hash64(Bytes(body).first(kEntryBytes * types_.size()));
  put_block(header, body);
}

void Writer2::close() {
  if (closed_) return;
  flush();
  BlockHeader header;
  header.kind = BlockKind::Footer;
  const std::vector<std::byte> body = footer_body(footer_);
  header.raw = static_cast<std::uint32_t>(body.size());
  const std::uint64_t footer = position_;
  put_block(header, body);
  std::byte trailer[kTrailerBytes];
  put_trailer({footer, footer_.rows, position_ + kTrailerBytes}, trailer);
  add(out_, trailer, sizeof trailer);
  position_ += kTrailerBytes;
  closed_ = true;
}

std::vector<std::byte> Writer2::take() {
  std::vector<std::byte> taken;
  taken.swap(out_);
  return taken;
}

}  // namespace cdd::packed
