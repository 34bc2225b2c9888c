#include "core/tiles/pyramid/pyramid.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/threads/for_each.h"
#include "core/tiles/tile_reader.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;

U64 size_of_scale(U64 size, unsigned k) noexcept {
  for (; k > 0; --k) size = halved(size);
  return size;
}

// `rank`: dimensions of the array.
void check_options(const PyramidOptions& options, std::size_t rank) {
  if (options.scales == 0 || options.scales > 32) {
    fail(ErrorCode::InvalidArgument, "scales is %u, 1 to 32 are allowed", options.scales);
  }
  if (options.scales == 1) return;
  if (options.halves.size() != rank ||
      std::none_of(options.halves.begin(), options.halves.end(), [](bool halves) { return halves; })) {
    fail(ErrorCode::InvalidArgument, "smaller scales need at least one dimension that is halved");
  }
  if (options.first.index_at_end) {
    fail(ErrorCode::InvalidArgument,
         "a pyramid has its shards' indexes at the start, so that it can be gone on with");
  }
}

// Of frames of scale `scale` into those of the next.
Reducer make_reducer(const PyramidOptions& options, const TileOptions& scale) {
  std::vector<U64> frame;
  for (std::size_t d = 1; d < scale.dimensions.size(); ++d) frame.push_back(scale.dimensions[d].size);
  const std::vector<bool> halves(options.halves.begin() + 1, options.halves.end());
  return {scale.dtype, options.reduce, std::move(frame), halves, options.halves[0] ? 2u : 1u};
}

std::vector<TileOptions> scales_of(const PyramidOptions& options) {
  std::vector<TileOptions> scales;
  for (unsigned k = 0; k < options.scales; ++k) scales.push_back(options_of_scale(options, k));
  return scales;
}

// What smaller scales take beside the first, with the frames between them.
U64 bytes_of_smaller(const PyramidOptions& options, std::span<const TileOptions> scales, unsigned threads) {
  if (scales.size() == 1) return 0;
  // Scales have threads of their own in the background that encode, too. Smaller ones are seldom at it
  // together.
  constexpr unsigned kMoreThreads = 2;
  TileOptions first = scales[0];
  first.memory_bytes = 0;
  U64 bytes = bytes_needed(first, threads + kMoreThreads) - bytes_needed(first, threads);
  bytes += Tiling::make(first.dimensions, first.dtype.item_bytes()).frame_bytes();
  for (std::size_t k = 1; k < scales.size(); ++k) {
    // Threads keep what the largest needs, which is the first scale's.
    bytes += bytes_needed(scales[k], 0);
    bytes += make_reducer(options, scales[k - 1]).bytes();
  }
  return bytes;
}

// Those of arrays that are there, to be gone on with.
std::vector<TileOptions> stored_scales(const TilePyramid::FilesOf& files, const PyramidOptions& options,
                                       U64 bound) {
  std::vector<TileOptions> scales;
  TileOptions given = options.first;
  given.memory_bytes = 0;
  for (unsigned k = 0; k < options.scales; ++k) {
    const U64 of_scale = !options.halves.empty() && options.halves[0] ? size_of_scale(bound, k) : bound;
    scales.push_back(options_of(*TileReader(files(k)).metadata(), given, of_scale));
  }
  return scales;
}

// Work for several scales, whatever becomes of one; the first error counts.
class Attempts {
 public:
  template <class Work>
  bool make(Work&& work) noexcept {
    try {
      work();
      return true;
    } catch (...) {
      if (!first_) first_ = std::current_exception();
      return false;
    }
  }
  void tell() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

}  // namespace

TileOptions options_of_scale(const PyramidOptions& options, unsigned k) {
  TileOptions scale = options.first;
  if (k == 0) return scale;
  scale.memory_bytes = scale.memory_elsewhere = 0;
  scale.attributes = Json::object();
  for (std::size_t d = 0; d < scale.dimensions.size(); ++d) {
    Dimension& dimension = scale.dimensions[d];
    if (options.halves[d]) dimension.size = size_of_scale(dimension.size, k);
    if (d == 0) continue;
    const U64 tiles = dimension.size / dimension.tile + (dimension.size % dimension.tile != 0);
    dimension.shard_tiles = std::min(dimension.shard_tiles, tiles);
  }
  return scale;
}

U64 bytes_needed(const PyramidOptions& options, unsigned threads) {
  check_options(options, options.first.dimensions.size());
  std::vector<TileOptions> scales = scales_of(options);
  const U64 more = bytes_of_smaller(options, scales, threads);
  scales[0].memory_elsewhere = more;
  return bytes_needed(scales[0], threads) + more;
}

void TilePyramid::make_reducers(const PyramidOptions& options) {
  for (std::size_t k = 0; k + 1 < writers_.size(); ++k) {
    factors_.push_back(options.halves[0] ? 2 : 1);
    writers_[k + 1]->follow(*writers_[k], factors_[k]);
    reducers_.push_back(make_reducer(options, writers_[k]->options()));
    reducers_.back().take_memory();
  }
  if (writers_.size() > 1) frame_.resize(static_cast<std::size_t>(writers_[0]->tiling().frame_bytes()));
}

