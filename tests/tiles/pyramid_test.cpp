// All scales of a pyramid hold what they are to hold, wherever the disk of one of them is full.
#include "core/tiles/pyramid/pyramid.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>
#include <tuple>

#include "tests/tiles/small_array.h"

namespace cdd::test {
namespace {

using tiles::PyramidOptions;
using tiles::Reducer;
using tiles::TilePyramid;

constexpr std::uint64_t kFrames = 11;
constexpr unsigned kMostScales = 3;

// With a disk of its own for each scale.
struct Disks {
  std::array<RecordedFiles, kMostScales> scales;

  TilePyramid::FilesOf files() {
    return [this](unsigned k) { return scales[k].files(); };
  }
  void heal() {
    for (RecordedFiles& scale : scales) scale.heal();
  }
};

PyramidOptions pyramid_of(unsigned scales, bool halves_time, std::uint64_t height = kHeight,
                          std::uint64_t width = kWidth) {
  PyramidOptions options;
  options.first = small(Durability::None);
  options.first.dimensions[1].size = height;
  options.first.dimensions[2].size = width;
  options.scales = scales;
  options.halves = {halves_time, true, true};
  return options;
}

// Frames of `bytes` bytes, and what each scale is to hold of them.
std::vector<Buffer> frames_of(std::uint64_t bytes) {
  std::vector<Buffer> frames;
  for (std::uint64_t i = 0; i < kFrames; ++i)
    frames.push_back(random_bytes(bytes, static_cast<unsigned>(i + 1)));
  return frames;
}

std::vector<Buffer> reduced(const std::vector<Buffer>& frames, std::uint64_t height, std::uint64_t width,
                            bool halves_time) {
  Reducer reducer(DType(Kind::UInt16), tiles::Reduce::Mean, {height, width}, {true, true},
                  halves_time ? 2 : 1);
  reducer.take_memory();
  std::vector<Buffer> out;
  const auto keep = [&] { out.emplace_back(reducer.out().begin(), reducer.out().end()); };
  for (const Buffer& frame : frames) {
    if (reducer.feed(frame.data())) keep();
  }
  if (reducer.finish()) keep();
  return out;
}

void expect_scales(Disks& disks, const PyramidOptions& options, std::vector<Buffer> frames) {
  std::uint64_t height = options.first.dimensions[1].size, width = options.first.dimensions[2].size;
  for (unsigned k = 0; k < options.scales; ++k) {
    SCOPED_TRACE("scale " + std::to_string(k));
    const TileReader reader(disks.scales[k].files());
    ASSERT_EQ(reader.metadata()->shape, (std::vector<std::uint64_t>{frames.size(), height, width}));
    EXPECT_EQ(disks.scales[k].contents().count(tiles::kJournalKey), 0u);
    Buffer out(frames[0].size());
    for (std::uint64_t i = 0; i < frames.size(); ++i) {
      const std::vector<std::uint64_t> start{i, 0, 0}, size{1, height, width};
      reader.read(start, size, out);
      ASSERT_EQ(out, frames[i]) << "frame " << i << " of " << frames.size();
    }
    frames = reduced(frames, height, width, options.halves[0]);
    height = tiles::halved(height);
    width = tiles::halved(width);
  }
}

// Again and again until it can be done; after three errors the disks have room. `failed` is called after
// each.
class Caller {
 public:
  explicit Caller(Disks& disks) : disks_(disks) {}

  void insist(
      const std::function<void()>& work, const std::function<void()>& failed = [] {}) {
    for (;;) {
      try {
        return work();
      } catch (const Error& error) {
        ASSERT_EQ(error.os_errno(), ENOSPC) << error.what();
        note();
        ASSERT_LT(errors_, 30);
        failed();
      }
    }
  }
  void note() {
    if (++errors_ == 3) disks_.heal();
  }
  int errors() const { return errors_; }

