// An array of tiles and smaller scales of it, written together: each scale is a TileWriter, fed by the one
// before. With one scale it is that writer and nothing else.
//
// Threads, forks and errors are TileWriter's. Scales never know more frames than the first, and each is made
// of just the frames that the one before has. A frame that the first scale took goes to the others whatever
// fails: where one cannot take it now, it waits, and the next call hands it on before it takes anything.
// append_frames() that throws has taken whole frames that the first scale counts, of a single one nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/tiles/pyramid/reducer.h"
#include "core/tiles/tile_writer.h"

namespace cdd::tiles {

struct PyramidOptions {
  TileOptions first;         // of scale 0, the array itself
  unsigned scales = 1;       // how many in all
  std::vector<bool> halves;  // a dimension: whether each scale has half of it; empty for one scale
  Reduce reduce = Reduce::Mean;
};

// The options of scale k: half the size along each halved dimension for every scale before it.
TileOptions options_of_scale(const PyramidOptions& options, unsigned k);

// As of one writer, all scales together, with the frames between them.
std::uint64_t bytes_needed(const PyramidOptions& options, unsigned threads);

class TilePyramid {
 public:
  // Files of scale k: of the one array where there is one scale.
  using FilesOf = std::function<std::unique_ptr<ArrayFiles>(unsigned k)>;

  static std::unique_ptr<TilePyramid> create(const FilesOf& files, const PyramidOptions& options);
  // Goes on with all scales. Frames that a smaller scale lacks are made from the scale before, those it has
  // too many are dropped. Of the first scale's options, what TileWriter::open takes counts.
  static std::unique_ptr<TilePyramid> open(const FilesOf& files, const PyramidOptions& options,
                                           std::uint64_t bound);
  TilePyramid(const TilePyramid&) = delete;
  TilePyramid& operator=(const TilePyramid&) = delete;

  WriteResult write(Bytes bytes) noexcept;
  void append_frames(Bytes frames);
  void put_layer(std::span<const Bytes> tiles, std::uint64_t frames);
  void check();
  void flush();
  void close();
  void give_up() noexcept;

  bool is_closed() const noexcept;  // all scales
  std::size_t scales() const noexcept { return writers_.size(); }
  TileWriter& scale(std::size_t k) const noexcept { return *writers_[k]; }

 private:
  TilePyramid() = default;
  void make_reducers(const PyramidOptions& options);
  void catch_up(const FilesOf& files, std::size_t k);
  std::size_t take(Bytes bytes, bool waits);
  bool hand_on(bool waits);
  void end_frame(bool comes_out, bool waits) noexcept;
  void append_rest(Bytes piece);
  void append_frame(Bytes frame);
  void check_locked();

  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::unique_ptr<TileWriter>> writers_;
  std::vector<Reducer> reducers_;  // [k] makes frames of scale k + 1
  std::vector<unsigned> factors_;  // frames of scale k for one of k + 1
  std::vector<std::byte> frame_;   // of scale 0, as far as it has come
  std::size_t at_ = 0;
  std::size_t waiting_ = kNone;  // the reducer whose frame the next scale has not taken yet
  std::exception_ptr failure_;   // not thrown yet
  std::mutex callers_;
};

}  // namespace cdd::tiles