std::unique_ptr<TilePyramid> TilePyramid::create(const FilesOf& files, const PyramidOptions& options) {
  check_options(options, options.first.dimensions.size());
  std::unique_ptr<TilePyramid> pyramid(new TilePyramid);
  std::vector<TileOptions> scales = scales_of(options);
  scales[0].memory_elsewhere = bytes_of_smaller(options, scales, threads());
  for (unsigned k = 0; k < options.scales; ++k) {
    pyramid->writers_.push_back(TileWriter::create(files(k), scales[k]));
  }
  pyramid->make_reducers(options);
  return pyramid;
}

std::unique_ptr<TilePyramid> TilePyramid::open(const FilesOf& files, const PyramidOptions& options,
                                               U64 bound) {
  if (options.scales == 0) fail(ErrorCode::InvalidArgument, "a pyramid has at least one scale");
  std::unique_ptr<TilePyramid> pyramid(new TilePyramid);
  TileOptions first = options.first;
  if (first.memory_bytes != 0 && options.scales > 1) {
    const std::vector<TileOptions> scales = stored_scales(files, options, bound);
    check_options(options, scales[0].dimensions.size());
    first.memory_elsewhere = bytes_of_smaller(options, scales, threads());
  }
  pyramid->writers_.push_back(TileWriter::open(files(0), first, bound));
  check_options(options, pyramid->writers_[0]->tiling().rank());
  for (unsigned k = 1; k < options.scales; ++k) {
    const unsigned factor = options.halves[0] ? 2 : 1;
    const U64 most = pyramid->writers_.back()->frames_received() / factor;
    const U64 bound_here = options.halves[0] ? size_of_scale(bound, k) : bound;
    TileOptions given = options.first;
    given.memory_bytes = 0;
    pyramid->writers_.push_back(TileWriter::open(files(k), given, bound_here, most));
  }
  pyramid->make_reducers(options);
  for (std::size_t k = 0; k + 1 < pyramid->writers_.size(); ++k) pyramid->catch_up(files, k);
  return pyramid;
}

// Frames of scale k that the next scale has not seen, those included that wait for their second half.
void TilePyramid::catch_up(const FilesOf& files, std::size_t k) {
  const TileWriter& writer = *writers_[k];
  const U64 have = writer.frames_received();
  U64 next = writers_[k + 1]->frames_received() * factors_[k];
  if (next >= have) return;
  writers_[k]->flush();
  const TileReader reader(files(static_cast<unsigned>(k)));
  std::vector<U64> start(writer.tiling().rank(), 0), count;
  for (const Dimension& dimension : writer.tiling().dimensions()) count.push_back(dimension.size);
  count[0] = 1;
  std::vector<std::byte> frame(static_cast<std::size_t>(writer.tiling().frame_bytes()));
  for (; next < have; ++next) {
    start[0] = next;
    reader.read(start, count, frame);
    if (reducers_[k].feed(frame.data())) writers_[k + 1]->append(reducers_[k].out());
  }
}

// Hands on the frame that waits to all scales that it concerns. False: one of them has no room now, and
// begins to make some; with `waits` that is waited for, and what fails is thrown. The frame waits on then.
bool TilePyramid::hand_on(bool waits) {
  while (waiting_ < reducers_.size()) {
    const Bytes out = reducers_[waiting_].out();
    TileWriter& writer = *writers_[waiting_ + 1];  // which takes all of a frame or nothing
    if (waits) {
      writer.append(out);
    } else if (!writer.write(out).all_consumed()) {
      return false;
    }
    const std::size_t next = std::exchange(waiting_, kNone) + 1;
    if (next < reducers_.size() && reducers_[next].feed(out.data())) waiting_ = next;
  }
  return true;
}

// The first scale has a frame, of which a smaller one is now in `out()` if `comes_out`. A caller who hears of
// an error may give the frame again, so what fails from here on is the next call's to tell.
void TilePyramid::end_frame(bool comes_out, bool waits) noexcept {
  if (!comes_out) return;
  waiting_ = 0;
  try {
    hand_on(waits);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

// Throws what has failed in any scale, before anything is taken.
void TilePyramid::check_locked() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  for (const auto& writer : writers_) writer->check();
}

// The rest of a frame that the first scale has begun, for which it has room: a failure that it tells instead
// is kept for the next call. Closed, which it says again and again, is not.
void TilePyramid::append_rest(Bytes piece) {
  for (;;) {
    try {
      return writers_[0]->append(piece);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Closed) throw;
      failure_ = std::current_exception();
    }
  }
}