 private:
  Disks& disks_;
  int errors_ = 0;
};

// Frames [first, last), the plain way: what failed is given again.
void append(TilePyramid& pyramid, Caller& caller, const std::vector<Buffer>& frames, std::uint64_t first,
            std::uint64_t last) {
  for (std::uint64_t i = first; i < last; ++i) {
    const auto nothing_was_taken = [&] { ASSERT_EQ(pyramid.scale(0).frames_received(), i); };
    caller.insist([&] { pyramid.append_frames(frames[i]); }, nothing_was_taken);
    if (i % 4 == 1) caller.insist([&] { pyramid.flush(); });
  }
}

// Without a flush.
void write(TilePyramid& pyramid, Caller& caller, const std::vector<Buffer>& frames) {
  Buffer all;
  for (const Buffer& frame : frames) all.insert(all.end(), frame.begin(), frame.end());
  Bytes rest = all;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!rest.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << rest.size() << " bytes are left";
    const tiles::WriteResult result = pyramid.write(rest.first(std::min<std::size_t>(rest.size(), 1000)));
    rest = rest.subspan(std::min<std::size_t>(rest.size(), 1000) - result.unconsumed.size());
    if (!result.error) continue;
    ASSERT_EQ(*result.error, ErrorCode::Io);
    EXPECT_THROW(pyramid.check(), Error);
    caller.note();
  }
}

// What is done with a pyramid for every change of every scale that fails, once or until three errors were
// told.
using Work = std::function<void(Disks&, const PyramidOptions&, const std::function<void()>& begin_to_fail)>;

void for_every_change(const PyramidOptions& options, const std::vector<Buffer>& frames, const Work& work,
                      std::size_t step = 1) {
  for (unsigned k = 0; k < options.scales; ++k) {
    for (const bool once : {true, false}) {
      bool has_failed = true;
      for (std::size_t at = 0; has_failed; at += step) {
        SCOPED_TRACE("change " + std::to_string(at) + " of scale " + std::to_string(k) +
                     (once ? " fails" : " and others fail"));
        Disks disks;
        RecordedFiles& files = disks.scales[k];
        work(disks, options, [&] {
          const std::size_t change = files.changes() + at;
          once ? files.fail_at(change, ENOSPC) : files.fail_from(change, ENOSPC);
        });
        if (testing::Test::HasFatalFailure()) return;
        expect_scales(disks, options, frames);
        if (testing::Test::HasFailure()) return;
        has_failed = files.has_failed();
      }
    }
  }
}

class PyramidOnAFullDisk : public testing::TestWithParam<std::tuple<unsigned, bool>> {
 protected:
  const PyramidOptions options_ = pyramid_of(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const std::vector<Buffer> frames_ = frames_of(kFrameBytes);
};
INSTANTIATE_TEST_SUITE_P(ScalesAndHalvedTime, PyramidOnAFullDisk,
                         testing::Combine(testing::Values(2u, 3u), testing::Bool()));

TEST_P(PyramidOnAFullDisk, AppendedFramesReachAllScalesOnce) {
  for_every_change(options_, frames_, [&](Disks& disks, const PyramidOptions& options, const auto& begin) {
    const auto pyramid = TilePyramid::create(disks.files(), options);
    begin();
    Caller caller(disks);
    append(*pyramid, caller, frames_, 0, kFrames);
    caller.insist([&] { pyramid->close(); });
    ASSERT_TRUE(pyramid->is_closed());
  });
}

TEST_P(PyramidOnAFullDisk, WrittenBytesReachAllScalesWithoutAFlush) {
  for_every_change(options_, frames_, [&](Disks& disks, const PyramidOptions& options, const auto& begin) {
    const auto pyramid = TilePyramid::create(disks.files(), options);
    begin();
    Caller caller(disks);
    write(*pyramid, caller, frames_);
    caller.insist([&] { pyramid->close(); });
  });
}

TEST_P(PyramidOnAFullDisk, GoesOnAfterItWasGivenUp) {
  for_every_change(options_, frames_, [&](Disks& disks, const PyramidOptions& options, const auto& begin) {
    {
      const auto pyramid = TilePyramid::create(disks.files(), options);
      begin();
      Caller caller(disks);
      append(*pyramid, caller, frames_, 0, kFrames - 2);
      pyramid->give_up();
    }
    Caller caller(disks);
    std::unique_ptr<TilePyramid> pyramid;
    caller.insist([&] { pyramid = TilePyramid::open(disks.files(), options, 0); });
    append(*pyramid, caller, frames_, pyramid->scale(0).frames_received(), kFrames);
    caller.insist([&] { pyramid->close(); });
  });
}

// The first scale takes such a frame in pieces, between which its writer may fail.
TEST(TilePyramid, LargeFramesReachAllScalesOnAFullDisk) {
  constexpr std::uint64_t kRows = 1024, kColumns = 512;
  PyramidOptions options = pyramid_of(2, false, kRows, kColumns);
  options.first.dimensions = {{0, 1, 4, "t"}, {kRows, 512, 2, "y"}, {kColumns, 512, 1, "x"}};
  const std::vector<Buffer> frames = frames_of(kRows * kColumns * 2);
  const Work work = [&](Disks& disks, const PyramidOptions& given, const auto& begin) {
    const auto pyramid = TilePyramid::create(disks.files(), given);
    begin();
    Caller caller(disks);
    append(*pyramid, caller, frames, 0, kFrames);
    caller.insist([&] { pyramid->close(); });
  };
  for_every_change(options, frames, work, 5);
}

// What a smaller scale showed of frames that the first does not show would be gone after a kill.
class ShownScales : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(HalvesTime, ShownScales, testing::Bool());

TEST_P(ShownScales, AreNoneOfFramesThatAFullDiskKeepsFromReaders) {
  const PyramidOptions options = pyramid_of(3, GetParam());
  const std::vector<Buffer> frames = frames_of(kFrameBytes);
  Disks disks;
  const auto pyramid = TilePyramid::create(disks.files(), options);
  disks.scales[0].fail_from(disks.scales[0].changes(), ENOSPC);
  std::size_t taken = 0;
  for (int attempt = 0; attempt < 20 && taken < frames.size(); ++attempt) {
    try {
      pyramid->append_frames(frames[taken]);
    } catch (const Error& error) {
      ASSERT_EQ(error.os_errno(), ENOSPC) << error.what();
    }
    taken = static_cast<std::size_t>(pyramid->scale(0).frames_received());
  }
  for (int attempt = 0; attempt < 3; ++attempt) EXPECT_THROW(pyramid->flush(), Error);
  EXPECT_GT(pyramid->scale(1).progress().frames_encoded, 0u);
  for (RecordedFiles& scale : disks.scales) EXPECT_EQ(frames_shown(scale), 0u);
  EXPECT_THROW(pyramid->close(), Error);
  for (RecordedFiles& scale : disks.scales) EXPECT_EQ(frames_shown(scale), 0u);
  disks.heal();
  Caller caller(disks);
  caller.insist([&] { pyramid->flush(); });
  EXPECT_EQ(frames_shown(disks.scales[0]), taken);
  for (unsigned k = 1; k < 3; ++k) {
    EXPECT_EQ(frames_shown(disks.scales[k]), pyramid->scale(k).frames_received());
  }
  append(*pyramid, caller, frames, taken, kFrames);
  caller.insist([&] { pyramid->close(); });
  expect_scales(disks, options, frames);
}

class SlowEncoder final : public tiles::TileEncoder {
 public:
  void encode(tiles::Layer& layer, bool whole, tiles::TileSink& sink) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    for (std::uint64_t t = 0; t < layer.tiles(); ++t) {
      if (!layer.is_done(t)) sink.put_fill(t);
      if (whole) layer.set_done(t);
    }
  }
};

// And they come by themselves once the first shows those.
TEST_P(ShownScales, ComeBehindTheFirstWhereThatIsSlow) {
  constexpr std::uint64_t kCount = 16;  // whole layers of all scales, several rows
  Disks disks;
  const auto pyramid = TilePyramid::create(disks.files(), pyramid_of(3, GetParam()));
  pyramid->scale(0).set_encoder(std::make_unique<SlowEncoder>());
  std::atomic<bool> is_over{false};
  std::thread caller([&] {
    for (std::uint64_t i = 0; i < kCount; ++i) pyramid->append_frames(frame(i));
    is_over = true;
  });
  const std::uint64_t factor = GetParam() ? 2 : 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::uint64_t shown = 0;
  while ((!is_over || shown * factor * factor < kCount) && std::chrono::steady_clock::now() < end) {
    for (std::size_t k = 2; k > 0; --k) {
      const std::uint64_t smaller = pyramid->scale(k).progress().frames_readable;
      EXPECT_LE(smaller * factor, pyramid->scale(k - 1).progress().frames_readable) << "scale " << k;
      if (k == 2) shown = smaller;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  caller.join();
  EXPECT_EQ(shown * factor * factor, kCount);
  pyramid->close();
  for (unsigned k = 0; k < 3; ++k) EXPECT_EQ(disks.scales[k].contents().count(tiles::kJournalKey), 0u);
}

}  // namespace
}  // namespace cdd::test
