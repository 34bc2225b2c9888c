// The many-rows side of Reader: ranges cut where chunks begin; windows cut into pieces of chunks, which are
// read chunk by chunk; several chunks at a time.
#include <algorithm>
#include <functional>

#include "core/codec/cells.h"
#include "core/simd/fetch.h"
#include "core/store/reader.h"
#include "core/threads/for_each.h"

namespace cdd {
namespace {

struct SharedRows {};

// Below this a thread costs more than it saves.
constexpr std::uint64_t kTaskBytes = std::uint64_t{256} << 10;
// Raw bytes between two pieces that cost less to decode than starting anew: many codecs decompress all of a
// chunk whatever is wanted of it.
constexpr std::uint64_t kNearBytes = std::uint64_t{32} << 10;
// Bytes that are copied in the time that a codec takes to start anew where it has nothing to decompress.
constexpr std::uint64_t kStartBytes = std::uint64_t{24} << 10;
// Tasks for each thread: enough to even out chunks that decode at different speeds.
constexpr std::uint64_t kTasksPerThread = 8;

// Chunks that are read while the processor fetches what the next one needs.
constexpr std::size_t kAhead = 4;

std::uint64_t task_count(std::uint64_t chunks, std::uint64_t raw_bytes) {
  return std::min<std::uint64_t>({chunks, raw_bytes / kTaskBytes + 1, threads() * kTasksPerThread});
}

}  // namespace

// Cut where chunks begin. Where slots are damaged, tasks may be left with fewer rows, or none.
void Reader::read_range_in_parallel(RowRange range, const Cells* cells, std::byte* out) const {
  const std::uint64_t end = range.first + range.count;
  const std::uint64_t first_chunk = std::min(index_.chunk_of_row(range.first), index_.chunks() - 1);
  const std::uint64_t last_chunk = std::clamp(index_.chunk_of_row(end - 1), first_chunk, index_.chunks() - 1);
  const std::uint64_t chunks = last_chunk - first_chunk + 1;
  const std::uint64_t tasks = task_count(chunks, range.count * layout_.row_bytes());
  const auto begin_of = [&](std::uint64_t task) {
    if (task == 0) return range.first;
    if (task == tasks) return end;
    const ChunkEntry entry = index_.entry(first_chunk + chunks * task / tasks);
    return std::clamp(entry.row_begin, range.first, end);
  };
  const std::size_t row_bytes = cells_bytes(layout_, cells);
  for_each(static_cast<std::size_t>(tasks), [&](std::size_t task) {
    const std::uint64_t begin = begin_of(task), task_end = begin_of(task + 1);
    if (begin >= task_end) return;
    read_range({begin, task_end - begin}, cells, out + (begin - range.first) * row_bytes);
  });
}

void Reader::cut_into_pieces(RowRange range, const Cells* cells, std::byte* out,
                             std::vector<Piece>& pieces) const {
  check_range(range, rows());
  const std::size_t row_bytes = cells_bytes(layout_, cells);
  const std::uint64_t end = range.first + range.count;
  std::uint64_t row = range.first;
  for (std::uint64_t chunk = row < end ? index_.chunk_of_row(row) : 0; row < end; ++chunk) {
    if (chunk >= chunks()) {
      fail(ErrorCode::Checksum, "rows from %llu on are lost: the index slots of the last chunks are damaged",
           static_cast<unsigned long long>(row));
    }
    const std::uint64_t chunk_end = index_.entry(chunk).row_end;
    if (chunk_end <= row) continue;  // a damaged slot; reading the next chunk finds out what is lost
    const std::uint64_t count = std::min(end, chunk_end) - row;
    pieces.push_back({this, cells, chunk, row, count, out});
    out += count * row_bytes;
    row += count;
  }
}

std::vector<ByteRange> Reader::plan(std::span<const std::uint64_t> starts, std::uint64_t rows) const {
  std::vector<std::uint64_t> chunks;
  for (const std::uint64_t start : starts) {
    const ChunkRange range = chunks_of({start, rows});
    for (std::uint64_t chunk = range.first; chunk < range.end; ++chunk) chunks.push_back(chunk);
  }
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  std::vector<ByteRange> ranges;
  ranges.reserve(chunks.size());
  for (const std::uint64_t chunk : chunks) add_range_of(chunk, ranges);
  return ranges;
}

void Reader::add_range_of(std::uint64_t chunk, std::vector<ByteRange>& ranges) const {
  const ChunkEntry entry = index_.entry(chunk);
  if (!entry.is_damaged()) ranges.push_back({entry.offset, entry.size});
}

void Reader::ask(RowRange range) const {
  const ChunkRange chunks = chunks_of(range);
  std::vector<ByteRange> ranges;
  for (std::uint64_t chunk = chunks.first; chunk < chunks.end; ++chunk) add_range_of(chunk, ranges);
  if (!ranges.empty()) storage_->ask(ranges);
}

void Reader::fetch_record_ahead(std::uint64_t chunk) const {
  const ChunkEntry entry = index_.entry(chunk);
  storage_->fetch_ahead(entry.offset, entry.size);
}

void Reader::tell(Ahead& ahead) const noexcept {
  ahead.warm.store(warm_bytes(), std::memory_order_relaxed);
  ahead.storage.store(storage_.get(), std::memory_order_relaxed);
  index_.tell(ahead.index);
}

bool Reader::Ahead::fetch(std::uint64_t row) const noexcept {
  cdd::fetch_ahead(warm.load(std::memory_order_relaxed), kWarmBytes);
  cdd::fetch_ahead(storage.load(std::memory_order_relaxed), 1);
  return index.fetch(row);
}

// Pieces that are near one another are decoded together.
void Reader::read_chunk_pieces(std::span<const Piece> pieces) const {
  const std::uint64_t near_rows = kNearBytes / layout_.row_bytes();
  const OpenChunk open = open_chunk_with(pieces.front().chunk, pieces.front().first);
  for (std::size_t i = 0, next = 0; i < pieces.size(); i = next) {
    std::uint64_t end = pieces[i].end();
    for (next = i + 1; next < pieces.size() && pieces[next].first <= end + near_rows; ++next) {
      end = std::max(end, pieces[next].end());
    }
    read_near(open, pieces.subspan(i, next - i), end);
  }
}

// Each row is decoded once, the last being before `end`: into the first piece that has it, from which later
// ones copy it; or all rows together, when that would mean starting too often, and every piece copies.
void Reader::read_near(const OpenChunk& open, std::span<const Piece> pieces, std::uint64_t end) const {
  const Cells* const cells = pieces.front().cells;
  const std::size_t row_bytes = cells_bytes(layout_, cells);
  const std::uint64_t first = pieces.front().first;
  std::uint64_t starts = 0;
  for (std::uint64_t reached = first; const Piece& piece : pieces) {
    starts += piece.end() > reached;
    reached = std::max(reached, piece.end());
  }
  const RowSpan all({first - open.rows.first, end - first});
  const bool is_dear = is_compressed(open.record) || verify_ == Verify::Full;
  const bool apart = starts == 1 || (!is_dear && (starts - 1) * kStartBytes < all.count * row_bytes);
  Piece from{this, cells, open.number, first, 0, nullptr};  // reaches farther than all before
  if (!apart) {
    from = {this,  cells,       open.number,
            first, end - first, scratch<SharedRows>().get(all.count * row_bytes).data()};
    decode(open, {all.first, all.count}, cells, from.to);
  }
  for (const Piece& piece : pieces) {
    const std::uint64_t known_end = std::clamp(from.end(), piece.first, piece.end());
    const RowSpan known({piece.first - from.first, known_end - piece.first});
    if (known.count > 0) std::memcpy(piece.to, from.to + known.first * row_bytes, known.count * row_bytes);
    if (known_end == piece.end()) continue;
    decode(open, {known_end - open.rows.first, piece.end() - known_end}, cells,
           piece.to + known.count * row_bytes);
    from = piece;
  }
}

void Reader::read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                          const Cells* cells) const {
  cells = checked_cells(layout(), cells);
  const std::size_t row_bytes = cells_bytes(layout(), cells);
  // First, since a caller's count of starts may be what is wrong.
  const std::uint64_t all_rows = check_windows(starts.size(), rows, row_bytes, out.size());
  for (const std::uint64_t start : starts) check_range({start, rows}, this->rows());
  if (all_rows == 0) return;
  std::vector<Piece> pieces;
  pieces.reserve(2 * starts.size());
  for (std::size_t w = 0; w < starts.size(); ++w) {
    cut_into_pieces({starts[w], rows}, cells, out.data() + w * rows * row_bytes, pieces);
  }
  sort_pieces(pieces);
  read_sorted_pieces(pieces, all_rows * layout_.row_bytes());
}

