#include "core/packed/array_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "core/base/text.h"
#include "core/packed/convert.h"

namespace cdd::packed {
namespace {

enum class Kind { Csv, Json };

// Collects text in a block of its own, so that the caller's vector grows by whole blocks.
class Sink {
 public:
  explicit Sink(std::vector<std::byte>* out) : out_(*out) {}
  ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // Room for `bytes` more, at most a few hundred.
  char* room(std::size_t bytes) {
    if (block_.size() - used_ < bytes) flush();
    return block_.data() + used_;
  }
  void advance(std::size_t bytes) noexcept { used_ += bytes; }
  void put(std::string_view text) {
    std::memcpy(room(text.size()), text.data(), text.size());
    used_ += text.size();
  }
  void flush() {
    const std::span<const char> text(block_.data(), used_);
    out_.insert(out_.end(), std::as_bytes(text).begin(), std::as_bytes(text).end());
    used_ = 0;
  }

 private:
  std::vector<std::byte>& out_;
  std::array<char, 32768> block_;
  std::size_t used_ = 0;
};

std::size_t put_text(std::string_view text, char* out) noexcept {
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

template <class T>
bool is_minus_zero(T value) noexcept {
  return value == 0 && std::signbit(value);
}

std::size_t put_float_json(Type type, const std::byte* item, char* out) noexcept {
  const double value = type == Type::Float32 ? load<float>(item) : load<double>(item);
  if (std::isnan(value)) return put_text("NaN", out);
  if (std::isinf(value)) return put_text(value > 0 ? "Infinity" : "-Infinity", out);
  if (is_minus_zero(value)) return put_text("-0.0", out);  // a reader of -0 makes an integer of it
  return format_item(type, item, out);
}

std::size_t put_item(Kind kind, Type type, const std::byte* item, char* out) noexcept {
  if (type == Type::Time) {
    const bool is_nat = load<std::int64_t>(item) == std::numeric_limits<std::int64_t>::min();
    if (kind == Kind::Csv) return is_nat ? 0 : format_item(type, item, out);
    if (is_nat) return put_text("null", out);
    out[0] = '"';
    const std::size_t bytes = 1 + format_item(type, item, out + 1);
    out[bytes] = '"';
    return bytes + 1;
  }
  if (kind == Kind::Json && (type == Type::Float32 || type == Type::Float64)) {
    return put_float_json(type, item, out);
  }
  return format_item(type, item, out);
}

constexpr std::size_t kMostText = kMaxNumberText + 8;

// Texts of the items of each column of the row before.
class Memory {
 public:
  Memory(Kind kind, Type type, std::size_t columns)
      : kind_(kind),
        type_(type),
        bytes_(item_bytes(type)),
        slots_(std::bit_ceil(std::min<std::size_t>(columns, kMostSlots))) {}

  // Writes the text of an item of column `column`; up to kMostText bytes are touched.
  std::size_t put(std::size_t column, const std::byte* item, char* out) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, item, bytes_);
    Slot& slot = slots_[column & (slots_.size() - 1)];
    if (slot.bytes == kNothing || slot.bits != bits) {
      slot.bits = bits;
      slot.bytes = static_cast<std::uint8_t>(put_item(kind_, type_, item, slot.text));
    }
    std::memcpy(out, slot.text, sizeof slot.text);  // of one size: a few moves
    return slot.bytes;
  }

 private:
  static constexpr std::size_t kMostSlots = 4096;
  static constexpr std::uint8_t kNothing = 255;
  struct Slot {
    std::uint64_t bits = 0;
    std::uint8_t bytes = kNothing;
    char text[kMostText - 1] = {};
  };
  static_assert(sizeof(Slot) <= 64);

  Kind kind_;
  Type type_;
  std::size_t bytes_;
  std::vector<Slot> slots_;
};

std::uint64_t number_of(const ArrayRows& rows, std::uint64_t row) noexcept {
  return rows.first_number + row * static_cast<std::uint64_t>(rows.number_step);
}

std::size_t items_of(const ArrayRows& rows) noexcept {
  std::size_t items = 1;
  for (const std::uint32_t dim : rows.dims) items *= dim;
  return items;
}

}  // namespace

bool is_plain_for_numbers(const simd::CsvDialect& dialect) noexcept {
  const auto stands_in_one = [](std::uint8_t c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '+' || c == '-' ||
           c == '.' || c == ':';
  };
  return !stands_in_one(dialect.delimiter) && !(dialect.quotes && stands_in_one(dialect.quote));
}

void append_csv(const simd::CsvDialect& dialect, const ArrayRows& rows, std::vector<std::byte>* out) {
  const std::size_t columns = items_of(rows);
  const std::size_t bytes = item_bytes(rows.type);
  const char delimiter = static_cast<char>(dialect.delimiter);
  const bool numbered = rows.first_number != kNoNumber;
  // A row of one empty field would be a blank line.
  const bool quote_nothing = columns == 1 && !numbered && dialect.quotes;
  const char quotes[] = {static_cast<char>(dialect.quote), static_cast<char>(dialect.quote)};
  Memory memory(Kind::Csv, rows.type, columns);
  Sink sink(out);
  const std::byte* item = rows.items;
  for (std::uint64_t r = 0; r < rows.rows; ++r) {
    if (numbered) {
      char* const at = sink.room(kMostText);
      const std::size_t used = format_uint64(number_of(rows, r), at);
      at[used] = delimiter;
      sink.advance(used + (columns > 0));
    }
    for (std::size_t c = 0; c < columns; ++c, item += bytes) {
      char* const at = sink.room(kMostText);
      std::size_t used = memory.put(c, item, at);
      if (used == 0 && quote_nothing) used = put_text({quotes, 2}, at);
      at[used] = c + 1 < columns ? delimiter : '\n';
      sink.advance(used + 1);
    }
    if (columns == 0) sink.put("\n");
  }
  sink.flush();
}

void append_json(const ArrayRows& rows, std::vector<std::byte>* out) {
  const std::size_t columns = items_of(rows);
  const std::size_t bytes = item_bytes(rows.type);
  const std::size_t depth = rows.dims.size();
  // After item c so many brackets close as dimensions end there, and as many open again before the next.
  std::vector<std::uint8_t> ends(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    std::size_t run = 1;
    for (std::size_t d = depth; d-- > 0 && (c + 1) % (run *= rows.dims[d]) == 0;) ++ends[c];
  }
  const std::string_view closing = "]]]]]]]]]]]]]]]]";
  const std::string_view opening = "[[[[[[[[[[[[[[[[";
  Memory memory(Kind::Json, rows.type, columns);
  Sink sink(out);
  const std::byte* item = rows.items;
  const bool numbered = rows.first_number != kNoNumber;
  for (std::uint64_t r = 0; r < rows.rows; ++r) {
    if (numbered) {
      sink.put("{\"row\": ");
      sink.advance(format_uint64(number_of(rows, r), sink.room(kMostText)));
      sink.put(", \"values\": ");
    }
    sink.put(opening.substr(0, depth));
    for (std::size_t c = 0; c < columns; ++c, item += bytes) {
      sink.advance(memory.put(c, item, sink.room(kMostText)));
      sink.put(closing.substr(0, ends[c]));
      if (c + 1 < columns) {
        sink.put(", ");
        sink.put(opening.substr(0, ends[c]));
      }
    }
    sink.put(numbered ? "}\n" : "\n");
  }
  sink.flush();
}

}  // namespace cdd::packed
