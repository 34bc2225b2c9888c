// Fuzz targets for what lies in the folder of an array of tiles: zarr.json, shards with their index, the
// journal of a writer, frames of blosc. Files are in memory.
#include <algorithm>
#include <cstring>
#include <string>

#include "core/codec/blosc/frame.h"
#include "core/codec/blosc/literals.h"
#include "core/codec/blosc/runs.h"
#include "core/simd/crc32c.h"
#include "core/threads/for_each.h"
#include "core/tiles/journal.h"
#include "core/tiles/tile_reader.h"
#include "core/tiles/tile_writer.h"
#include "tests/fuzz/target.h"
#include "tests/rig/array_files.h"

namespace cdd::fuzz {
namespace {

using test::FileContents;
using test::RecordedFiles;
using tiles::TileOptions;
using tiles::TileReader;
using tiles::TileWriter;

constexpr std::uint64_t kHeight = 10, kWidth = 12, kFrames = 7;
constexpr std::size_t kFrameBytes = kHeight * kWidth * 2;
constexpr std::uint64_t kMostBytes = 1 << 20;                // of what is read of an array
constexpr std::size_t kFrameTail = 4;                        // CRC-32C
constexpr std::size_t kHeaderBytes = 64, kRecordBytes = 40;  // of a journal

TileOptions small_options(unsigned choice) {
  static constexpr const char* kCodecs[] = {"auto", "blosc-lz4", "zstd", "raw"};
  TileOptions options;
  options.dimensions = {{0, 2, 2, "t"}, {kHeight, 4, 2, "y"}, {kWidth, 8, 1, "x"}};
  options.dtype = DType(Kind::UInt16);
  options.codec.name = kCodecs[choice % 4];
  options.codec.checksum = static_cast<int>(choice / 4 % 2);
  options.index_at_end = choice / 8 % 2 != 0;
  options.durability = choice / 16 % 2 != 0 ? tiles::Durability::Flush : tiles::Durability::None;
  return options;
}

Buffer frame(std::uint64_t number) {
  Random random(static_cast<Random::result_type>(number + 1));
  Buffer out(kFrameBytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random() >> 8 & 0x1f);
  return out;
}

// The files of an array whose writer flushed seven frames: and closed it, or left. By one thread, so that
// tiles lie where a journal of the corpus says.
FileContents written(unsigned choice, bool closes) {
  RecordedFiles files;
  const unsigned before = threads();
  set_threads(1);
  {
    const auto writer = TileWriter::create(files.files(), small_options(choice));
    for (std::uint64_t i = 0; i < kFrames; ++i) writer->append(frame(i));
    writer->flush();
    if (closes) writer->close();
  }
  set_threads(before);
  return files.contents();
}

// All of an array, and a box of it that must say the same.
void read_all(RecordedFiles& files) {
  const TileReader reader(files.files());
  const auto metadata = reader.metadata();
  std::uint64_t bytes = metadata->dtype.item_bytes(), tile_bytes = bytes;
  for (std::size_t d = 0; d < metadata->shape.size(); ++d) {
    if (!checked_mul(bytes, metadata->shape[d], &bytes) || bytes > kMostBytes) return;
    if (!checked_mul(tile_bytes, metadata->tile[d], &tile_bytes) || tile_bytes > kMostBytes) return;
  }
  const std::vector<std::uint64_t> zero(metadata->shape.size(), 0);
  Buffer all(static_cast<std::size_t>(bytes), std::byte{0xa5});
  reader.read(zero, metadata->shape, all);
  std::vector<std::uint64_t> first = zero, some = metadata->shape;
  first[0] = metadata->shape[0] / 3;
  some[0] -= first[0];
  Buffer part(metadata->shape[0] == 0 ? 0 : all.size() / metadata->shape[0] * some[0], std::byte{0x5a});
  reader.read(first, some, part);
  require(std::equal(part.begin(), part.end(), all.end() - static_cast<std::ptrdiff_t>(part.size())),
          "a box is that of the whole");
}

void seal(std::byte* begin, std::size_t bytes) {
  store<std::uint32_t>(begin + bytes, simd::crc32c(begin, bytes));
}

}  // namespace

// ---------------------------------------------------------------- zarr.json

// What is understood is written and understood again, as the same; an array without shards is fill values.
void tiles_metadata(Bytes input) {
  zarr::ArrayMetadata metadata;
  std::string text;
  try {
    metadata =
        zarr::ArrayMetadata::parse(Json::parse({reinterpret_cast<const char*>(input.data()), input.size()}));
    text = metadata.dump();
  } catch (const Error&) {
    return;
  }
  const std::string again = zarr::ArrayMetadata::parse(Json::parse(text)).dump();
  require(again == text, "what was written is read as the same");
  try {
    RecordedFiles files(
        FileContents{{tiles::kMetadataKey, {as_bytes(text.data()), as_bytes(text.data()) + text.size()}}});
    read_all(files);
  } catch (const Error&) {
  }
}

// ---------------------------------------------------------------- shards

// The first byte chooses the array's codec and where its indexes stand, the rest is its first shard.
void tiles_shard(Bytes input) {
  if (input.empty()) return;
  const auto choice = std::to_integer<unsigned>(input.front()) % 16;
  static const auto arrays = [] {
    std::vector<FileContents> all;
    for (unsigned i = 0; i < 16; ++i) all.push_back(written(i, true));
    return all;
  }();
  FileContents contents = arrays[choice];
  contents["c/0/0/0"].assign(input.begin() + 1, input.end());
  RecordedFiles files(std::move(contents));
  try {
    read_all(files);
  } catch (const Error& error) {
    require(error.code() != ErrorCode::Io, "damage is no error of the disk");
  }
}

// Changes numbers of the index and bytes of tiles, and repairs the checks of both.
void mutate_shard(Buffer& input, std::size_t most, Random& random, const Scramble& scramble) {
  constexpr std::size_t kEntries = 4, kIndexBytes = 16 * kEntries;
  if (random() % 4 == 0 || input.size() < 1 + kIndexBytes + kFrameTail) scramble(input, most);
  if (input.size() < 1 + kIndexBytes + kFrameTail) return;
  const auto choice = std::to_integer<unsigned>(input.front());
  std::byte* const file = input.data() + 1;
  const std::size_t size = input.size() - 1;
  std::byte* const index = choice / 8 % 2 != 0 ? file + size - kIndexBytes - kFrameTail : file;
  const std::size_t entry = random() % kEntries;
  switch (random() % 4) {
    case 0:
      store<std::uint64_t>(index + 16 * entry, random() % (size + 8));
      break;
    case 1:
      store<std::uint64_t>(index + 16 * entry + 8, random() % 300);
      break;
    case 2:
      store<std::uint64_t>(index + 16 * entry + 8 * (random() % 2), ~std::uint64_t{0} - random() % 3);
      break;
    default:
      file[random() % size] ^= static_cast<std::byte>(1u << random() % 8);
  }
  for (std::size_t i = 0; choice / 4 % 2 != 0 && i < kEntries; ++i) {
    const auto offset = load<std::uint64_t>(index + 16 * i), bytes = load<std::uint64_t>(index + 16 * i + 8);
    if (bytes >= kFrameTail && bytes <= size && offset <= size - bytes) {
      seal(file + offset, static_cast<std::size_t>(bytes) - kFrameTail);
    }
  }
  seal(index, kIndexBytes);
}

// ---------------------------------------------------------------- the journal

// The first byte chooses an array whose writer was killed, the rest is its journal. It is taken up or
// refused; what was taken up can be gone on with, and is as long as it says.
void tiles_journal(Bytes input) {
  if (input.empty()) return;
  const auto choice = std::to_integer<unsigned>(input.front()) % 32;
  static const auto arrays = [] {
    std::vector<FileContents> all;
    for (unsigned i = 0; i < 32; ++i) all.push_back(written(i, false));
    return all;
  }();
  FileContents contents = arrays[choice];
  contents[tiles::kJournalKey].assign(input.begin() + 1, input.end());
  RecordedFiles files(std::move(contents));
  std::uint64_t frames = 0;
  try {
    const auto writer = TileWriter::open(files.files(), TileOptions{}, 0);
    frames = writer->frames_received();
    if (writer->room_bytes() >= kFrameBytes) {
      writer->append(frame(frames));
      ++frames;
    }
    writer->close();
  } catch (const Error& error) {
    require(error.code() != ErrorCode::Io, "damage is no error of the disk");
    return;
  }
  require(TileReader(files.files()).metadata()->shape[0] == frames, "an array is as long as its writer said");
  try {
    read_all(files);
  } catch (const Error&) {  // a journal that lies under its checks
  }
}

// Changes numbers of the header and of records, and repairs their checks.
void mutate_journal(Buffer& input, std::size_t most, Random& random, const Scramble& scramble) {
  if (random() % 4 == 0 || input.size() < 1 + kHeaderBytes) scramble(input, most);
  if (input.size() < 1 + kHeaderBytes) return;
  std::byte* const header = input.data() + 1;
  const std::size_t records = (input.size() - 1 - kHeaderBytes) / kRecordBytes;
  static constexpr std::uint64_t kOdd[] = {
      0, 1, 2, 7, 8, 9, 240, 4096, 1u << 20, ~std::uint64_t{0}, std::uint64_t{1} << 62};
  const std::uint64_t odd = kOdd[random() % std::size(kOdd)] + random() % 3;
  if (records == 0 || random() % 8 == 0) {
    store<std::uint64_t>(header + 32, odd);
  } else {
    std::byte* const record = header + kHeaderBytes + random() % records * kRecordBytes;
    switch (random() % 4) {
      case 0:
        store<std::uint64_t>(record, odd);
        break;
      case 1:
        store<std::uint64_t>(record + 8, odd);
        break;
      case 2:
        store<std::uint64_t>(record + 16, odd);
        break;
      default:
        store<std::uint32_t>(record + 24, static_cast<std::uint32_t>(odd));
    }
  }
  const std::uint32_t key = simd::crc32c(header + 16, 16);
  store<std::uint32_t>(header + 60, simd::crc32c(header, 60, key));
  for (std::size_t i = 0; i < records; ++i) {
    std::byte* const record = header + kHeaderBytes + i * kRecordBytes;
    store<std::uint32_t>(record + 36, simd::crc32c(record, 36, key));
  }
}

// ---------------------------------------------------------------- blosc

// Two bytes say how much the frame holds, the rest is the frame: decoded into exactly that much, or refused,
// whatever memory held before.
void blosc_frame(Bytes input) {
  Choices choices(input);
  const std::size_t bytes = choices.word();
  Buffer once(bytes, std::byte{0}), twice(bytes, std::byte{0xff});
  try {
    blosc::decode(choices.rest(), once);
    blosc::decode(choices.rest(), twice);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::Corrupt || error.code() == ErrorCode::Unsupported,
            "a frame is damaged or not understood");
    return;
  }
  require(once == twice, "every byte is of the frame");
}

