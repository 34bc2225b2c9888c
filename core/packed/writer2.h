// Writes version 2 as a stream: header, schema, blocks of rows or columns, and at the end one footer and
// trailer. Knows no file: the caller takes the bytes and writes them where it likes, a pipe too.
#pragma once

#include "core/codec/compressor.h"
#include "core/format/packed/blocks.h"
#include "core/packed/columns.h"

namespace cdd::packed {

struct Writer2Options {
  Compressor compressor = Compressor::Lz4;
  int level = 3;                       // of zstd
  std::size_t block_bytes = 1u << 20;  // of fields, about
};

class Writer2 {
 public:
  // Throws InvalidArgument for a schema of more than 2^31 bytes.
  Writer2(const Writer2Options& options, const Schema& schema);

  // A field of the row at hand; a row. Rows of other lengths than the one before make a ragged block. Throws
  // InvalidArgument for a field of 2^31 bytes.
  void add_field(Bytes field);
  void end_row();

  // A block of typed columns; the schema's types must be those. Ends the block of rows at hand.
  void add_columns(const Columns& columns);

  // Ends the block of rows at hand.
  void flush();

  // Writes footer and trailer. Nothing may be added after it.
  void close();

  std::uint64_t rows() const noexcept { return footer_.rows + ends_.size(); }

  // What was written since the last time.
  std::vector<std::byte> take();
  std::size_t waiting_bytes() const noexcept { return out_.size(); }

 private:
  void put_block(BlockHeader header, Bytes body);
  void pack_body(Bytes raw, BlockHeader* header, std::vector<std::byte>* body) const;

  Writer2Options options_;
  std::vector<std::uint16_t> types_;
  std::vector<std::byte> out_;
  std::uint64_t position_ = 0;
  Footer footer_;
  bool closed_ = false;

  std::vector<std::byte> fields_;          // with lengths of four bytes
  std::vector<std::uint32_t> row_fields_;  // how many each row has
  std::vector<std::uint64_t> ends_;        // of rows in fields_
  std::uint32_t in_row_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace cdd::packed
