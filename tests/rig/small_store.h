// Small stores in memory for tests that take them apart: chunks written by every scheme there is.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "core/codec/chunk_codec.h"
#include "core/storage/memory.h"
#include "core/store/header.h"
#include "core/store/index/index_writer.h"

namespace cdd {

struct SmallStore {
  RowLayout layout;
  std::uint32_t chunk_rows = 0;
  std::vector<std::byte> rows;       // all of them
  std::vector<std::byte> image;      // of the file
  std::vector<PendingChunk> chunks;  // record_offset is that in the file
  std::uint64_t first_block = 0;
  std::uint64_t proven_chunks = 0;  // committed, as the clean-close slot or a later SYNCED one proves

  std::size_t chunk_bytes() const { return std::size_t{chunk_rows} * layout.row_bytes(); }
};

// All schemes whose codec takes such rows.
inline std::vector<Scheme> schemes_for(const RowLayout& layout) {
  std::vector<Scheme> schemes;
  for (const Codec* codec : codecs()) {
    if (!codec->accepts(layout)) continue;
    for (const Compressor compressor : {Compressor::None, Compressor::Lz4, Compressor::Zstd}) {
      for (const bool planes : {false, true}) {
        Scheme scheme;
        scheme.codec = codec;
        scheme.compressor = compressor;
        scheme.byte_planes = planes;
        scheme.float16.enabled = codec->id == CodecId::OkxObF16;  // small_rows() fit into 16 bits
        schemes.push_back(scheme);
      }
    }
  }
  return schemes;
}

// Rows that look like books: sorted-ish numbers that move a little, a few decimals.
inline std::vector<std::byte> small_rows(const RowLayout& layout, std::size_t n_rows, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(n_rows * layout.row_bytes());
  if (layout.dtype() == DType(Kind::Float32)) {
    for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
      const std::size_t column = i % layout.row_items();
      store<float>(bytes.data() + 4 * i,
                   100.0f + static_cast<float>(column) + static_cast<float>(random() % 8) / 8);
    }
  } else {
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 32);
  }
  return bytes;
}

// `chunks` chunks, an append each, committed after every third; closed cleanly or left as a live writer
// leaves it.
inline SmallStore make_small_store(const RowLayout& layout, std::uint32_t chunk_rows, std::size_t chunks,
                                   bool close, std::uint32_t first_capacity = 4) {
  SmallStore made;
  made.layout = layout;
  made.chunk_rows = chunk_rows;
  made.rows = small_rows(layout, chunk_rows * chunks, 5);
  Metadata metadata;
  metadata.salt.fill(std::byte{0x5a});
  metadata.first_capacity = first_capacity;
  metadata.layout = layout;
  MemoryStorage storage;
  const auto header = encode_header(metadata, {});
  made.first_block = header.size();
  storage.write_at(0, Bytes(header));
  IndexWriter writer = IndexWriter::create(storage, metadata, header.size());
  const auto schemes = schemes_for(layout);
  for (std::size_t i = 0, scheme = 0; i < chunks; ++scheme) {
    const Scheme& with = schemes[scheme % schemes.size()];
    std::vector<std::byte> record(record_bound(layout, chunk_rows, with) + kScratchPadding);
    const Bytes rows = Bytes(made.rows).subspan(i * made.chunk_bytes(), made.chunk_bytes());
    const EncodedChunk chunk =
        encode_chunk(layout, rows, chunk_rows, with, {metadata.check_salt(), i}, record);
    if (chunk.record_bytes == 0) continue;
    writer.append(Bytes(record).first(chunk.record_bytes),
                  {{0, chunk.record_bytes, chunk.record_check, chunk_rows}}, true);
    made.chunks.push_back(
        {storage.size() - chunk.record_bytes, chunk.record_bytes, chunk.record_check, chunk_rows});
    if (++i % 3 == 0) writer.commit();
  }
  made.proven_chunks = close ? chunks : chunks / 3 * 3;
  if (close) writer.close();
  storage.visit([&](Bytes bytes) { made.image.assign(bytes.begin(), bytes.end()); });
  return made;
}

}  // namespace cdd
