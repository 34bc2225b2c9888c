#include "tests/codec/toy_codec.h"

#include <cstring>

namespace cdd {

std::function<void()> while_decoding;
unsigned char mistake = 0;

namespace {

bool accepts(const RowLayout& layout) noexcept { return layout.dtype().kind() == Kind::Int32; }

std::size_t bound(const RowLayout& layout, std::uint32_t) noexcept { return layout.row_bytes(); }

std::size_t encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext&,
                   MutableBytes out) {
  const std::size_t row_bytes = layout.row_bytes();
  for (std::uint32_t row = 1; row < n_rows; ++row) {
    if (std::memcmp(rows.data(), rows.data() + row * row_bytes, row_bytes) != 0) return 0;
  }
  std::memcpy(out.data(), rows.data(), row_bytes);
  out[0] = static_cast<std::byte>(std::to_integer<unsigned>(out[0]) + mistake);
  return row_bytes;
}

void decode(const RowLayout& layout, std::uint32_t, std::uint64_t, Bytes payload, RowRange range,
            std::byte* out) {
  if (payload.size() != layout.row_bytes()) fail(ErrorCode::Corrupt, "toy of %zu bytes", payload.size());
  if (while_decoding) while_decoding();
  for (std::uint64_t row = 0; row < range.count; ++row) {
    std::memcpy(out + row * payload.size(), payload.data(), payload.size());
  }
}

constexpr NamedScheme kSchemes[] = {{"toy", Compressor::None, {0.01, 0}},
                                    {"toy+zstd", Compressor::Zstd, {0.01, 0}}};
constexpr NamedScheme kLightSchemes[] = {{"light", Compressor::None, {}}};

}  // namespace

constinit const Codec kToyCodec{.id = static_cast<CodecId>(60001),
                                .name = "toy",
                                .schemes = kSchemes,
                                .takes = "int32",
                                .in_auto = true,
                                .is_checked = true,
                                .accepts = accepts,
                                .bound = bound,
                                .encode = encode,
                                .decode_rows_into = decode};
constinit const Codec kLightToyCodec{.id = static_cast<CodecId>(60002),
                                     .name = "light",
                                     .schemes = kLightSchemes,
                                     .is_light = true,
                                     .accepts = accepts,
                                     .bound = bound,
                                     .encode = encode,
                                     .decode_rows_into = decode};

}  // namespace cdd
