#include "core/codec/chunk_codec.h"

#include <cstring>
#include <vector>

#include "core/codec/cells.h"
#include "core/codec/work.h"

namespace cdd {
namespace {

namespace cf = chunk_flags;

constexpr std::size_t kTransformedSizeBytes = 4;  // u32 in front of a compressed payload
// What a transform may claim to expand to, relative to the raw rows: the loosest bound() of any codec.
constexpr std::uint64_t kTransformSlack = std::uint64_t{1} << 20;

Compressor compressor_of(std::uint64_t flags) {
  switch (flags & (cf::kLz4 | cf::kZstd)) {
    case 0:
      return Compressor::None;
    case cf::kLz4:
      return Compressor::Lz4;
    case cf::kZstd:
      return Compressor::Zstd;
  }
  fail(ErrorCode::Corrupt, "record names two compressors");
}

std::uint64_t flag_of(Compressor compressor) {
  switch (compressor) {
    case Compressor::Lz4:
      return cf::kLz4;
    case Compressor::Zstd:
      return cf::kZstd;
    case Compressor::None:
      break;
  }
  return 0;
}

std::uint32_t put_record_check(MutableBytes record, const ChunkKey& key) noexcept {
  const std::uint32_t check = record_check(record, key.salt, key.number);
  store<std::uint32_t>(record.data() + record.size() - kRecordCheckBytes, check);
  return check;
}

void check_header(const RowLayout& layout, std::uint32_t n_rows, const RecordHeader& header) {
  if (!(header.layout == layout)) fail(ErrorCode::Corrupt, "record's dtype or row shape is not the store's");
  if (header.n_rows != n_rows) {
    fail(ErrorCode::Corrupt, "record has %u rows, the index says %u", header.n_rows, n_rows);
  }
  if ((header.flags & ~cf::kKnown) != 0 || (header.flags & cf::kLittleEndian) == 0) {
    fail(ErrorCode::Unsupported, "record has flags 0x%llx, this version knows 0x%llx",
         static_cast<unsigned long long>(header.flags), static_cast<unsigned long long>(cf::kKnown));
  }
}

// Plain rows have nothing to undo: from row 0 on they decompress to where they belong. LZ4 can stop behind
// the last row wanted.
void decompress_rows(Compressor compressor, Bytes in, const RowLayout& layout, std::size_t n_rows,
                     RowRange range, const Cells* cells, std::byte* out) {
  const std::size_t row_bytes = layout.row_bytes();
  const auto [first, count] = RowSpan(range);
  const bool stop_early = compressor == Compressor::Lz4 && first + count < n_rows;
  const std::size_t made_rows = stop_early ? first + count : n_rows;
  const bool in_place = made_rows == count && cells == nullptr;
  const MutableBytes room = in_place ? MutableBytes(out, count * row_bytes)
                                     : scratch<TransformedBytes>().get(made_rows * row_bytes);
  if (stop_early) {
    decompress_lz4_front(in, room);
  } else {
    decompress(compressor, in, room);
  }
  if (!in_place) copy_cells(layout, cells, room.data() + first * row_bytes, count, out);
}

// Undoes the transform.
void decode_transformed(const RowLayout& layout, std::uint32_t n_rows, const Codec& codec,
                        std::uint64_t flags, Bytes payload, RowRange range, const Cells* cells,
                        std::byte* out) {
  if (cells == nullptr) return codec.decode_rows_into(layout, n_rows, flags, payload, range, out);
  const auto decode = codec.decode_cells_into;
  if (decode != nullptr) return decode(layout, n_rows, flags, payload, range, *cells, out);
  decode_in_blocks(layout, range, *cells, out, [&](RowRange block, std::byte* rows) {
    codec.decode_rows_into(layout, n_rows, flags, payload, block, rows);
  });
}

// The rows asked for: decompresses into this thread's scratch, then undoes the transform into `out`.
void decode_payload(const RowLayout& layout, std::uint32_t n_rows, const Codec& codec, std::uint64_t flags,
                    Bytes payload, RowRange range, const Cells* cells, std::byte* out) {
  const Compressor compressor = compressor_of(flags);
  if (compressor == Compressor::None)
    return decode_transformed(layout, n_rows, codec, flags, payload, range, cells, out);

  const std::uint64_t raw_bytes = std::uint64_t{n_rows} * layout.row_bytes();
  ByteReader reader(payload);
  const std::uint64_t size = reader.take<std::uint32_t>();
  if (size > 2 * raw_bytes + kTransformSlack) {
    fail(ErrorCode::Corrupt, "payload claims %llu bytes before compression for %llu raw ones",
         static_cast<unsigned long long>(size), static_cast<unsigned long long>(raw_bytes));
  }
  if (codec.is_plain && (flags & cf::kBytePlanes) == 0 && size == raw_bytes) {
    return decompress_rows(compressor, reader.rest(), layout, n_rows, range, cells, out);
  }
  const MutableBytes transformed = scratch<TransformedBytes>().get(static_cast<std::size_t>(size));
  decompress(compressor, reader.rest(), transformed);
  decode_transformed(layout, n_rows, codec, flags, transformed, range, cells, out);
}

// Whether the transform comes back as the rows it was made of. The dictionaries and predictors of these
// codecs are much code; a mistake in it, or a bit that flipped meanwhile, must cost space rather than rows.
bool comes_back(const RowLayout& layout, std::uint32_t n_rows, const Codec& codec, std::uint64_t flags,
                Bytes transformed, Bytes rows) {
  const MutableBytes again = scratch<RowsAgain>().get(rows.size());
  try {
    codec.decode_rows_into(layout, n_rows, flags, transformed, {0, n_rows}, again.data());
  } catch (const Error&) {
    return false;
  }
  return std::memcmp(again.data(), rows.data(), rows.size()) == 0;
}

}  // namespace

std::size_t record_bound(const RowLayout& layout, std::uint32_t n_rows, const Scheme& scheme) {
  const std::size_t transform = scheme.codec->bound(layout, n_rows);
  const std::size_t payload = scheme.compressor == Compressor::None
                                  ? transform
                                  : kTransformedSizeBytes + compress_bound(scheme.compressor, transform);
  return record_header_bytes(layout.dims().size()) + payload + kRecordCheckBytes;
}

EncodedChunk encode_chunk(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Scheme& scheme,
                          const ChunkKey& key, MutableBytes out) {
  const Transformed transformed = transform_chunk(layout, rows, n_rows, scheme, out);
  if (transformed.bytes.empty()) return {};
  const Hash128 hash = transformed.hash ? *transformed.hash : hash128(rows);
  EncodedChunk chunk = make_record(layout, n_rows, scheme, transformed, hash, out);
  chunk.record_check = seal_record(out.first(chunk.record_bytes), key, false);
  return chunk;
}

Transformed transform_chunk(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Scheme& scheme,
                            MutableBytes record) {
  check_addressable(std::uint64_t{n_rows} * layout.row_bytes(), 0);
  EncodeContext context;
  context.float16 = scheme.float16;
  context.byte_planes = scheme.byte_planes;
  context.smallest = scheme.smallest;
  context.coded = scheme.coded;
  const bool in_place = !record.empty() && scheme.compressor == Compressor::None;
  const MutableBytes out = in_place ? record.subspan(record_header_bytes(layout.dims().size()))
                                    : scratch<TransformedBytes>().get(scheme.codec->bound(layout, n_rows));
  std::vector<std::byte> reconstructed;  // lossy only: what the hash must cover is what the reader returns
  if (scheme.float16.enabled) {
    reconstructed.resize(rows.size());
    context.reconstructed = reconstructed.data();
  }
  const MutableBytes made = out.first(scheme.codec->encode(layout, rows, n_rows, context, out));
  if (made.empty()) return {};
  if (scheme.codec->is_checked && !comes_back(layout, n_rows, *scheme.codec, context.flags, made, rows))
    return {};
  Transformed transformed{made, context.flags, std::nullopt, context.cast_error};
  if ((context.flags & cf::kDownCast16) != 0) transformed.hash = hash128(reconstructed);
  return transformed;
}

EncodedChunk make_record(const RowLayout& layout, std::uint32_t n_rows, const Scheme& scheme,
                         const Transformed& transformed, const Hash128& hash, MutableBytes out) {
  const std::size_t header_bytes = record_header_bytes(layout.dims().size());
  const MutableBytes room = out.subspan(header_bytes);
  std::size_t payload_bytes = transformed.bytes.size();
  if (scheme.compressor != Compressor::None) {
    store<std::uint32_t>(room.data(), static_cast<std::uint32_t>(payload_bytes));
    payload_bytes = kTransformedSizeBytes + compress(scheme.compressor, transformed.bytes,
                                                     room.subspan(kTransformedSizeBytes), scheme.level);
  } else if (transformed.bytes.data() != room.data()) {
    std::memcpy(room.data(), transformed.bytes.data(), payload_bytes);
  }
  const std::size_t size = header_bytes + payload_bytes + kRecordCheckBytes;
  if (size > kMaxChunkRawBytes)
    fail(ErrorCode::InvalidArgument, "chunk of %zu stored bytes exceeds 2 GiB", size);

  RecordHeader header;
  header.size = static_cast<std::uint32_t>(size);
  header.type = static_cast<std::uint16_t>(scheme.codec->id);
  header.flags = cf::kLittleEndian | cf::kRecordCheck | transformed.flags | flag_of(scheme.compressor);
  header.hash = hash;
  header.n_rows = n_rows;
  header.layout = layout;
  put_record_header(header, out.data());
  return {header.size, 0, static_cast<std::uint32_t>(transformed.bytes.size()), transformed.cast_error};
}

std::uint32_t seal_record(MutableBytes record, const ChunkKey& key, bool continued) noexcept {
  std::byte* const at = record.data() + kRecordFlagsAt;
  const std::uint64_t others = load<std::uint64_t>(at) & ~cf::kBatchCont;
  store<std::uint64_t>(at, others | (continued ? cf::kBatchCont : 0));
  return put_record_check(record, key);
}

void check_record(Bytes record, const ChunkKey& key) { check_record(record, key, stored_check(record)); }

void check_record(Bytes record, const ChunkKey& key, std::uint32_t expected) {
  const std::uint32_t found = record_check(record, key.salt, key.number);
  if (found == expected) return;
  fail(ErrorCode::Checksum, "record check is %08x, its %zu bytes give %08x", expected,
       record.size() - kRecordCheckBytes, found);
}

void decode_chunk_rows(const RowLayout& layout, Bytes record, const ChunkKey& key, Verify verify,
                       std::uint32_t n_rows, RowRange range, std::byte* out, const Cells* cells) {
  if (range.count == 0) return;
  Bytes payload;
  if (verify != Verify::None && record.size() >= kMinRecordBytes) check_record(record, key);
  const RecordHeader header = parse_record(record, &payload);
  check_header(layout, n_rows, header);
  const std::uint64_t raw_bytes = std::uint64_t{n_rows} * layout.row_bytes();
  check_addressable(raw_bytes, record.size());
  const Codec* codec = find_codec(header.type);
  if (codec == nullptr)
    fail(ErrorCode::Unsupported, "chunk type %u is not known to this version", unsigned{header.type});
  if (!codec->accepts(layout))
    fail(ErrorCode::Corrupt, "chunk type %s cannot hold rows of this layout", codec->name);

  if (verify != Verify::Full)
    return decode_payload(layout, n_rows, *codec, header.flags, payload, range, cells, out);

  const bool whole = range.count == n_rows && cells == nullptr;
  std::byte* rows = whole ? out : scratch<ChunkRows>().get(static_cast<std::size_t>(raw_bytes)).data();
  decode_payload(layout, n_rows, *codec, header.flags, payload, {0, n_rows}, nullptr, rows);
  if (hash128({rows, static_cast<std::size_t>(raw_bytes)}) != header.hash) {
    fail(ErrorCode::Checksum, "decoded rows do not match the chunk's BLAKE3 hash");
  }
  const RowSpan part(range);
  if (!whole) copy_cells(layout, cells, rows + part.first * layout.row_bytes(), part.count, out);
}

bool is_compressed(Bytes record) noexcept {
  return (load<std::uint64_t>(record.data() + kRecordFlagsAt) & (cf::kLz4 | cf::kZstd)) != 0;
}

bool is_dear(Bytes record) noexcept {
  const Codec* const codec = find_codec(load<std::uint16_t>(record.data() + kRecordTypeAt));
  return is_compressed(record) || codec == nullptr || !codec->is_light;
}

std::string codec_name(std::uint16_t type, std::uint64_t flags) {
  const Codec* const codec = find_codec(type);
  const bool planes = (flags & cf::kBytePlanes) != 0;
  const Compressor compressor = (flags & cf::kZstd) != 0  ? Compressor::Zstd
                                : (flags & cf::kLz4) != 0 ? Compressor::Lz4
                                                          : Compressor::None;
  if (codec != nullptr) {
    for (const NamedScheme& scheme : codec->schemes) {
      if (scheme.compressor == compressor && scheme.byte_planes == planes) return scheme.name;
    }
  }
  // No writer's.
  const std::string name = codec == nullptr ? "type" + std::to_string(type) : codec->name;
  if (compressor == Compressor::None) return name;
  return name + (compressor == Compressor::Zstd ? "+zstd" : "+lz4");
}

}  // namespace cdd