// Piece by piece, so that each is reduced while it is in the cache.
void TilePyramid::append_frame(Bytes frame) {
  constexpr U64 kPieceBytes = 256 << 10;
  Reducer& reducer = reducers_[0];
  const U64 rows = reducer.rows(), step = std::max<U64>(1, rows * kPieceBytes / frame.size());
  std::size_t done = 0;
  for (U64 row = 0; row < rows; row += step) {
    const U64 next = std::min(row + step, rows);
    const auto end = next == rows ? frame.size() : static_cast<std::size_t>(reducer.source_bytes(next));
    const Bytes piece = frame.subspan(done, end - done);
    if (row == 0) {
      writers_[0]->append(piece);
    } else {
      append_rest(piece);
    }
    reducer.take_rows(frame.data(), row, next);
    done = end;
  }
  end_frame(reducer.end_frame(), true);
}

// Between two frames every scale has what it is to have of those before, or nothing more is taken. Throws
// only with `waits`.
std::size_t TilePyramid::take(Bytes bytes, bool waits) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    if (waits) check_locked();
    if (!hand_on(waits)) break;
    const Bytes piece = bytes.subspan(done, std::min(bytes.size() - done, frame_.size() - at_));
    std::size_t n = piece.size();
    if (waits && n == frame_.size() && reducers_[0].is_of_one_frame()) {
      append_frame(piece);
      done += n;
      continue;
    }
    if (waits) {
      writers_[0]->append(piece);
    } else {
      n -= writers_[0]->write(piece).unconsumed.size();
    }
    const bool is_whole = n == frame_.size();
    if (!is_whole) std::copy_n(piece.data(), n, frame_.data() + at_);
    done += n;
    at_ += n;
    if (at_ == frame_.size()) {
      at_ = 0;
      end_frame(reducers_[0].feed(is_whole ? piece.data() : frame_.data()), waits);
    }
    if (n < piece.size()) break;
  }
  return done;
}

WriteResult TilePyramid::write(Bytes bytes) noexcept {
  if (writers_.size() == 1) return writers_[0]->write(bytes);
  if (writers_[0]->is_inherited()) return {bytes, ErrorCode::Closed};
  const std::unique_lock lock(callers_, std::try_to_lock);
  if (!lock) return {bytes, std::nullopt};
  if (failure_) return {bytes, ErrorCode::Io};  // check() says more
  for (const auto& writer : writers_) {
    if (const WriteResult none = writer->write({}); none.error) return {bytes, none.error};
  }
  const U64 room = writers_[0]->room_bytes();
  if (!bytes.empty() && room == 0) return {bytes, ErrorCode::OutOfRange};
  const auto most = static_cast<std::size_t>(std::min<U64>(bytes.size(), room));
  return {bytes.subspan(take(bytes.first(most), false)), std::nullopt};
}

void TilePyramid::append_frames(Bytes frames) {
  if (writers_.size() == 1) return writers_[0]->append_frames(frames);
  writers_[0]->check_process();
  const std::lock_guard lock(callers_);
  check_locked();
  writers_[0]->check_between_frames();
  if (frames.size() > writers_[0]->room_bytes()) return writers_[0]->append(frames);  // which says why not
  take(frames, true);
}

void TilePyramid::put_layer(std::span<const Bytes> tiles, U64 frames) {
  if (writers_.size() != 1) {
    fail(ErrorCode::InvalidArgument, "layers that somebody else encoded have no smaller scales");
  }
  writers_[0]->put_layer(tiles, frames);
}

void TilePyramid::check() {
  writers_[0]->check_process();
  const std::lock_guard lock(callers_);
  check_locked();
}

void TilePyramid::flush() {
  writers_[0]->check_process();
  const std::lock_guard lock(callers_);
  check_locked();
  Attempts attempts;
  attempts.make([&] { hand_on(true); });
  for (const auto& writer : writers_) attempts.make([&] { writer->flush(); });
  attempts.tell();
}

// The first scale goes first: no frame can follow then, so that a frame that waits for its second half gets
// through without it. A scale that has not got all its frames stays open for another try, and so do those
// that are made of it.
void TilePyramid::close() {
  if (is_closed()) return;
  const std::lock_guard lock(callers_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  Attempts attempts;
  attempts.make([&] { writers_[0]->close(); });
  const bool has_all = writers_[0]->is_closed() && attempts.make([&] {
    hand_on(true);
    for (std::size_t k = 0; k < reducers_.size(); ++k) {
      if (!reducers_[k].finish()) continue;
      waiting_ = k;
      hand_on(true);
    }
  });
  for (std::size_t k = 1; k < writers_.size(); ++k) {
    const bool ends = has_all && writers_[k - 1]->is_closed();
    attempts.make([&] { ends ? writers_[k]->close() : writers_[k]->flush(); });
  }
  attempts.tell();
}

bool TilePyramid::is_closed() const noexcept {
  return std::all_of(writers_.begin(), writers_.end(),
                     [](const auto& writer) { return writer->is_closed(); });
}

void TilePyramid::give_up() noexcept {
  for (const auto& writer : writers_) writer->give_up();
}

}  // namespace cdd::tiles
