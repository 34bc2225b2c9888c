#include "core/codec/raw.h"

namespace cdd {
namespace {

bool accepts(const RowLayout&) noexcept { return true; }

std::size_t bound(const RowLayout& layout, std::uint32_t n_rows) noexcept {
  return std::size_t{layout.row_bytes()} * n_rows;
}

std::size_t encode(const RowLayout&, Bytes rows, std::uint32_t, EncodeContext&, MutableBytes out) {
  std::memcpy(out.data(), rows.data(), rows.size());
  return rows.size();
}

void decode_rows_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t, Bytes payload,
                      RowRange range, std::byte* out) {
  const std::size_t row_bytes = layout.row_bytes();
  if (payload.size() != row_bytes * n_rows) {
    fail(ErrorCode::Corrupt, "raw payload of %zu bytes, expected %zu", payload.size(), row_bytes * n_rows);
  }
  const RowSpan part(range);
  std::memcpy(out, payload.data() + part.first * row_bytes, part.count * row_bytes);
}

}  // namespace

constinit const Codec kRawCodec{CodecId::Raw, "raw", accepts, bound, encode, decode_rows_into};

}  // namespace cdd
