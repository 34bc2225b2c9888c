#include "core/packed/column_codec.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "core/base/scratch.h"
#include "core/base/text.h"
#include "core/codec/codec.h"

namespace cdd::packed {
namespace {

constexpr std::size_t kMostTexts = 1u << 16;  // of a dictionary
constexpr std::uint8_t kNanoseconds = 10;     // as DType has them

void add(std::vector<std::byte>& out, const void* data, std::size_t bytes) {
  const std::size_t at = out.size();
  out.resize(at + bytes);
  if (bytes != 0) std::memcpy(out.data() + at, data, bytes);
}
void pad(std::vector<std::byte>& out) { out.resize(align_up(out.size(), kBlockAlign)); }

DType dtype_of(Type type) noexcept {
  switch (type) {
    case Type::Bool:
      return DType(Kind::Bool);
    case Type::Int64:
      return DType(Kind::Int64);
    case Type::UInt64:
      return DType(Kind::UInt64);
    case Type::Float64:
      return DType(Kind::Float64);
    default:
      return DType(Kind::Datetime64, kNanoseconds);
  }
}

// The bit map of a column with nulls, padded; nothing where there are none.
std::vector<std::byte> bitmap_of(const Column& column, std::size_t rows) {
  std::vector<std::byte> bits;
  if (column.nulls == 0) return bits;
  bits.resize((rows + 7) / 8);
  for (std::size_t r = 0; r < rows; ++r) {
    if (column.valid.data()[r] != std::byte{0}) bits[r / 8] |= static_cast<std::byte>(1 << r % 8);
  }
  pad(bits);
  return bits;
}

std::int64_t text_end(const Column& column, std::size_t r) noexcept {
  return load<std::int64_t>(column.values.data() + 8 * r);
}

// The plain buffers of a column one after the other, each padded.
std::vector<std::byte> plain_buffers(const Column& column, std::size_t rows) {
  std::vector<std::byte> raw = bitmap_of(column, rows);
  if (column.type != Type::Text) {
    add(raw, column.values.data(), rows * item_bytes(column.type));
  } else {
    for (std::size_t r = 0; r <= rows; ++r) {
      const auto end = static_cast<std::uint32_t>(text_end(column, r));
      add(raw, &end, sizeof end);
    }
    pad(raw);
    add(raw, column.text.data(), static_cast<std::size_t>(column.text_bytes));
  }
  pad(raw);
  return raw;
}

// Each value once, and a code a row. False where that is not smaller than the texts themselves.
bool dictionary_buffers(const Column& column, std::size_t rows, std::vector<std::byte>* raw,
                        std::uint8_t* width) {
  std::unordered_map<std::string_view, std::uint32_t> codes;
  std::vector<std::uint32_t> of_row(rows);
  std::vector<std::uint32_t> ends{0};
  std::vector<std::byte> bytes;
  const std::string_view all(reinterpret_cast<const char*>(column.text.data()),
                             static_cast<std::size_t>(column.text_bytes));
  for (std::size_t r = 0; r < rows; ++r) {
    const auto begin = static_cast<std::size_t>(text_end(column, r));
    const std::string_view text =
        all.substr(begin, static_cast<std::size_t>(text_end(column, r + 1)) - begin);
    const auto [found, fresh] = codes.emplace(text, static_cast<std::uint32_t>(codes.size()));
    if (fresh) {
      if (codes.size() > kMostTexts || codes.size() > rows / 2 + 1) return false;
      add(bytes, text.data(), text.size());
      ends.push_back(static_cast<std::uint32_t>(bytes.size()));
    }
    of_row[r] = found->second;
  }
  *width = codes.size() <= 0x100 ? 1 : 2;
  *raw = bitmap_of(column, rows);
  const auto count = static_cast<std::uint32_t>(codes.size());
  add(*raw, &count, sizeof count);
  add(*raw, ends.data(), 4 * ends.size());
  pad(*raw);
  add(*raw, bytes.data(), bytes.size());
  pad(*raw);
  for (const std::uint32_t code : of_row) add(*raw, &code, *width);  // the low bytes
  pad(*raw);
  return raw->size() < 4 * (rows + 1) + static_cast<std::size_t>(column.text_bytes);
}

// The bit map and a payload of NUMERIC; nothing where the codec does not take the column.
std::vector<std::byte> numeric_payload(const Column& column, std::size_t rows, std::uint64_t* flags) {
  const Codec* const codec = find_codec(static_cast<std::uint16_t>(CodecId::Numeric));
  const RowLayout layout(dtype_of(column.type), {});
  std::vector<std::byte> stored = bitmap_of(column, rows);
  const auto count = static_cast<std::uint32_t>(rows);
  if (!codec->accepts(layout) || rows > kMaxChunkRawBytes / 8) return {};
  const std::size_t begin = stored.size();
  const std::size_t room = codec->bound(layout, count);
  stored.resize(begin + room + kScratchPadding);
  EncodeContext context;
  const Bytes items(column.values.data(), rows * item_bytes(column.type));
  const std::size_t bytes =
      codec->encode(layout, items, count, context, MutableBytes(stored).subspan(begin, room));
  if (bytes == 0) return {};
  // Decoded again to see: the codec is one that stores check so, too.
  std::vector<std::byte> again(items.size());
  codec->decode_rows_into(layout, count, context.flags, Bytes(stored).subspan(begin, bytes), {0, rows},
                          again.data());
  if (std::memcmp(again.data(), items.data(), items.size()) != 0) return {};
  stored.resize(begin + bytes);
  *flags = context.flags;
  return stored;
}

// Takes buffers one after the other, each padded.
struct Buffers {
  ByteReader in;