void sort_pieces(std::span<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    if (a.reader != b.reader) return std::less<>()(a.reader, b.reader);
    if (a.chunk != b.chunk) return a.chunk < b.chunk;
    return a.first != b.first ? a.first < b.first : a.count > b.count;
  });
}

namespace {

// Of stores that are far: the chunks of these pieces, each store's in one message.
void ask_for(std::span<const Piece> pieces) {
  for (std::size_t i = 0, next = 0; i < pieces.size(); i = next) {
    const Reader& reader = *pieces[i].reader;
    std::vector<ByteRange> ranges;
    for (next = i; next < pieces.size() && pieces[next].reader == &reader; ++next) {
      if (next > i && pieces[next].chunk == pieces[next - 1].chunk) continue;
      if (reader.is_far()) reader.add_range_of(pieces[next].chunk, ranges);
    }
    if (!ranges.empty()) reader.storage().ask(ranges);
  }
}

}  // namespace

void read_sorted_pieces(std::span<const Piece> pieces, std::uint64_t raw_bytes, const Blame& blame) {
  const auto is_far = [](const Piece& piece) { return piece.reader->is_far(); };
  if (std::any_of(pieces.begin(), pieces.end(), is_far)) ask_for(pieces);
  std::vector<std::size_t> chunk_begin;  // index of each chunk's first piece, and the end
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i == 0 || pieces[i].chunk != pieces[i - 1].chunk || pieces[i].reader != pieces[i - 1].reader) {
      chunk_begin.push_back(i);
    }
  }
  chunk_begin.push_back(pieces.size());
  const std::size_t chunks = chunk_begin.size() - 1;
  const std::uint64_t tasks = task_count(chunks, raw_bytes);
  for_each(static_cast<std::size_t>(tasks), [&](std::size_t task) {
    const std::size_t begin = chunks * task / static_cast<std::size_t>(tasks);
    const std::size_t end = chunks * (task + 1) / static_cast<std::size_t>(tasks);
    for (std::size_t c = begin; c < end; ++c) {
      if (c + 2 * kAhead < end) {
        cdd::fetch_ahead(pieces[chunk_begin[c + 2 * kAhead]].reader->warm_bytes(), Reader::kWarmBytes);
      }
      if (c + kAhead < end) {
        const Piece& ahead = pieces[chunk_begin[c + kAhead]];
        ahead.reader->fetch_record_ahead(ahead.chunk);
      }
      const Piece& first = pieces[chunk_begin[c]];
      try {
        first.reader->read_chunk_pieces(pieces.subspan(chunk_begin[c], chunk_begin[c + 1] - chunk_begin[c]));
      } catch (const Error& error) {
        if (blame) blame(first, error);
        throw;
      }
    }
  });
}

}  // namespace cdd
