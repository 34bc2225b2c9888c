// Fuzz targets for single chunks: payloads into every decoder, rows through every encoder and back.
//
// Decoders get memory of exact size in poisoned surroundings. What a payload decodes to must not depend on
// what memory held before, and any range of rows must be what it is of the whole.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/codec/choose.h"
#include "core/codec/codec.h"
#include "core/codec/scheme.h"
#include "core/codec/work.h"
#include "core/format/cdd/record.h"
#include "tests/fuzz/target.h"

namespace cdd::fuzz {
namespace {

constexpr std::size_t kMostRawBytes = 1 << 17;
constexpr ChunkKey kPlace{7, 3};

const Codec& codec_of(CodecId id) { return *find_codec(static_cast<std::uint16_t>(id)); }

// What the head of an input chooses. It has a fixed size, so that a payload stands still under mutation.
struct ChunkInput {
  static constexpr std::size_t kHeadBytes = 12;
  RowLayout layout;
  std::uint32_t n_rows = 0;
  RowRange part;
  std::uint32_t flavour = 0;  // flags, scheme or whatever else a target chooses
  Bytes rest;

  Bytes rows_of(Bytes rows, RowRange range) const {
    return rows.subspan(static_cast<std::size_t>(range.first) * layout.row_bytes(),
                        static_cast<std::size_t>(range.count) * layout.row_bytes());
  }
};

RowLayout layout_for(CodecId codec, std::uint32_t kind, std::uint32_t n_dims,
                     const std::uint32_t (&sizes)[3]) {
  constexpr std::uint32_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 25, 50, 64, 100, 255, 256, 300};
  constexpr std::uint32_t kOkx[] = {50, 3};
  if (codec == CodecId::OkxObF16 || codec == CodecId::OkxObF32) return RowLayout(Kind::Float32, kOkx);
  std::uint32_t dims[3];
  for (std::size_t i = 0; i < 3; ++i) dims[i] = kSizes[sizes[i] % std::size(kSizes)];
  std::size_t n = n_dims % 4;
  if (codec == CodecId::Levels || codec == CodecId::GenericOb) n = 2;
  while (n == 3 && dims[0] * dims[1] * dims[2] > 4096) --n;
  DType dtype(static_cast<Kind>(1 + kind % 17));
  if (codec == CodecId::Levels) dtype = kind % 2 == 0 ? Kind::Float32 : Kind::Float64;
  return RowLayout(dtype, {dims, n});
}

ChunkInput take_head(CodecId codec, Bytes input) {
  Choices choices(input.first(std::min(input.size(), ChunkInput::kHeadBytes)));
  ChunkInput chunk;
  const std::uint32_t kind = choices.byte();
  const std::uint32_t n_dims = choices.byte();
  const std::uint32_t sizes[3] = {choices.byte(), choices.byte(), choices.byte()};
  chunk.layout = layout_for(codec, kind, n_dims, sizes);
  const std::size_t most_rows = std::max<std::size_t>(1, kMostRawBytes / chunk.layout.row_bytes());
  chunk.n_rows = static_cast<std::uint32_t>(1 + choices.word() % most_rows);
  chunk.part.first = choices.word() % chunk.n_rows;
  chunk.part.count = 1 + choices.word() % (chunk.n_rows - chunk.part.first);
  chunk.flavour = choices.byte();
  chunk.rest = input.subspan(std::min(input.size(), ChunkInput::kHeadBytes));
  return chunk;
}

// What this thread's working memory holds before a call.
void fill_scratch(std::byte memory) {
  for (Scratch* const buffer :
       {&scratch<TransformedBytes>(), &scratch<CodecWork>(), &scratch<CodecWork2>(), &scratch<ChunkRows>()}) {
    const MutableBytes bytes = buffer->get(1 << 16);
    std::fill_n(bytes.data(), bytes.size() + kScratchPadding, memory);
  }
}

// decode(payload, range, out) is given `stored` with padding, and room for the rows of the range.
template <class Decode>
std::optional<Buffer> decoded(const ChunkInput& chunk, Bytes stored, RowRange range, std::byte memory,
                              const Decode& decode) {
  Buffer padded(stored.size() + kScratchPadding, memory);
  std::copy(stored.begin(), stored.end(), padded.begin());
  Buffer out(static_cast<std::size_t>(range.count) * chunk.layout.row_bytes(), memory);
  fill_scratch(memory);
  try {
    decode(Bytes(padded).first(stored.size()), range, out.data());
  } catch (const Error&) {
    return std::nullopt;
  }
  return out;
}

// Returns the rows, if there are any.
template <class Decode>
std::optional<Buffer> check_decoder(const ChunkInput& chunk, Bytes stored, const Decode& decode) {
  const RowRange all{0, chunk.n_rows};
  const auto part = decoded(chunk, stored, chunk.part, std::byte{0x11}, decode);
  const auto whole = decoded(chunk, stored, all, std::byte{0xa5}, decode);
  const auto again = decoded(chunk, stored, all, std::byte{0x5a}, decode);
  require(whole == again, "what a payload decodes to does not depend on what memory held");
  if (!whole) return std::nullopt;
  require(part.has_value(), "where all rows decode, some of them do");
  const Bytes expected = chunk.rows_of(*whole, chunk.part);
  require(std::equal(part->begin(), part->end(), expected.begin(), expected.end()),
          "some rows are what they are among all");
  return whole;
}

void decode_with(CodecId id, Bytes input, std::uint64_t flags_it_knows) {
  const Codec& codec = codec_of(id);
  const ChunkInput chunk = take_head(id, input);
  if (!codec.accepts(chunk.layout)) return;
  const std::uint64_t flags = chunk.flavour % 2 == 0 ? 0 : flags_it_knows;
  check_decoder(chunk, chunk.rest, [&](Bytes payload, RowRange range, std::byte* out) {
    codec.decode_rows_into(chunk.layout, chunk.n_rows, flags, payload, range, out);
  });
}

void put_item(const RowLayout& layout, std::int64_t walk, double scale, std::byte* out) {
  const auto decimal = static_cast<double>(walk) / scale;
  switch (layout.dtype().kind()) {
    case Kind::Float32:
      return store<float>(out, static_cast<float>(decimal));
    case Kind::Float64:
      return store<double>(out, decimal);
    default:
      std::memset(out, walk < 0 ? 0xff : 0, layout.item_bytes());
      std::memcpy(out, &walk, std::min(layout.item_bytes(), sizeof walk));
  }
}

// Rows from any bytes: as they are; as steps of each item from the row before, where most are none; or as
// indices into a few items.
Buffer make_rows(const ChunkInput& chunk) {
  const std::size_t item_bytes = chunk.layout.item_bytes();
  const std::size_t per_row = chunk.layout.row_items();
  const std::size_t n_items = std::size_t{chunk.n_rows} * per_row;
  Buffer rows(n_items * item_bytes);
  const Bytes rest = chunk.rest;
  if (rest.empty()) return rows;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint8_t>(rest[i % rest.size()]); };
  switch (chunk.flavour % 3) {
    case 0:
      std::copy_n(rest.begin(), std::min(rest.size(), rows.size()), rows.begin());
      break;
    case 1: {
      const double scale = std::pow(10.0, chunk.flavour / 3 % 8);
      std::vector<std::int64_t> walk(per_row);
      for (std::size_t i = 0; i < n_items; ++i) {
        const auto step = static_cast<std::int8_t>(byte(i));
        std::int64_t& at = walk[i % per_row];
        if (i < per_row || step % 4 == 0) at += (i % per_row + 1) * (step / 4);
        put_item(chunk.layout, at, scale, rows.data() + i * item_bytes);
      }
      break;
    }
    default:
      for (std::size_t i = 0; i < n_items; ++i) {
        const std::size_t entry = byte(i) % 8;
        for (std::size_t b = 0; b < item_bytes; ++b)
          rows[i * item_bytes + b] = rest[(entry * item_bytes + b) % rest.size()];
      }
  }
  return rows;
}

