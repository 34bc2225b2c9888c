// The many-rows side of Reader: ranges and windows cut into pieces of chunks, pieces read chunk by chunk,
// several chunks at a time.
#include <algorithm>

#include "core/codec/cells.h"
#include "core/store/executor.h"
#include "core/store/reader.h"

namespace cdd {
namespace {

// Below this a thread costs more than it saves.
constexpr std::uint64_t kTaskBytes = std::uint64_t{256} << 10;
// Raw bytes between two pieces that cost less to decode than starting anew: many codecs decompress all of a
// chunk whatever is wanted of it.
constexpr std::uint64_t kNearBytes = std::uint64_t{32} << 10;
// Tasks for each thread: enough to even out chunks that decode at different speeds.
constexpr std::uint64_t kTasksPerThread = 8;

}  // namespace

// `row_bytes` that a row takes at `out`.
void Reader::cut_into_pieces(RowRange range, std::uint64_t row_bytes, std::byte* out,
                             std::vector<Piece>& pieces) const {
  const std::uint64_t end = range.first + range.count;
  std::uint64_t row = range.first;
  for (std::uint64_t chunk = index_.chunk_of_row(row); row < end; ++chunk) {
    if (chunk >= chunks()) {
      fail(ErrorCode::Checksum, "rows from %llu on are lost: the index slots of the last chunks are damaged",
           static_cast<unsigned long long>(row));
    }
    const std::uint64_t chunk_end = index_.entry(chunk).row_end;
    if (chunk_end <= row) continue;  // a damaged slot; reading the next chunk finds out what is lost
    const std::uint64_t count = std::min(end, chunk_end) - row;
    pieces.push_back({chunk, row, count, out});
    out += count * row_bytes;
    row += count;
  }
}

// Pieces of one chunk, in order of their first row. Rows that several of them share are decoded once, and
// pieces that are near one another are decoded together with what lies between.
void Reader::read_pieces(std::span<const Piece> pieces, const Cells* cells) const {
  const std::size_t row_bytes = cells_bytes(layout_, cells);
  const std::uint64_t near_rows = kNearBytes / layout_.row_bytes();
  const OpenChunk open = open_chunk_with(pieces.front().chunk, pieces.front().first);
  for (std::size_t i = 0, next = 0; i < pieces.size(); i = next) {
    const std::uint64_t first = pieces[i].first;
    std::uint64_t end = first + pieces[i].count;
    for (next = i + 1; next < pieces.size() && pieces[next].first <= end + near_rows; ++next) {
      end = std::max(end, pieces[next].first + pieces[next].count);
    }
    const RowRange range{first - open.rows.first, end - first};
    if (next == i + 1) {
      decode(open, range, cells, pieces[i].to);
      continue;
    }
    const auto bytes = static_cast<std::size_t>(range.count * row_bytes);
    std::byte* const rows = scratch(Stage::Gather).get(bytes).data();
    decode(open, range, cells, rows);
    for (std::size_t k = i; k < next; ++k) {
      const RowSpan part({pieces[k].first - first, pieces[k].count});
      std::memcpy(pieces[k].to, rows + part.first * row_bytes, part.count * row_bytes);
    }
  }
}

// Sorts the pieces, `rows` rows together, by place in the file and reads them, chunk by chunk.
void Reader::read_in_parallel(std::vector<Piece>& pieces, std::uint64_t rows, const Cells* cells) const {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.chunk != b.chunk ? a.chunk < b.chunk : a.first < b.first;
  });
  std::vector<std::size_t> chunk_begin;  // index of each chunk's first piece, and the end
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i == 0 || pieces[i].chunk != pieces[i - 1].chunk) chunk_begin.push_back(i);
  }
  chunk_begin.push_back(pieces.size());
  const std::size_t chunks = chunk_begin.size() - 1;
  const std::uint64_t by_size = rows * layout_.row_bytes() / kTaskBytes + 1;
  const std::uint64_t tasks = std::min<std::uint64_t>({chunks, by_size, threads() * kTasksPerThread});
  for_each(static_cast<std::size_t>(tasks), [&](std::size_t task) {
    const std::size_t begin = chunks * task / static_cast<std::size_t>(tasks);
    const std::size_t end = chunks * (task + 1) / static_cast<std::size_t>(tasks);
    for (std::size_t c = begin; c < end; ++c) {
      read_pieces(std::span(pieces).subspan(chunk_begin[c], chunk_begin[c + 1] - chunk_begin[c]), cells);
    }
  });
}

void Reader::read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                          const Cells* cells) const {
  for (const std::uint64_t start : starts) check_range({start, rows});
  cells = checked(cells);
  const std::uint64_t row_bytes = cells_bytes(layout(), cells);
  std::uint64_t all_rows = 0;
  std::uint64_t bytes = 0;
  if (!checked_mul(starts.size(), rows, &all_rows) || !checked_mul(all_rows, row_bytes, &bytes) ||
      bytes != out.size()) {
    fail(ErrorCode::InvalidArgument,
         "%zu windows of %llu rows of %llu bytes do not fit a buffer of %zu bytes", starts.size(),
         static_cast<unsigned long long>(rows), static_cast<unsigned long long>(row_bytes), out.size());
  }
  if (all_rows == 0) return;
  std::vector<Piece> pieces;
  pieces.reserve(2 * starts.size());
  for (std::size_t w = 0; w < starts.size(); ++w) {
    cut_into_pieces({starts[w], rows}, row_bytes, out.data() + w * rows * row_bytes, pieces);
  }
  read_in_parallel(pieces, all_rows, cells);
}

}  // namespace cdd
