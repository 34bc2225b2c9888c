#include "core/codec/book/xor.h"

#include <cmath>

#include "core/codec/book/cast.h"
#include "core/codec/work.h"
#include "core/simd/planes.h"
#include "core/simd/xor_rows.h"

namespace cdd {
namespace {

// Start rows cost 5 % of the size at 32, 10 % at 16 (zstd, 64-row chunks of real books); reaching a row in
// the middle of a segment costs about 6 ns for each row passed, far less than decompressing.
constexpr std::uint16_t kSegmentRows = 32;
constexpr std::size_t kHeaderBytes = 4;  // u16 segment_rows, u8 normalise, u8 0
constexpr std::size_t kScaleBytes = 4;   // f32 size_scale, float16 only

bool accepts_okx(const RowLayout& layout) noexcept {
  const auto dims = layout.dims();
  return layout.dtype().kind() == Kind::Float32 && dims.size() == 2 && dims[0] == 50 && dims[1] == 3;
}

bool accepts_generic(const RowLayout& layout) noexcept {
  const std::size_t bytes = layout.item_bytes();
  return layout.dims().size() == 2 && (bytes == 2 || bytes == 4 || bytes == 8);
}

std::size_t bound(const RowLayout& layout, std::uint32_t n_rows) noexcept {
  return kHeaderBytes + kScaleBytes + (sizeof(float) + std::size_t{layout.row_bytes()}) * n_rows;
}

simd::XorRows shape_of(const RowLayout& layout, std::uint32_t n_rows, std::size_t item_bytes,
                       std::size_t segment_rows) {
  return {n_rows, layout.row_items(), item_bytes, segment_rows};
}

std::size_t encode_exact(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, MutableBytes out) {
  store<std::uint16_t>(out.data(), kSegmentRows);
  store<std::uint16_t>(out.data() + 2, 0);
  simd::split_xor_rows(shape_of(layout, n_rows, layout.item_bytes(), kSegmentRows), rows.data(),
                       out.data() + kHeaderBytes);
  return kHeaderBytes + rows.size();
}

std::size_t encode_half(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext& context,
                        MutableBytes out) {
  const bool by_mid = context.float16.normalise == Normalise::Mid;
  const std::size_t half_bytes = rows.size() / 2;
  const std::size_t mid_bytes = by_mid ? sizeof(float) * n_rows : 0;
  std::byte* work = scratch<CodecWork>().get(rows.size() + mid_bytes + half_bytes).data();
  std::byte* returned = context.reconstructed != nullptr ? context.reconstructed : work;
  auto* mids = reinterpret_cast<float*>(work + rows.size());
  auto* halves = reinterpret_cast<std::uint16_t*>(work + rows.size() + mid_bytes);
  cast_rows(layout, rows, n_rows, context.float16, {mids, mid_bytes / sizeof(float)}, halves);
  uncast_rows(layout, n_rows, {context.float16.size_scale, by_mid ? mids : nullptr}, halves, returned);
  context.cast_error = cast_error(layout, rows, {returned, rows.size()});
  context.flags |= chunk_flags::kDownCast16;

  store<std::uint16_t>(out.data(), kSegmentRows);
  store<std::uint8_t>(out.data() + 2, static_cast<std::uint8_t>(context.float16.normalise));
  store<std::uint8_t>(out.data() + 3, 0);
  store<float>(out.data() + kHeaderBytes, context.float16.size_scale);
  std::byte* at = out.data() + kHeaderBytes + kScaleBytes;
  if (by_mid) simd::split_planes(as_bytes(mids), n_rows, sizeof(float), at, n_rows);
  simd::split_xor_rows(shape_of(layout, n_rows, 2, kSegmentRows), as_bytes(halves), at + mid_bytes);
  return static_cast<std::size_t>(at - out.data()) + mid_bytes + half_bytes;
}

std::size_t encode_f16(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext& context,
                       MutableBytes out) {
  if (!context.float16.enabled)
    fail(ErrorCode::InvalidArgument, "okx_ob_f16 is lossy: float16 must be asked for");
  return encode_half(layout, rows, n_rows, context, out);
}

std::size_t encode_f32(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext&,
                       MutableBytes out) {
  return encode_exact(layout, rows, n_rows, out);
}

std::size_t encode_generic(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext& context,
                           MutableBytes out) {
  if (!context.float16.enabled) return encode_exact(layout, rows, n_rows, out);
  if (layout.dtype().kind() != Kind::Float32) {
    fail(ErrorCode::InvalidArgument, "only float32 books can be cast to float16");
  }
  return encode_half(layout, rows, n_rows, context, out);
}

struct Header {
  std::size_t segment_rows;
  Normalise normalise;
};

Header take_header(ByteReader& reader) {
  const Bytes bytes = reader.take(kHeaderBytes);
  const auto segment_rows = load<std::uint16_t>(bytes.data());
  const auto normalise = load<std::uint8_t>(bytes.data() + 2);
  if (segment_rows == 0 || normalise > 1 || bytes[3] != std::byte{0}) {
    fail(ErrorCode::Corrupt, "book header names segments of %u rows and normalisation %u",
         unsigned{segment_rows}, unsigned{normalise});
  }
  return {segment_rows, static_cast<Normalise>(normalise)};
}

const std::byte* take_planes(const ByteReader& reader, std::uint64_t expected_bytes) {
  if (reader.left() != expected_bytes) {
    fail(ErrorCode::Corrupt, "book planes have %zu bytes, expected %llu", reader.left(),
         static_cast<unsigned long long>(expected_bytes));
  }
  return reader.rest().data();
}

void decode_exact(const RowLayout& layout, std::uint32_t n_rows, Bytes payload, RowRange range,
                  std::byte* out) {
  const RowSpan part(range);
  ByteReader reader(payload);
  const Header header = take_header(reader);
  if (header.normalise != Normalise::None) fail(ErrorCode::Corrupt, "lossless book claims to be normalised");
  const std::byte* planes = take_planes(reader, std::uint64_t{layout.row_bytes()} * n_rows);
  simd::join_xor_rows(shape_of(layout, n_rows, layout.item_bytes(), header.segment_rows), planes, part.first,
                      part.count, out);
}

void decode_half(const RowLayout& layout, std::uint32_t n_rows, Bytes payload, RowRange range,
                 std::byte* out) {
  const RowSpan part(range);
  ByteReader reader(payload);
  const Header header = take_header(reader);
  const auto size_scale = reader.take<float>();
  if (!std::isfinite(size_scale) || size_scale <= 0)
    fail(ErrorCode::Corrupt, "book has an unusable size scale");
  const bool by_mid = header.normalise == Normalise::Mid;
  const Bytes mid_planes = reader.take(by_mid ? sizeof(float) * std::size_t{n_rows} : 0);
  const std::byte* planes = take_planes(reader, std::uint64_t{layout.row_bytes()} / 2 * n_rows);

  const std::size_t mid_bytes = by_mid ? sizeof(float) * part.count : 0;
  std::byte* work = scratch<CodecWork>().get(mid_bytes + part.count * layout.row_bytes() / 2).data();
  auto* mids = reinterpret_cast<float*>(work);
  auto* halves = reinterpret_cast<std::uint16_t*>(work + mid_bytes);
  if (by_mid) simd::join_planes(mid_planes.data() + part.first, n_rows, part.count, sizeof(float), work);
  simd::join_xor_rows(shape_of(layout, n_rows, 2, header.segment_rows), planes, part.first, part.count,
                      as_bytes(halves));
  uncast_rows(layout, static_cast<std::uint32_t>(range.count), {size_scale, by_mid ? mids : nullptr}, halves,
              out);
}

bool down_cast(std::uint64_t flags) { return (flags & chunk_flags::kDownCast16) != 0; }

void decode_f16(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                RowRange range, std::byte* out) {
  if (!down_cast(flags)) fail(ErrorCode::Corrupt, "okx_ob_f16 chunk is not flagged as cast to float16");
  decode_half(layout, n_rows, payload, range, out);
}

void decode_f32(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                RowRange range, std::byte* out) {
  if (down_cast(flags)) fail(ErrorCode::Corrupt, "okx_ob_f32 chunk is flagged as cast to float16");
  decode_exact(layout, n_rows, payload, range, out);
}

void decode_generic(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                    RowRange range, std::byte* out) {
  if (!down_cast(flags)) return decode_exact(layout, n_rows, payload, range, out);
  if (layout.dtype().kind() != Kind::Float32)
    fail(ErrorCode::Corrupt, "only float32 books are cast to float16");
  decode_half(layout, n_rows, payload, range, out);
}

}  // namespace

constexpr StepCost kCost{0.03, 0};
constexpr const char* kTakesOkx = "float32 (50, 3)";

constexpr NamedScheme kOkxObF16Schemes[] = {{"okx_ob_f16+lz4", Compressor::Lz4, kCost},
                                            {"okx_ob_f16+zstd", Compressor::Zstd, kCost}};
constinit const Codec kOkxObF16Codec{.id = CodecId::OkxObF16,
                                     .name = "okx_ob_f16",
                                     .schemes = kOkxObF16Schemes,
                                     .takes = kTakesOkx,
                                     .casts = CastsTo16::Always,
                                     .accepts = accepts_okx,
                                     .bound = bound,
                                     .encode = encode_f16,
                                     .decode_rows_into = decode_f16};
constexpr NamedScheme kOkxObF32Schemes[] = {{"okx_ob_f32+lz4", Compressor::Lz4, kCost},
                                            {"okx_ob_f32+zstd", Compressor::Zstd, kCost}};
constinit const Codec kOkxObF32Codec{.id = CodecId::OkxObF32,
                                     .name = "okx_ob_f32",
                                     .schemes = kOkxObF32Schemes,
                                     .takes = kTakesOkx,
                                     .accepts = accepts_okx,
                                     .bound = bound,
                                     .encode = encode_f32,
                                     .decode_rows_into = decode_f32};
constexpr NamedScheme kGenericObSchemes[] = {{"generic_ob+lz4", Compressor::Lz4, kCost},
                                             {"generic_ob+zstd", Compressor::Zstd, kCost}};
constinit const Codec kGenericObCodec{.id = CodecId::GenericOb,
                                      .name = "generic_ob",
                                      .schemes = kGenericObSchemes,
                                      .takes = "(levels, features) with items of 2, 4 or 8 bytes",
                                      .casts = CastsTo16::WhenAsked,
                                      .accepts = accepts_generic,
                                      .bound = bound,
                                      .encode = encode_generic,
                                      .decode_rows_into = decode_generic};

}  // namespace cdd