  Bytes take(std::uint64_t bytes) {
    const Bytes taken = in.take(bytes);
    in.take(align_up(bytes, kBlockAlign) - bytes);
    return taken;
  }
};

void decode_validity(Buffers& buffers, const ColumnEntry& entry, std::size_t rows, Column* column) {
  column->nulls = entry.nulls;
  if (entry.nulls == 0) return;
  const Bytes bits = buffers.take((rows + 7) / 8);
  column->valid = Pages(rows);
  std::size_t nulls = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const bool valid = (static_cast<unsigned>(bits[r / 8]) >> r % 8 & 1) != 0;
    column->valid.data()[r] = std::byte{valid};
    nulls += !valid;
  }
  if (nulls != entry.nulls)
    fail(ErrorCode::Corrupt, "a column has %zu nulls, its directory says %u", nulls, entry.nulls);
}

// Ends of texts, which begin with 0 and never go back.
void check_ends(Bytes ends) {
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < ends.size(); i += 4) {
    const auto end = load<std::uint32_t>(ends.data() + i);
    if (end < before || (i == 0 && end != 0))
      fail(ErrorCode::Corrupt, "text %zu of a column ends before it begins", i / 4);
    before = end;
  }
}

void decode_text(Buffers& buffers, std::size_t rows, Column* column) {
  const Bytes ends = buffers.take(4 * (std::uint64_t{rows} + 1));
  check_ends(ends);
  column->values = Pages(8 * (rows + 1));
  for (std::size_t r = 0; r <= rows; ++r) {
    store<std::int64_t>(column->values.data() + 8 * r, load<std::uint32_t>(ends.data() + 4 * r));
  }
  const Bytes text = buffers.take(load<std::uint32_t>(ends.data() + 4 * rows));
  column->text_bytes = text.size();
  column->text = Pages(text.size());
  if (!text.empty()) std::memcpy(column->text.data(), text.data(), text.size());
}

void decode_dictionary(Buffers& buffers, unsigned width, std::size_t rows, Column* column) {
  const auto count = load<std::uint32_t>(Buffers(buffers).in.take(4).data());
  const Bytes ends = buffers.take(4 * (std::uint64_t{count} + 2)).subspan(4);
  check_ends(ends);
  const Bytes texts = buffers.take(load<std::uint32_t>(ends.data() + 4 * std::size_t{count}));
  const Bytes codes = buffers.take(std::uint64_t{rows} * width);
  column->values = Pages(8 * (rows + 1));
  store<std::int64_t>(column->values.data(), 0);
  const auto end_of = [&](std::size_t i) { return load<std::uint32_t>(ends.data() + 4 * i); };
  std::uint64_t bytes = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::uint32_t code = load_length(codes.data() + r * width, width);
    if (code >= count) fail(ErrorCode::Corrupt, "row %zu has code %u of a dictionary of %u", r, code, count);
    bytes += end_of(code + 1) - end_of(code);
    if (bytes > kMaxRaw) fail(ErrorCode::Corrupt, "the texts of a dictionary are more than 2^31 bytes");
    store<std::int64_t>(column->values.data() + 8 * (r + 1), static_cast<std::int64_t>(bytes));
  }
  column->text_bytes = bytes;
  column->text = Pages(static_cast<std::size_t>(bytes));
  std::byte* out = column->text.data();
  for (std::size_t r = 0; r < rows; ++r) {
    const std::uint32_t code = load_length(codes.data() + r * width, width);
    const std::uint32_t length = end_of(code + 1) - end_of(code);
    if (length != 0) std::memcpy(out, texts.data() + end_of(code), length);
    out += length;
  }
}