// The payload of the rows; empty when the codec declines.
Buffer encode_rows(const Codec& codec, const ChunkInput& chunk, Bytes rows, EncodeContext& context) {
  const std::size_t bound = codec.bound(chunk.layout, chunk.n_rows);
  Buffer out(bound + kScratchPadding, std::byte{0xa5});
  fill_scratch(std::byte{0xa5});
  const std::size_t bytes =
      codec.encode(chunk.layout, rows, chunk.n_rows, context, MutableBytes(out).first(bound));
  require(bytes <= bound, "an encoder stays within its bound");
  out.resize(bytes);
  return out;
}

void encode_with(CodecId id, Bytes input) {
  const Codec& codec = codec_of(id);
  const ChunkInput chunk = take_head(id, input);
  if (!codec.accepts(chunk.layout)) return;
  Buffer rows = make_rows(chunk);
  EncodeContext context;
  context.byte_planes = chunk.flavour % 2 == 0;
  context.smallest = chunk.flavour / 64 != 0;
  context.coded = chunk.flavour / 64 >= 2;
  const bool cast =
      id == CodecId::OkxObF16 ||
      (id == CodecId::GenericOb && chunk.layout.dtype().kind() == Kind::Float32 && chunk.flavour % 5 == 0);
  Buffer kept(rows.size());
  if (cast) {
    context.float16 = {true, chunk.flavour % 2 == 0 ? Normalise::Mid : Normalise::None, 3.0f};
    context.reconstructed = kept.data();
  }
  Buffer payload;
  try {
    payload = encode_rows(codec, chunk, rows, context);
  } catch (const Error& error) {
    require(cast && error.code() == ErrorCode::InvalidArgument, "only a cast refuses rows");
    return;
  }
  if (payload.empty()) return;
  const auto got = check_decoder(chunk, payload, [&](Bytes bytes, RowRange range, std::byte* out) {
    codec.decode_rows_into(chunk.layout, chunk.n_rows, context.flags, bytes, range, out);
  });
  require(got && *got == (cast ? kept : rows), "rows come back bit for bit");
}