// Three bytes of options, then what is encoded, in two parts, and comes back.
void blosc_content(Bytes input) {
  Choices choices(input);
  const std::uint32_t how = choices.byte(), log = choices.byte() % 5, times = 1 + choices.byte() % 64;
  blosc::Options options;
  options.compressor = how % 2 == 0 ? Compressor::Zstd : Compressor::Lz4;
  options.shuffle = static_cast<zarr::BloscShuffle>(how / 2 % 3);
  options.skips_noise = how / 6 % 2 != 0;
  options.level = how / 12 % 2 != 0 ? 7 : 1;
  options.item_bytes = std::size_t{1} << log;
  Buffer content;
  for (std::uint32_t i = 0; i < times; ++i) {
    content.insert(content.end(), choices.rest().begin(), choices.rest().end());
  }
  content.resize(content.size() / options.item_bytes * options.item_bytes);
  if (content.empty()) return;
  const std::size_t cut = content.size() / options.item_bytes / 3 * options.item_bytes;
  const Bytes parts[] = {Bytes(content).first(cut), Bytes(content).subspan(cut)};
  Buffer out(blosc::encode_bound(content.size(), options));
  out.resize(blosc::encode(parts, content.size(), options, out));
  require(out.size() <= content.size() + blosc::kHeaderBytes, "a frame is no longer than what it holds");
  out.shrink_to_fit();
  Buffer back(content.size());
  blosc::decode(out, back);
  require(back == content, "content comes back");
}

