#include "core/codec/plain/raw.h"

#include "core/codec/cells.h"

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

const std::byte* rows_of(const RowLayout& layout, std::uint32_t n_rows, Bytes payload, RowRange range) {
  const std::size_t row_bytes = layout.row_bytes();
  if (payload.size() != row_bytes * n_rows) {
    fail(ErrorCode::Corrupt, "raw payload of %zu bytes, expected %zu", payload.size(), row_bytes * n_rows);
  }
  return payload.data() + RowSpan(range).first * row_bytes;
}

void decode_rows_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t, Bytes payload,
                      RowRange range, std::byte* out) {
  const std::byte* rows = rows_of(layout, n_rows, payload, range);
  std::memcpy(out, rows, RowSpan(range).count * layout.row_bytes());
}

void decode_cells_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t, Bytes payload,
                       RowRange range, const Cells& cells, std::byte* out) {
  copy_cells(layout, &cells, rows_of(layout, n_rows, payload, range), range.count, out);
}

}  // namespace

constexpr NamedScheme kRawSchemes[] = {{"raw", Compressor::None, {0.02, 0}}};

constinit const Codec kRawCodec{.id = CodecId::Raw,
                                .name = "raw",
                                .schemes = kRawSchemes,
                                .in_auto = true,
                                .is_plain = true,
                                .is_light = true,
                                .accepts = accepts,
                                .bound = bound,
                                .encode = encode,
                                .decode_rows_into = decode_rows_into,
                                .decode_cells_into = decode_cells_into};

}  // namespace cdd
