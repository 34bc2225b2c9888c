#include "core/packed/csv_text.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/packed/convert.h"

namespace cdd::packed {
namespace {

class Rows {
 public:
  Rows(const simd::CsvDialect& dialect, std::vector<std::byte>* out) : dialect_(dialect), out_(*out) {
    special_[dialect.delimiter] = special_['\n'] = special_['\r'] = true;
    if (dialect.quotes) special_[dialect.quote] = true;
  }

  void field(Bytes bytes) {
    if (fields_++ > 0) out_.push_back(std::byte{dialect_.delimiter});
    const bool plain = std::none_of(bytes.begin(), bytes.end(),
                                    [&](std::byte b) { return special_[static_cast<std::uint8_t>(b)]; });
    if (plain) {
      out_.insert(out_.end(), bytes.begin(), bytes.end());
      return;
    }
    if (!dialect_.quotes) {
      fail(ErrorCode::InvalidArgument,
           "a field has a delimiter or a line end, which takes quotes: give quote=");
    }
    const std::byte quote{dialect_.quote};
    out_.push_back(quote);
    for (const std::byte b : bytes) {
      if (b == quote) out_.push_back(quote);
      out_.push_back(b);
    }
    out_.push_back(quote);
  }
  void number(const char* text, std::size_t bytes) {
    field({as_bytes(static_cast<const void*>(text)), bytes});
  }

  void end_row() {
    if (fields_ == 1 && (out_.empty() || out_.back() == std::byte{'\n'}) && out_.size() == begin_ &&
        dialect_.quotes) {
      out_.insert(out_.end(), 2, std::byte{dialect_.quote});  // or it would be a blank line
    }
    out_.push_back(std::byte{'\n'});
    fields_ = 0;
    begin_ = out_.size();
  }

 private:
  const simd::CsvDialect& dialect_;
  std::vector<std::byte>& out_;
  std::size_t begin_ = out_.size();
  std::size_t fields_ = 0;
  bool special_[256] = {};
};

}  // namespace

void append_csv(const simd::CsvDialect& dialect, const PackedFile& file, std::uint64_t first,
                std::uint64_t count, std::vector<std::byte>* out) {
  Rows rows(dialect, out);
  std::vector<Bytes> fields;
  for (std::uint64_t row = first; row < first + count;) {
    const std::shared_ptr<const RowBlock> block = file.block_of(row);
    const std::uint64_t end = std::min<std::uint64_t>(first + count, block->first_row + block->view.rows);
    for (; row < end; ++row) {
      const auto at = static_cast<std::uint32_t>(row - block->first_row);
      const std::uint32_t columns = count_fields(block->view, at);
      for (std::uint32_t j = 0; j < columns; ++j) {
        if (j == 0) {
          read_field(block->view, at, columns - 1);  // the row is whole before memory is taken for it
          fields.resize(columns);
          read_row(block->view, at, fields);
        }
        rows.field(fields[j]);
      }
      rows.end_row();
    }
  }
}

void append_csv(const simd::CsvDialect& dialect, const Columns& columns, std::vector<std::byte>* out) {
  Rows rows(dialect, out);
  char text[kMaxNumberText];
  for (std::size_t r = 0; r < columns.rows; ++r) {
    for (const Column& column : columns.columns) {
      if (column.nulls > 0 && column.valid.data()[r] == std::byte{0}) {
        rows.field({});
      } else if (column.type == Type::Text) {
        const auto begin = load<std::int64_t>(column.values.data() + 8 * r);
        const auto end = load<std::int64_t>(column.values.data() + 8 * (r + 1));
        rows.field({column.text.data() + begin, static_cast<std::size_t>(end - begin)});
      } else {
        rows.number(text, format_item(column.type, column.values.data() + r * item_bytes(column.type), text));
      }
    }
    rows.end_row();
  }
}

}  // namespace cdd::packed
