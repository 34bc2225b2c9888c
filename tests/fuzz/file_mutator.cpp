// Mutators of files: they change bytes anywhere and repair the checks of headers, index blocks and records.
#include <algorithm>

#include "core/base/hash.h"
#include "core/codec/compressor.h"
#include "core/storage/memory.h"
#include "core/store/header.h"
#include "tests/fuzz/target.h"

namespace cdd::fuzz {
namespace {

constexpr std::uint64_t kBlocks = 20;         // of a file, as many are repaired
constexpr std::size_t kMetadataHashAt = 112;  // format.md, "METADATA"

std::uint32_t odd_number(Random& random) {
  static constexpr std::uint32_t kOdd[] = {0, 1, 2, 7, 8, 255, 65535, 1u << 20, 1u << 31, ~0u};
  return random() % 2 == 0 ? kOdd[random() % std::size(kOdd)] : static_cast<std::uint32_t>(random());
}

bool lies_within(const Buffer& file, std::uint64_t at, std::uint64_t bytes) {
  return at <= file.size() && bytes <= file.size() - at;
}

void change_metadata(Metadata& metadata, Random& random) {
  const std::uint32_t dims[3] = {1 + static_cast<std::uint32_t>(random()) % 64,
                                 1 + static_cast<std::uint32_t>(random()) % 4, 1};
  switch (random() % 5) {
    case 0:
      metadata.first_capacity = 1u << random() % 21;
      break;
    case 1:
      try {
        metadata.layout = RowLayout(DType(static_cast<Kind>(random() % 18)), {dims, random() % 4});
      } catch (const Error&) {
      }
      break;
    case 2:
      metadata.layout = {};
      break;
    case 3:
      metadata.index_type = random() % 2 == 0 ? BlockType::Slots : BlockType::Offsets;
      break;
    default:
      metadata.chunk_rows = odd_number(random);
  }
}

// Gives the record at `offset` the check of chunk `key`, and returns it.
std::uint32_t repair_record(Buffer& file, std::uint64_t offset, std::uint32_t size, std::uint64_t key,
                            std::uint64_t salt) {
  std::byte* const p = file.data() + offset;
  const std::size_t checked = size - kRecordCheckBytes;
  const std::uint32_t check = check32(CheckDomain::Record, salt, key, Bytes(p, checked));
  store<std::uint32_t>(p + checked, check);
  return check;
}

void repair_slot(Buffer& file, std::uint64_t at, std::uint64_t key, std::uint64_t salt) {
  std::byte* const p = file.data() + at;
  if (is_zero_slot(p)) return;
  Slot slot{load<std::uint64_t>(p), load<std::uint64_t>(p + 8), load<std::uint32_t>(p + 16),
            load<std::uint32_t>(p + 20), load<std::uint32_t>(p + 24)};
  if (slot.is_chunk() && slot.size >= kMinRecordBytes && lies_within(file, slot.offset, slot.size)) {
    slot.record_check = repair_record(file, slot.offset, slot.size, key, salt);
  }
  put_slot(slot, salt, key, file.data() + at);
}

// All slots in blocks that the links lead to.
void repair_slot_blocks(Buffer& file, const Header& header) {
  const BlockGeometry geometry = header.metadata.geometry();
  std::uint64_t block = header.first_block;
  for (std::uint64_t k = 0; k < kBlocks && lies_within(file, block, geometry.block_bytes(k)); ++k) {
    const std::uint32_t capacity = geometry.capacity(k);
    for (std::uint32_t i = 0; i <= capacity; ++i) {
      const std::uint64_t key = i == capacity ? kLinkKey | k : geometry.first_chunk(k) + i;
      repair_slot(file, block + kBlockHeaderBytes + kSlotBytes * i, key, header.metadata.check_salt());
    }
    const auto next = load<std::uint64_t>(file.data() + block + kBlockHeaderBytes + kSlotBytes * capacity);
    if (next <= block) return;
    block = next;
  }
}

// The same for blocks of plain offsets: their hashes, and the records they lead to.
void repair_plain_blocks(Buffer& file, const Header& header) {
  const BlockGeometry geometry = header.metadata.geometry();
  std::uint64_t block = header.first_block;
  for (std::uint64_t k = 0; k < kBlocks && lies_within(file, block, kBlockHeaderBytes); ++k) {
    const auto size = load<std::uint32_t>(file.data() + block);
    const auto type = static_cast<BlockType>(load<std::uint16_t>(file.data() + block + 4));
    if (size < kBlockHeaderBytes || !lies_within(file, block, size)) return;
    const Bytes body =
        Bytes(file).subspan(static_cast<std::size_t>(block) + kBlockHeaderBytes, size - kBlockHeaderBytes);
    const std::uint32_t capacity = geometry.capacity(k);
    if (capacity > file.size()) return;
    Buffer entries(8 * (std::size_t{capacity} + 1));
    try {
      decompress(type == BlockType::OffsetsLz4 ? Compressor::Lz4 : Compressor::None, body, entries);
    } catch (const Error&) {
      return;
    }
    for (std::uint32_t i = 0; i < capacity; ++i) {
      const auto record = load<std::uint64_t>(entries.data() + 8 * i);
      if (!lies_within(file, record, kMinRecordBytes)) continue;
      const auto record_bytes = load<std::uint32_t>(file.data() + record);
      if (record_bytes < kMinRecordBytes || !lies_within(file, record, record_bytes)) continue;
      repair_record(file, record, record_bytes, geometry.first_chunk(k) + i, header.metadata.check_salt());
    }
    const Hash128 hash = hash128(body);
    store<std::uint64_t>(file.data() + block + kBlockHashAt, hash[0]);
    store<std::uint64_t>(file.data() + block + kBlockHashAt + 8, hash[1]);
    const auto next = load<std::uint64_t>(entries.data() + 8 * std::size_t{capacity});
    if (next <= block) return;
    block = next;
  }
}

Buffer compressed(Bytes bytes) {
  Buffer frame(bytes.empty() ? 0 : compress_bound(Compressor::Zstd, bytes.size()));
  if (!bytes.empty()) frame.resize(compress(Compressor::Zstd, bytes, frame, 1, true));
  return frame;
}

void put(Buffer& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void put_length(Buffer& to, std::size_t length) {
  to.resize(to.size() + 4);
  store<std::uint32_t>(to.data() + to.size() - 4, static_cast<std::uint32_t>(length));
}

// A header around any bytes of metadata, with a hash that holds.
Buffer header_of(Buffer metadata, const Buffer& user_frame) {
  Buffer file(kMetadataAt);
  store<std::uint32_t>(file.data(), kMagic);
  store<std::uint16_t>(file.data() + 4, kVersion);
  Buffer hashed = file;
  put(hashed, metadata);
  put(hashed, user_frame);
  const Hash128 hash = hash128(hashed);
  metadata.resize(kMetadataBytes);
  store<std::uint64_t>(metadata.data() + kMetadataHashAt, hash[0]);
  store<std::uint64_t>(metadata.data() + kMetadataHashAt + 8, hash[1]);
  Buffer frame = compressed(metadata);
  constexpr std::size_t kLeastPadding = 8;
  const std::size_t unpadded = kMetadataAt + 8 + frame.size() + user_frame.size();
  Buffer padding(static_cast<std::size_t>(align_block(unpadded + kLeastPadding)) - unpadded);
  put_zstd_padding(padding);
  put(frame, padding);
  put_length(file, frame.size());
  put(file, frame);
  put_length(file, user_frame.size());
  put(file, user_frame);
  return file;
}

bool take_header(const Buffer& file, Header* header) {
  try {
    *header = read_header(ViewStorage(file, "fuzzed"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void mutate_file(Buffer& file, std::size_t most, Random& random, const Scramble& scramble) {
  Header header;
  if (!take_header(file, &header) || random() % 16 == 0) return scramble(file, most);

  const auto head_bytes = std::min(static_cast<std::size_t>(header.first_block), file.size());
  Buffer body(file.begin() + static_cast<std::ptrdiff_t>(head_bytes), file.end());
  if (random() % 16 == 0) {
    change_metadata(header.metadata, random);
  } else if (!body.empty() && random() % 2 == 0) {
    // One number of one slot or record.
    const std::size_t at = random() % body.size() / 4 * 4 + 2;
    if (at + 4 <= body.size()) store<std::uint32_t>(body.data() + at, odd_number(random));
  } else {
    scramble(body, std::max(body.size(), most > head_bytes ? most - head_bytes : 0));
  }
  file = encode_header(header.metadata, header.user_meta);
  header.first_block = file.size();
  file.insert(file.end(), body.begin(), body.end());
  if (random() % 8 == 0) return;
  if (header.metadata.index_type == BlockType::Slots) {
    repair_slot_blocks(file, header);
  } else {
    repair_plain_blocks(file, header);
  }
}

// Changes what the frames hold: the metadata's bytes or the user's, with the hash that covers both.
void mutate_header(Buffer& file, std::size_t most, Random& random, const Scramble& scramble) {
  Header header;
  if (!take_header(file, &header) || random() % 4 == 0) return scramble(file, most);
  if (random() % 2 == 0) scramble(header.user_meta, 256);
  if (random() % 2 == 0) {
    change_metadata(header.metadata, random);
    file = encode_header(header.metadata, header.user_meta);
    return;
  }
  Buffer raw(kMetadataBytes);
  put_metadata(header.metadata, {}, raw.data());
  raw.resize(kMetadataHashAt);
  scramble(raw, raw.size());
  raw.resize(kMetadataHashAt);
  file = header_of(std::move(raw), compressed(header.user_meta));
}

}  // namespace cdd::fuzz
