// The item types a store can hold. A DType is the uint16 of the file format: the kind in the low byte, the
// unit of datetime64 and timedelta64 in the high byte (zero for every other kind).
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd {

enum class Kind : std::uint8_t {
  None = 0,  // not decided yet: a file nobody has appended to
  Bool = 1,
  Int8 = 2,
  UInt8 = 3,
  Int16 = 4,
  UInt16 = 5,
  Int32 = 6,
  UInt32 = 7,
  Int64 = 8,
  UInt64 = 9,
  Float16 = 10,
  BFloat16 = 11,
  Float32 = 12,
  Float64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  Datetime64 = 16,
  Timedelta64 = 17,
};

// Units of datetime64 and timedelta64, in NumPy's order: generic Y M W D h m s ms us ns ps fs as.
inline constexpr std::uint8_t kTimeUnits = 14;

class DType {
 public:
  constexpr DType() = default;
  constexpr explicit DType(std::uint16_t code) noexcept : code_(code) {}
  constexpr DType(Kind kind, std::uint8_t unit = 0) noexcept
      : code_(static_cast<std::uint16_t>(static_cast<unsigned>(kind) | unit << 8)) {}

  constexpr std::uint16_t code() const noexcept { return code_; }
  constexpr Kind kind() const noexcept { return static_cast<Kind>(code_ & 0xff); }
  constexpr std::uint8_t unit() const noexcept { return static_cast<std::uint8_t>(code_ >> 8); }
  constexpr bool operator==(const DType&) const noexcept = default;

  // Bytes of one item; 0 for Kind::None and for codes this version does not know.
  constexpr std::size_t item_bytes() const noexcept {
    constexpr std::uint8_t bytes[] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16, 8, 8};
    const unsigned k = code_ & 0xff;
    return k < sizeof bytes ? bytes[k] : 0;
  }
  constexpr bool is_known() const noexcept {
    if (item_bytes() == 0) return false;
    const bool timed = kind() == Kind::Datetime64 || kind() == Kind::Timedelta64;
    return timed ? unit() < kTimeUnits : unit() == 0;
  }

 private:
  std::uint16_t code_ = 0;
};

}  // namespace cdd
