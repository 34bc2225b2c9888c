// Encoding and decoding for codec tests: exactly sized buffers, so that a sanitizer sees every byte too many.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "core/base/scratch.h"
#include "core/codec/chunk_codec.h"
#include "core/codec/codec.h"

namespace cdd::test {

using Buffer = std::vector<std::byte>;

struct Encoded {
  Buffer payload;  // padding not included: decode() adds it
  std::uint64_t flags = 0;
  CastError cast_error;
  Buffer reconstructed;
};

inline Encoded encode(const Codec& codec, const RowLayout& layout, Bytes rows, std::uint32_t n_rows,
                      EncodeContext context = {}) {
  Encoded result;
  result.reconstructed.resize(rows.size());
  context.reconstructed = result.reconstructed.data();
  Buffer out(codec.bound(layout, n_rows) + kScratchPadding);
  const std::size_t n =
      codec.encode(layout, rows, n_rows, context, MutableBytes(out).first(out.size() - kScratchPadding));
  EXPECT_LE(n, out.size() - kScratchPadding);
  result.payload.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
  result.flags = context.flags;
  result.cast_error = context.cast_error;
  return result;
}

inline Buffer decode(const Codec& codec, const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags,
                     Bytes payload, RowRange range) {
  Buffer padded(payload.begin(), payload.end());
  padded.resize(payload.size() + kScratchPadding, std::byte{0xa5});
  Buffer out(range.count * layout.row_bytes());
  codec.decode_rows_into(layout, n_rows, flags, Bytes(padded).first(payload.size()), range, out.data());
  return out;
}

// The first cell of these rows, as the codec has it.
inline Buffer decode_first_cell(const Codec& codec, const RowLayout& layout, std::uint32_t n_rows,
                                std::uint64_t flags, Bytes payload, RowRange range) {
  Buffer padded(payload.begin(), payload.end());
  padded.resize(payload.size() + kScratchPadding, std::byte{0xa5});
  Buffer out(range.count * layout.item_bytes());
  codec.decode_cells_into(layout, n_rows, flags, Bytes(padded).first(payload.size()), range, {0, 1, 0, 1},
                          out.data());
  return out;
}

// A whole record, exactly sized; empty when the codec declined.
inline Buffer encode_record(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Scheme& scheme,
                            EncodedChunk* encoded = nullptr) {
  Buffer out(record_bound(layout, n_rows, scheme) + kScratchPadding);
  const EncodedChunk chunk = encode_chunk(layout, rows, n_rows, scheme, {7, 3},
                                          MutableBytes(out).first(out.size() - kScratchPadding));
  if (encoded != nullptr) *encoded = chunk;
  out.resize(chunk.record_bytes);
  return out;
}

inline Buffer decode_record(const RowLayout& layout, std::uint32_t n_rows, Bytes record, RowRange range,
                            Verify verify = Verify::Full) {
  Buffer padded(record.begin(), record.end());
  padded.resize(record.size() + kScratchPadding, std::byte{0x5a});
  Buffer out(range.count * layout.row_bytes());
  decode_chunk_rows(layout, Bytes(padded).first(record.size()), {7, 3}, verify, n_rows, range, out.data());
  return out;
}

inline Bytes slice(Bytes rows, const RowLayout& layout, RowRange range) {
  return rows.subspan(range.first * layout.row_bytes(), range.count * layout.row_bytes());
}

inline bool same(Bytes a, Bytes b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

// Ranges worth asking for: everything, single rows, the ends, and some at random.
inline std::vector<RowRange> ranges_of(std::uint32_t n_rows) {
  std::vector<RowRange> ranges{{0, n_rows}, {0, 1}, {n_rows - 1, 1}, {n_rows / 2, 1}};
  std::mt19937 random(n_rows);
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t first = random() % n_rows;
    ranges.push_back({first, random() % (n_rows - first) + 1});
  }
  return ranges;
}

// Every single-bit error and every truncation of a payload: an Error or rows of any content, nothing worse
// (a sanitizer watches). Long payloads are sampled.
inline void damage_payload(const Codec& codec, const RowLayout& layout, std::uint32_t n_rows,
                           std::uint64_t flags, Bytes payload) {
  const auto attempt = [&](Bytes damaged, RowRange range) {
    try {
      decode(codec, layout, n_rows, flags, damaged, range);
      if (codec.decode_cells_into != nullptr && layout.row_items() > 1) {
        decode_first_cell(codec, layout, n_rows, flags, damaged, range);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt) << error.what();
    }
  };
  const std::size_t step = payload.size() / 512 + 1;
  for (std::size_t size = 0; size < payload.size(); size += step) attempt(payload.first(size), {0, n_rows});
  Buffer damaged(payload.begin(), payload.end());
  for (std::size_t i = 0; i < damaged.size(); i += i < 64 ? 1 : step) {
    for (int bit = 0; bit < 8; ++bit) {
      damaged[i] ^= static_cast<std::byte>(1 << bit);
      attempt(damaged, {n_rows / 3, n_rows - n_rows / 3});
      damaged[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
}

// The same for a whole record: without checks nothing worse than an Error, with them always the right rows or
// an Error.
inline void damage_record(const RowLayout& layout, std::uint32_t n_rows, Bytes record, Bytes expected) {
  const auto attempt = [&](Bytes damaged, Verify verify) {
    try {
      const Buffer rows = decode_record(layout, n_rows, damaged, {0, n_rows}, verify);
      if (verify != Verify::None) {
        EXPECT_TRUE(same(rows, expected));
      }
    } catch (const Error&) {
    }
  };
  const std::size_t step = record.size() / 256 + 1;
  for (std::size_t size = 0; size < record.size(); size += step) {
    attempt(record.first(size), Verify::None);
    attempt(record.first(size), Verify::Stored);
  }
  Buffer damaged(record.begin(), record.end());
  for (std::size_t i = 0; i < damaged.size(); i += i < 64 ? 1 : step) {
    for (int bit = 0; bit < 8; ++bit) {
      damaged[i] ^= static_cast<std::byte>(1 << bit);
      for (const Verify verify : {Verify::None, Verify::Stored, Verify::Full}) attempt(damaged, verify);
      damaged[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
}

// A small deterministic book: asks up from 100, bids down, sizes and counts that change now and then.
inline std::vector<float> small_book(std::uint32_t n_rows, std::uint32_t levels, std::uint32_t features) {
  std::vector<float> book;
  for (std::uint32_t r = 0; r < n_rows; ++r) {
    for (std::uint32_t d = 0; d < levels; ++d) {
      const bool bid = d >= levels / 2;
      const auto depth = static_cast<float>(bid ? d - levels / 2 : d) + 1;
      const float drift = static_cast<float>(r / 3) * 0.25f;
      for (std::uint32_t f = 0; f < features; ++f) {
        const float price = 100 + drift + (bid ? -depth : depth) * 0.5f;
        book.push_back(f == 0 ? price : static_cast<float>((r / (d + 1) + f * 7 + d) % 13) * 1.5f);
      }
    }
  }
  return book;
}

inline Bytes bytes_of(const std::vector<float>& floats) {
  return {as_bytes(floats.data()), floats.size() * sizeof(float)};
}

inline Buffer random_bytes(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Buffer bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace cdd::test
