// An array of small frames in files that record what is done to them.
#pragma once

#include <gtest/gtest.h>

#include "core/tiles/tile_reader.h"
#include "core/tiles/tile_writer.h"
#include "tests/rig/array_files.h"
#include "tests/rig/codec_rig.h"

namespace cdd::test {

using tiles::Durability;
using tiles::TileOptions;
using tiles::TileReader;
using tiles::TileWriter;

inline constexpr std::size_t kHeight = 10, kWidth = 12, kFrameBytes = kHeight * kWidth * 2;

inline TileOptions small(Durability durability = Durability::Always, bool index_at_end = false) {
  TileOptions options;
  options.dimensions = {{0, 2, 2, "t"}, {kHeight, 4, 2, "y"}, {kWidth, 8, 1, "x"}};
  options.dtype = DType(Kind::UInt16);
  options.fill = {std::byte{0}, std::byte{0}};
  options.durability = durability;
  options.index_at_end = index_at_end;
  return options;
}

inline Buffer frame(std::uint64_t number) {
  return random_bytes(kFrameBytes, static_cast<unsigned>(number + 1));
}

inline std::uint64_t frames_shown(RecordedFiles& files) {
  return TileReader(files.files()).metadata()->shape[0];
}

using Frame = Buffer (*)(std::uint64_t number);

// Frames [0, count) are as they were written.
inline void check_frames(RecordedFiles& files, std::uint64_t count, Frame made = frame) {
  const TileReader reader(files.files());
  Buffer out(kFrameBytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::vector<std::uint64_t> start{i, 0, 0}, size{1, kHeight, kWidth};
    reader.read(start, size, out);
    ASSERT_EQ(out, made(i)) << "frame " << i << " of " << count;
  }
}

// The same, and there are no others.
inline void expect_frames(RecordedFiles& files, std::uint64_t count) {
  ASSERT_EQ(frames_shown(files), count);
  check_frames(files, count);
}

}  // namespace cdd::test
