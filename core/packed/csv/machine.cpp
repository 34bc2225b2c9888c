#include "core/packed/csv/machine.h"

#include <algorithm>

#include "core/base/error.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

bool is_end(std::uint8_t byte) noexcept { return byte == '\n' || byte == '\r'; }

struct Reading {
  const CsvOptions& options;
  Bytes text;
  std::size_t at;
  bool last;
  std::byte*& arena;
  std::uint64_t row;
  std::uint64_t text_offset;
  MachineRow* out;

  bool more() const noexcept { return at < text.size(); }
  std::uint8_t byte() const noexcept { return static_cast<std::uint8_t>(text[at]); }
  bool is_quote() const noexcept { return options.dialect.quotes && byte() == options.dialect.quote; }

  Place place(std::size_t where) const noexcept {
    return {Place::Kind::Row, row, out->cells.size(), text_offset + where};
  }
  template <class... Arguments>
  [[noreturn]] void refuse(std::size_t where, const char* what) const {
    const Place p = place(where);
    fail_at(p, ErrorCode::Corrupt, "row %llu, field %llu at 0x%llx: %s", static_cast<ull>(p.number),
            static_cast<ull>(p.field), static_cast<ull>(p.offset), what);
  }

  // Up to the end of a line; CRLF is one.
  void pass_end() noexcept {
    const bool cr = byte() == '\r';
    ++at;
    if (cr && more() && byte() == '\n') ++at;
  }

  // Passes over what is no row. False at the end of the text.
  bool find_row() {
    while (more()) {
      if (is_end(byte())) {
        if (options.blank == Blank::Field) return true;
        if (options.blank == Blank::Error) refuse(at, "a blank line");
        pass_end();
      } else if (options.has_comment && byte() == options.comment) {
        while (more() && !is_end(byte())) ++at;
        if (!more() && !last) return true;  // the end of the comment is to come
      } else {
        return true;
      }
    }
    return false;
  }

  // A quoted part, from the byte after the quote that opens it. False where the text ends within it.
  bool take_quoted(std::size_t opened) {
    for (;; ++at) {
      if (!more()) {
        if (!last) return false;
        if (options.strict) refuse(opened, "a quote that opens here is never closed");
        return true;
      }
      if (is_quote()) {
        ++at;
        if (!more() && !last) return false;  // the other half of a doubled quote may come
        if (!more() || !is_quote()) return true;
      }
      *arena++ = static_cast<std::byte>(byte());
    }
  }

  // One field. False where more text is needed.
  bool take_field() {
    std::byte* const begin = arena;
    const std::size_t began = at;
    bool quoted = false;
    if (more() && is_quote()) {
      quoted = true;
      const std::size_t opened = at++;
      if (!take_quoted(opened)) return false;
      if (options.strict && more() && byte() != options.dialect.delimiter && !is_end(byte())) {
        refuse(at, "text after a closing quote");
      }
    }
    for (; more() && byte() != options.dialect.delimiter && !is_end(byte()); ++at) {
      if (options.strict && is_quote()) refuse(at, "a quote within a field that is not quoted");
      *arena++ = static_cast<std::byte>(byte());
    }
    if (!more() && !last) return false;
    const auto bytes = static_cast<std::size_t>(arena - begin);
    if (bytes > 0xffffffff) refuse(at, "a field of more than 2^32 - 1 bytes");
    out->cells.push_back({begin, static_cast<std::uint32_t>(bytes), quoted, 0});
    out->begins.push_back(began);
    return true;
  }
};

}  // namespace

Machine read_csv_row(const CsvOptions& options, Bytes text, std::size_t at, bool last, std::byte*& arena,
                     std::uint64_t row, std::uint64_t text_offset, MachineRow* out) {
  out->cells.clear();
  out->begins.clear();
  Reading reading{options, text, at, last, arena, row, text_offset, out};
  if (!reading.find_row()) {
    out->end = reading.at;
    return Machine::End;
  }
  out->end = reading.at;
  for (;;) {
    if (!reading.take_field()) return Machine::Unfinished;
    if (!reading.more()) break;
    if (is_end(reading.byte())) {
      // After a CR at the text's end its LF may come; it will be a blank line then, where those are passed
      // over.
      if (!last && reading.byte() == '\r' && reading.at + 1 == text.size() && options.blank != Blank::Skip) {
        return Machine::Unfinished;
      }
      reading.pass_end();
      break;
    }
    ++reading.at;  // the delimiter
  }
  out->end = reading.at;
  return Machine::Row;
}

std::size_t find_field(const CsvOptions& options, Bytes text, std::uint64_t row, std::uint32_t columns,
                       std::size_t field) {
  std::vector<std::byte> memory(text.size());
  MachineRow read;
  for (std::size_t at = 0;; at = read.end) {
    std::byte* arena = memory.data();
    if (read_csv_row(options, text, at, true, arena, row, 0, &read) != Machine::Row) return at;
    if (options.ragged == Ragged::Skip && read.cells.size() != columns) continue;
    if (row-- == 0) return read.begins[std::min(field, read.begins.size() - 1)];
  }
}

}  // namespace cdd::packed