// A frame made here, of which zstd gives the stream back; none where `stored` is 0 or the whole stream.
void check_frame(const Buffer& stream, const Buffer& out, std::size_t stored) {
  if (stored == 0 || stored == stream.size()) return;
  require(stored < stream.size(), "a frame is smaller than what it holds");
  Buffer back(stream.size());
  try {
    decompress(Compressor::Zstd, Bytes(out).first(stored), back);
  } catch (const Error&) {
    require(false, "zstd reads the frame");
  }
  require(back == stream, "zstd gives the stream back");
}

// Bytes say how often each value comes in a stream: of half of them, then of the others, then of the first
// again, whose codes are known by then.
void blosc_literals(Bytes input) {
  Choices choices(input);
  const std::size_t bytes = blosc::kLeastLiterals + choices.word() % 20000;
  const std::uint32_t seed = choices.word();
  const Bytes all = choices.rest(), first = all.first(all.size() / 2);
  blosc::LiteralEncoder encoder;
  for (const Bytes from : {first, all.subspan(first.size()), first}) {
    if (from.empty()) continue;
    Random random(seed + 1);
    Buffer stream(bytes);
    for (std::byte& byte : stream) byte = from[random() % from.size()];
    Buffer out(blosc::literals_bound(bytes));
    check_frame(stream, out, encoder.encode(stream, out));
  }
}

// Pairs of a byte and how long it is repeated, again from the first until the stream is full.
void blosc_runs(Bytes input) {
  Choices choices(input);
  const std::size_t bytes = blosc::kLeastLiterals + choices.word() * std::size_t{31} / 16;
  const Bytes pairs = choices.rest();
  if (pairs.size() < 2) return;
  Buffer stream;
  for (std::size_t i = 0; stream.size() < bytes; i = i + 3 < pairs.size() ? i + 2 : 0) {
    const std::size_t code = std::to_integer<std::size_t>(pairs[i + 1]);
    const std::size_t length = code < 200 ? code / 4 + 1 : std::size_t{1} << (code - 200) / 3;
    stream.insert(stream.end(), std::min(length, bytes - stream.size()), pairs[i]);
  }
  blosc::RunEncoder encoder;
  Buffer out(blosc::literals_bound(bytes));
  check_frame(stream, out, encoder.encode(stream, out));
}

}  // namespace cdd::fuzz