// Replaces an input now and then by a fresh one that decodes.
void mutate_with(CodecId id, Buffer& input, std::size_t most, Random& random, const Scramble& scramble) {
  if (random() % 64 != 0) return scramble(input, most);
  Buffer made(ChunkInput::kHeadBytes + 1 + random() % 512);
  for (std::byte& b : made) b = static_cast<std::byte>(random() >> 8);
  made[5] = static_cast<std::byte>(random() % 64);  // few rows: n_rows' bytes
  made[6] = {};
  const ChunkInput chunk = take_head(id, made);
  const Codec& codec = codec_of(id);
  if (!codec.accepts(chunk.layout)) return scramble(input, most);
  EncodeContext context;
  context.smallest = context.coded = random() % 2 != 0;
  const Buffer payload = encode_rows(codec, chunk, make_rows(chunk), context);
  made.resize(ChunkInput::kHeadBytes);
  made.insert(made.end(), payload.begin(), payload.end());
  if (payload.empty() || made.size() > most) return scramble(input, most);
  input = std::move(made);
}

}  // namespace

void decode_bytes(Bytes input) { decode_with(CodecId::Bytes, input, chunk_flags::kBytePlanes); }
void decode_okx_f16(Bytes input) { decode_with(CodecId::OkxObF16, input, chunk_flags::kDownCast16); }
void decode_okx_f32(Bytes input) { decode_with(CodecId::OkxObF32, input, 0); }
void decode_generic(Bytes input) { decode_with(CodecId::GenericOb, input, chunk_flags::kDownCast16); }
void decode_levels(Bytes input) { decode_with(CodecId::Levels, input, 0); }
void decode_numeric(Bytes input) { decode_with(CodecId::Numeric, input, 0); }

