// Frames that readers were shown stay, whatever fails while an array goes on, and whatever of a journal is
// damaged after its writer was killed.
#include <functional>

#include "tests/tiles/small_array.h"

namespace cdd::test {
namespace {

// Of frames that are fill values but for the last rows of every other one, so that shards come late.
Buffer sparse_frame(std::uint64_t number) {
  Buffer pixels = frame(number);
  const std::size_t dark = number % 2 == 0 ? pixels.size() : pixels.size() / 10 * 8;
  std::fill_n(pixels.begin(), dark, std::byte{0});
  return pixels;
}

// The first frames have no tile that is stored.
Buffer late_frame(std::uint64_t number) { return number < 5 ? Buffer(kFrameBytes) : frame(number); }

// All frames that the array says it has are there, `least` at least.
void expect_shown(FileContents contents, std::uint64_t least, Frame made) {
  RecordedFiles files(std::move(contents));
  const std::uint64_t count = frames_shown(files);
  ASSERT_GE(count, least);
  check_frames(files, count, made);
}

FileContents closed_array(const TileOptions& options, std::uint64_t frames, Frame made) {
  RecordedFiles files;
  const auto writer = TileWriter::create(files.files(), options);
  for (std::uint64_t i = 0; i < frames; ++i) writer->append(made(i));
  writer->close();
  return files.contents();
}

class ShownFrames : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(IndexAtStartAndEnd, ShownFrames, testing::Bool());

// Whoever hears that the disk is full goes on with frames, also after a close() that failed.
TEST_P(ShownFrames, StayReadableWhereTheDiskIsFullOnceAtAnyChange) {
  constexpr std::uint64_t kBefore = 5, kFrames = 10;
  for (const Frame made : {Frame(frame), Frame(sparse_frame), Frame(late_frame)}) {
    for (std::size_t at = 0, changes = 1; at < changes; ++at) {
      SCOPED_TRACE(at);
      RecordedFiles files(closed_array(small(Durability::None, GetParam()), kBefore, made));
      auto writer = TileWriter::open(files.files(), small(Durability::None), 0);
      files.fail_at(files.changes() + at, ENOSPC);
      int errors = 0;
      const auto attempt = [&](const std::function<void()>& work) {
        try {
          work();
        } catch (const Error& error) {
          ASSERT_EQ(error.os_errno(), ENOSPC) << error.what();
          ++errors;
        }
      };
      while (writer->frames_received() < kFrames) {
        const std::uint64_t next = writer->frames_received();
        attempt([&] { writer->append(made(next)); });
        if (next % 3 == 1) attempt([&] { writer->flush(); });
        if (next % 4 == 2) attempt([&] { writer->close(); });
        while (writer->is_closed() && errors < 2) {
          attempt([&] { writer = TileWriter::open(files.files(), small(Durability::None), 0); });
        }
        ASSERT_LE(errors, 1);
      }
      attempt([&] { writer->close(); });
      if (!writer->is_closed()) writer->close();
      changes = files.has_failed() ? at + 2 : at;
      for (std::size_t n = 0; n <= files.changes(); ++n) {
        SCOPED_TRACE(testing::Message() << "after " << n << " changes");
        expect_shown(files.after(n), kBefore, made);
        if (HasFatalFailure()) return;
      }
      expect_shown(files.contents(), kFrames, made);
    }
  }
}

// Opened and closed again it shows no fewer frames, or it is refused and stays as it is.
bool shows_no_fewer(const FileContents& contents, std::uint64_t least, Frame made) {
  RecordedFiles files(contents);
  try {
    TileWriter::open(files.files(), TileOptions{}, 0)->close();
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::Io) << error.what();
    EXPECT_EQ(files.contents(), contents);
    return false;
  }
  expect_shown(files.contents(), least, made);
  return true;
}

TEST_P(ShownFrames, DoNotDependOnTheJournal) {
  constexpr std::uint64_t kBefore = 5, kFrames = 8;
  for (const char* const codec : {"auto", "raw"}) {
    for (const Frame made : {Frame(frame), Frame(sparse_frame), Frame(late_frame)}) {
      TileOptions options = small(Durability::Batch, GetParam());
      options.dimensions[0].shard_tiles = 5;
      options.codec.name = codec;
      RecordedFiles files(closed_array(options, kBefore, made));
      {
        const auto writer = TileWriter::open(files.files(), small(Durability::Batch), 0);
        for (std::uint64_t i = kBefore; i < kFrames; ++i) {
          writer->append(made(i));
          if (i % 2 == 0) writer->flush();
        }
        writer->flush();
      }
      const std::uint64_t shown = frames_shown(files);
      FileContents damaged = files.contents();
      std::vector<std::byte>& journal = damaged[tiles::kJournalKey];
      const std::vector<std::byte> whole = journal;
      for (std::size_t at = 0; at < whole.size() && !HasFatalFailure(); at += 3) {
        SCOPED_TRACE(testing::Message() << codec << ", byte " << at << " of " << whole.size());
        journal[at] ^= std::byte{0x10};
        const bool is_taken_up = shows_no_fewer(damaged, shown, made);
        EXPECT_TRUE(is_taken_up || GetParam());
        journal.resize(at);
        EXPECT_TRUE(shows_no_fewer(damaged, shown, made) || GetParam());
        journal = whole;
      }
    }
  }
}

// Its journal has a header then, and nothing else.
TEST_P(ShownFrames, AreThereWhereAWriterWasKilledAsItBegan) {
  for (const char* const codec : {"auto", "raw"}) {
    for (const Frame made : {Frame(frame), Frame(sparse_frame), Frame(late_frame)}) {
      TileOptions options = small(Durability::None, GetParam());
      options.codec.name = codec;
      RecordedFiles files(closed_array(options, 5, made));
      TileWriter::open(files.files(), small(Durability::None), 0);
      for (std::size_t n = 0; n <= files.changes(); ++n) {
        SCOPED_TRACE(testing::Message() << codec << ", after " << n << " changes");
        EXPECT_TRUE(shows_no_fewer(files.after(n), 5, made));
        EXPECT_TRUE(shows_no_fewer(files.after(n, 50 + n * 30), 5, made));
      }
    }
  }
}

}  // namespace
}  // namespace cdd::test