void decode_numeric(Bytes stored, const ColumnEntry& entry, std::size_t rows, Column* column) {
  const Codec* const codec = find_codec(entry.codec);
  if (codec == nullptr || codec->id != CodecId::Numeric)
    fail(ErrorCode::Unsupported, "a column has the unknown codec %u", entry.codec);
  const RowLayout layout(dtype_of(column->type), {});
  Buffers buffers{ByteReader(stored)};
  decode_validity(buffers, entry, rows, column);
  const std::size_t bytes = rows * item_bytes(column->type);
  if (bytes > (stored.size() + 64) * kMostGrowth)
    fail(ErrorCode::Corrupt, "%zu bytes cannot be %zu rows", stored.size(), rows);
  const Bytes payload = buffers.in.take(buffers.in.left());
  Pages padded(payload.size() + kScratchPadding);  // what the codec may look at
  std::memcpy(padded.data(), payload.data(), payload.size());
  std::memset(padded.data() + payload.size(), 0, kScratchPadding);
  column->values = Pages(bytes);
  if (rows == 0) return;
  codec->decode_rows_into(layout, static_cast<std::uint32_t>(rows), entry.codec_flags,
                          {padded.data(), payload.size()}, {0, rows}, column->values.data());
}

}  // namespace

Pages unpack(Compressor compressor, Bytes stored, std::uint32_t raw) {
  if (raw > (stored.size() + 64) * kMostGrowth)
    fail(ErrorCode::Corrupt, "%zu bytes cannot be %u decompressed", stored.size(), raw);
  Pages pages(raw);
  decompress(compressor, stored, {pages.data(), raw});
  return pages;
}

std::vector<std::byte> encode_column(const Column& column, std::size_t rows, std::uint16_t type,
                                     Compressor compressor, int level, ColumnEntry* entry) {
  const bool is_text = column.type == Type::Text;
  if (column.text_bytes > 0xffffffff || 8 * (std::uint64_t{rows} + 1) + column.text_bytes > kMaxRaw - 512) {
    fail(ErrorCode::InvalidArgument,
         "a column of %zu rows is more than a block holds: give fewer rows at once", rows);
  }
  entry->type = type;
  entry->nulls = static_cast<std::uint32_t>(column.nulls);
  std::vector<std::byte> raw;
  const bool by_dictionary = is_text && type == kTypeText && compressor != Compressor::None &&
                             dictionary_buffers(column, rows, &raw, &entry->width);
  if (by_dictionary) {
    entry->type = kTypeDictionary;
  } else {
    entry->width = 0;
    raw = plain_buffers(column, rows);
  }
  entry->raw = static_cast<std::uint32_t>(raw.size());
  if (compressor == Compressor::None) return raw;
  std::vector<std::byte> best(compress_bound(compressor, raw.size()));
  best.resize(compress(compressor, raw, best, level));
  entry->encoding = compressor == Compressor::Lz4 ? 1 : 2;
  if (best.size() >= raw.size()) {
    best = std::move(raw);
    entry->encoding = 0;
  }
  if (is_text) return best;
  std::uint64_t flags = 0;
  std::vector<std::byte> numeric = numeric_payload(column, rows, &flags);
  if (numeric.empty() || numeric.size() >= best.size() || entry->raw > numeric.size() * kMostGrowth)
    return best;
  entry->encoding = 3;
  entry->codec = static_cast<std::uint16_t>(CodecId::Numeric);
  entry->codec_flags = flags;
  return numeric;
}

void decode_column(Bytes stored, const ColumnEntry& entry, std::size_t rows, Column* column) {
  column->type = entry.type == kTypeDictionary ? Type::Text : type_of_schema(entry.type);
  if (entry.encoding == 3) {
    if (column->type == Type::Text) fail(ErrorCode::Corrupt, "a column of text has a codec of numbers");
    return decode_numeric(stored, entry, rows, column);
  }
  Pages memory;
  if (entry.encoding != 0) {
    memory = unpack(entry.encoding == 1 ? Compressor::Lz4 : Compressor::Zstd, stored, entry.raw);
    stored = {memory.data(), entry.raw};
  }
  Buffers buffers{ByteReader(stored)};
  decode_validity(buffers, entry, rows, column);
  if (entry.type == kTypeDictionary) {
    decode_dictionary(buffers, entry.width, rows, column);
  } else if (column->type == Type::Text) {
    decode_text(buffers, rows, column);
  } else {
    const std::uint64_t bytes = std::uint64_t{rows} * item_bytes(column->type);
    const Bytes items = buffers.take(bytes);
    column->values = Pages(items.size());
    if (!items.empty()) std::memcpy(column->values.data(), items.data(), items.size());
  }
  if (buffers.in.left() != 0)
    fail(ErrorCode::Corrupt, "%zu bytes follow a column's buffers", buffers.in.left());
}

std::uint16_t schema_type(Type type) noexcept {
  return type == Type::Text || type == Type::Auto ? kTypeText : dtype_of(type).code();
}

Type type_of_schema(std::uint16_t type) {
  for (const Type known : {Type::Bool, Type::Int64, Type::UInt64, Type::Float64, Type::Time, Type::Text}) {
    if (schema_type(known) == type) return known;
  }
  if (type == kTypeBytes) return Type::Text;
  fail(ErrorCode::Unsupported, "a column is of the unknown type 0x%04x", type);
}

}  // namespace cdd::packed
