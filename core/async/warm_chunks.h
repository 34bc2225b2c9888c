// Which chunks of a store were read before: a bit a chunk. A read of such chunks is taken to need no disk.
//
// Any thread may call, without a lock. Only ever grows, by 8 KB for each 65,536 chunks that are touched.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/store/reader.h"

namespace cdd {

class WarmChunks {
 public:
  WarmChunks() = default;
  ~WarmChunks();
  WarmChunks(const WarmChunks&) = delete;
  WarmChunks& operator=(const WarmChunks&) = delete;

  // Whether reading these rows here and now costs less than having a thread do it: at most kInlineBytes, of
  // chunks that were read before or are in the page cache. False for rows that are not there. Throws as
  // Reader::chunk_rows where the index is damaged.
  static constexpr std::uint64_t kInlineBytes = std::uint64_t{64} << 10;
  bool is_warm(const Reader& reader, RowRange range);

  // Whether reading these rows takes no more than some ten microseconds: at most kShortBytes, of chunks that
  // were read before. Asks the system nothing.
  static constexpr std::uint64_t kShortBytes = std::uint64_t{128} << 10;
  bool is_short(const Reader& reader, RowRange range) const;

  // Says that these rows were read.
  void add(const Reader& reader, RowRange range);

  bool has(std::uint64_t chunk) const noexcept;

  // Without memory for the bit it stays unset: the chunk then counts as cold.
  void add(std::uint64_t chunk) noexcept;

 private:
  static constexpr std::size_t kPageBits = 65536;
  static constexpr std::size_t kPages = 4096;  // chunks beyond always count as cold
  using Page = std::array<std::atomic<std::uint64_t>, kPageBits / 64>;

  std::array<std::atomic<Page*>, kPages> pages_{};
};

}  // namespace cdd
