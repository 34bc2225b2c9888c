#include "core/codec/plain/bytes_codec.h"

#include "core/simd/planes.h"

namespace cdd {
namespace {

// What planes are made of: a complex number is two floats.
struct PlaneItems {
  std::size_t item_bytes;
  std::size_t row_items;
};

PlaneItems plane_items(const RowLayout& layout) noexcept {
  const Kind kind = layout.dtype().kind();
  const std::size_t parts = kind == Kind::Complex64 || kind == Kind::Complex128 ? 2 : 1;
  return {layout.item_bytes() / parts, layout.row_items() * parts};
}

bool accepts(const RowLayout&) noexcept { return true; }

std::size_t bound(const RowLayout& layout, std::uint32_t n_rows) noexcept {
  return std::size_t{layout.row_bytes()} * n_rows;
}

std::size_t encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext& context,
                   MutableBytes out) {
  const PlaneItems items = plane_items(layout);
  if (context.byte_planes) {
    const std::size_t n = items.row_items * n_rows;
    simd::split_planes(rows.data(), n, items.item_bytes, out.data(), n);
    context.flags |= chunk_flags::kBytePlanes;
  } else {
    std::memcpy(out.data(), rows.data(), rows.size());
  }
  return rows.size();
}

void decode_rows_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                      RowRange range, std::byte* out) {
  const std::size_t row_bytes = layout.row_bytes();
  if (payload.size() != row_bytes * n_rows) {
    fail(ErrorCode::Corrupt, "payload of %zu bytes, expected %zu", payload.size(), row_bytes * n_rows);
  }
  const RowSpan part(range);
  if ((flags & chunk_flags::kBytePlanes) == 0) {
    std::memcpy(out, payload.data() + part.first * row_bytes, part.count * row_bytes);
    return;
  }
  const PlaneItems items = plane_items(layout);
  simd::join_planes(payload.data() + part.first * items.row_items, items.row_items * n_rows,
                    part.count * items.row_items, items.item_bytes, out);
}

}  // namespace

// Plain rows decompress straight into place.
constexpr NamedScheme kBytesSchemes[] = {{"lz4", Compressor::Lz4, {}},
                                         {"zstd", Compressor::Zstd, {}},
                                         {"planes+lz4", Compressor::Lz4, {0.03, 0}, true},
                                         {"planes+zstd", Compressor::Zstd, {0.03, 0}, true}};

constinit const Codec kBytesCodec{.id = CodecId::Bytes,
                                  .name = "bytes",
                                  .schemes = kBytesSchemes,
                                  .in_auto = true,
                                  .is_plain = true,
                                  .accepts = accepts,
                                  .bound = bound,
                                  .encode = encode,
                                  .decode_rows_into = decode_rows_into};

}  // namespace cdd
