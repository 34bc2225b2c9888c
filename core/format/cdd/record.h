// CHUNK records: bytes <-> RecordHeader. No I/O, no codec. Specification: docs/formats/cdd.md, "CHUNK".
//
//   +0 u32 size | +4 u16 type | +6 u16 dtype | +8 u64 hash[2] | +24 u64 flags | +32 u32 dims..., 0
//   payload | u32 record_check
//
// Records start at multiples of kRecordAlignment. `size` counts everything, record_check included.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/base/row_layout.h"
#include "core/format/cdd/constants.h"

namespace cdd {

struct RecordHeader {
  std::uint32_t size = 0;
  std::uint16_t type = 0;
  std::uint64_t flags = 0;
  Hash128 hash{};
  std::uint32_t n_rows = 0;
  RowLayout layout;
};

// Bytes before the payload for rows of this layout.
constexpr std::size_t record_header_bytes(std::size_t row_dims) noexcept {
  return kRecordFixedBytes + 4 * (row_dims + 1) + 4;
}

// Writes header.size .. the dims' terminator at `out`; returns the bytes written.
std::size_t put_record_header(const RecordHeader& header, std::byte* out) noexcept;

// Parses and checks the header of a whole record and sets *payload to what lies between it and record_check.
// Throws Corrupt (sizes, dimensions) or Unsupported (dtype, flags this version does not know).
RecordHeader parse_record(Bytes record, Bytes* payload);

// The check that a record of at least kMinRecordBytes ends with.
inline std::uint32_t stored_check(Bytes record) noexcept {
  return load<std::uint32_t>(record.data() + record.size() - kRecordCheckBytes);
}
// The one that its other bytes have as chunk `number` of the file with this salt.
inline std::uint32_t record_check(Bytes record, std::uint64_t salt, std::uint64_t number) noexcept {
  return check32(CheckDomain::Record, salt, number, record.first(record.size() - kRecordCheckBytes));
}
// Whether a record is that chunk's, whole.
inline bool record_holds(Bytes record, std::uint64_t salt, std::uint64_t number) noexcept {
  return stored_check(record) == record_check(record, salt, number);
}
// Also whether it is the one that a slot knows.
inline bool record_holds(Bytes record, std::uint64_t salt, std::uint64_t number,
                         std::uint32_t slot_check) noexcept {
  return stored_check(record) == slot_check && record_check(record, salt, number) == slot_check;
}

}  // namespace cdd