// A whole record around the payload, whose flags may name a compressor.
void decode_record(Bytes input) {
  constexpr std::uint64_t kFlags[] = {0, chunk_flags::kBytePlanes, chunk_flags::kDownCast16};
  constexpr std::uint64_t kCompressors[] = {0, chunk_flags::kLz4, chunk_flags::kZstd,
                                            chunk_flags::kLz4 | chunk_flags::kZstd};
  if (input.empty()) return;
  const auto id = static_cast<CodecId>(std::to_integer<unsigned>(input.front()) % codecs().size());
  const ChunkInput chunk = take_head(id, input.subspan(1));
  RecordHeader header;
  header.type = static_cast<std::uint16_t>(id);
  header.flags = chunk_flags::kLittleEndian | chunk_flags::kRecordCheck | kCompressors[chunk.flavour % 4] |
                 kFlags[chunk.flavour / 4 % 3];
  header.n_rows = chunk.n_rows;
  header.layout = chunk.layout;
  const std::size_t head_bytes = record_header_bytes(chunk.layout.dims().size());
  Buffer record(head_bytes + chunk.rest.size() + kRecordCheckBytes);
  header.size = static_cast<std::uint32_t>(record.size());
  put_record_header(header, record.data());
  std::copy(chunk.rest.begin(), chunk.rest.end(), record.begin() + static_cast<std::ptrdiff_t>(head_bytes));
  seal_record(record, kPlace, false);
  check_decoder(chunk, record, [&](Bytes bytes, RowRange range, std::byte* out) {
    decode_chunk_rows(chunk.layout, bytes, kPlace, Verify::Stored, chunk.n_rows, range, out);
  });
}

void encode_levels(Bytes input) { encode_with(CodecId::Levels, input); }
void encode_numeric(Bytes input) { encode_with(CodecId::Numeric, input); }

void encode_books(Bytes input) {
  constexpr CodecId kCodecs[] = {CodecId::Bytes, CodecId::OkxObF16, CodecId::OkxObF32, CodecId::GenericOb};
  if (!input.empty()) encode_with(kCodecs[std::to_integer<unsigned>(input.front()) % 4], input.subspan(1));
}

// Several chunks by whatever codec is chosen.
void encode_auto(Bytes input) {
  const CodecId shape = input.size() % 2 == 0 ? CodecId::Levels : CodecId::Numeric;
  const ChunkInput chunk = take_head(shape, input);
  const Buffer rows = make_rows(chunk);
  const auto profile = chunk.flavour % 2 == 0 ? Profile::Fast : Profile::Dense;
  Chooser chooser(chunk.layout, schemes_for("auto", chunk.layout), profile);
  const std::uint64_t step = std::max<std::uint64_t>(chunk.part.count, chunk.n_rows / 8 + 1);
  Buffer record;
  for (std::uint64_t first = 0; first < chunk.n_rows; first += step) {
    ChunkInput piece = chunk;
    piece.n_rows = static_cast<std::uint32_t>(std::min(step, chunk.n_rows - first));
    piece.part = {piece.n_rows / 3, piece.n_rows - piece.n_rows / 3};
    const Buffer given = [&] {
      const Bytes some = chunk.rows_of(rows, {first, piece.n_rows});
      return Buffer(some.begin(), some.end());
    }();
    record.clear();
    chooser.encode({given, piece.n_rows}, record);
    seal_record(record, kPlace, false);
    const auto got = check_decoder(piece, record, [&](Bytes bytes, RowRange range, std::byte* out) {
      decode_chunk_rows(piece.layout, bytes, kPlace, Verify::Full, piece.n_rows, range, out);
    });
    require(got && *got == given, "rows come back bit for bit");
  }
}

void mutate_levels(Buffer& input, std::size_t most, Random& random, const Scramble& scramble) {
  mutate_with(CodecId::Levels, input, most, random, scramble);
}
void mutate_numeric(Buffer& input, std::size_t most, Random& random, const Scramble& scramble) {
  mutate_with(CodecId::Numeric, input, most, random, scramble);
}

}  // namespace cdd::fuzz
