// Rows of length-prefixed fields as they lie in memory, in both versions of the packed-row format: looked at
// without a copy, each offset and length checked when it is used. docs/formats/packed.md has the bytes.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace cdd::packed {

// "VSCO" in the file: the number counts.
inline constexpr std::uint32_t kMagic = 0x4F435356;
inline constexpr std::uint32_t kMagicSwapped = 0x5653434F;
inline constexpr std::size_t kHeaderBytes = 24;
inline constexpr std::size_t kMaxField1 = 0xffff;  // bytes of a field in version 1
inline constexpr std::uint32_t kUnknown32 = 0xffffffff;
inline constexpr std::uint64_t kUnknown64 = ~std::uint64_t{0};

struct Header {
  std::uint32_t version = 1;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint64_t total_bytes = kHeaderBytes;
};

// The first 24 bytes. Throws Truncated, Corrupt, or Unsupported for a version above 2. Says nothing of the
// numbers.
Header parse_header(Bytes bytes);
void put_header(const Header& header, std::byte* out) noexcept;

inline std::uint32_t load_length(const std::byte* p, unsigned width) noexcept {
  if (width == 1) return load<std::uint8_t>(p);
  return width == 2 ? load<std::uint16_t>(p) : load<std::uint32_t>(p);
}

// The fields of a row, one after the other.
class RowCursor {
 public:
  RowCursor(const std::byte* begin, const std::byte* end, unsigned width) noexcept
      : at_(begin), end_(end), width_(width) {}

  // False where length or bytes would reach over the end; `*field` is then what is known of it.
  bool next(Bytes* field) noexcept {
    const auto left = static_cast<std::size_t>(end_ - at_);
    if (left < width_) {
      *field = {at_, 0};
      return false;
    }
    const std::size_t bytes = load_length(at_, width_);
    *field = {at_ + width_, bytes};
    if (bytes > left - width_) return false;
    at_ += width_ + bytes;
    return true;
  }
  const std::byte* at() const noexcept { return at_; }
  bool at_end() const noexcept { return at_ == end_; }

 private:
  const std::byte* at_;
  const std::byte* end_;
  unsigned width_;
};

// All rows of a file of version 1, or of a block of rows of version 2. A view: the bytes are somebody else's.
struct RowsView {
  Bytes bytes;                         // what offsets count in: version 1 the file, version 2 the fields
  const std::byte* offsets = nullptr;  // a u32 a row: version 1 where it begins, version 2 where it ends
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;    // fields of a row; in a ragged block of the longest one
  std::uint8_t width = 2;       // bytes of a length
  bool by_ends = false;         // version 2
  std::uint64_t first_row = 0;  // of the file, for errors
  bool ragged = false;          // a row has as many fields as fit up to its end

  // Where row i begins, and what its fields cannot reach over. False where that is outside the bytes.
  bool bounds(std::uint32_t i, std::uint64_t* begin, std::uint64_t* end) const noexcept {
    const std::uint32_t at = load<std::uint32_t>(offsets + 4 * std::size_t{i});
    *begin = by_ends ? (i == 0 ? 0 : load<std::uint32_t>(offsets + 4 * std::size_t{i - 1})) : at;
    *end = by_ends ? at : bytes.size();
    return *begin <= *end && *end <= bytes.size();
  }
  RowCursor cursor(std::uint64_t begin, std::uint64_t end) const noexcept {
    return {bytes.data() + begin, bytes.data() + end, width};
  }
};

// A file of version 1: magic, version, and that its size and offsets agree with `bytes`. Looks at nothing
// else. Throws Truncated, Corrupt, Unsupported.
RowsView open_version1(Bytes bytes);

// Where a field lies, for errors: offsets count in view.bytes.
struct FieldPlace {
  std::uint64_t row, field, offset;
};

// Fields [0, fields.size()) of row i, which has at least as many. Throws Corrupt with the place.
void read_row(const RowsView& view, std::uint32_t i, std::span<Bytes> fields);

// Field j of row i, the usual way; false where read_field() has to look, or to say what is wrong.
inline bool find_field(const RowsView& view, std::uint32_t i, std::uint32_t j, Bytes* field) noexcept {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (view.ragged || !view.bounds(i, &begin, &end)) return false;
  RowCursor cursor = view.cursor(begin, end);
  for (std::uint32_t k = 0; k < j; ++k) {
    if (!cursor.next(field)) return false;
  }
  return cursor.next(field);
}

// Field j of row i. Throws Corrupt with the place; OutOfRange where a ragged row has fewer.
Bytes read_field(const RowsView& view, std::uint32_t i, std::uint32_t j);

// How many fields row i has.
std::uint32_t count_fields(const RowsView& view, std::uint32_t i);

enum class Check { Header, Bounds, Full, Utf8 };

// Bounds: each field of each row lies in the bytes. Full: rows follow each other without a gap, as writers
// make them, up to the end. Utf8: Full, and each field is UTF-8. Throws Corrupt with the first place.
void check_rows(const RowsView& view, Check check);

}  // namespace cdd::packed
