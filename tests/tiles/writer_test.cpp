#include "core/tiles/tile_writer.h"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "core/threads/for_each.h"
#include "core/tiles/tile_reader.h"
#include "tests/rig/array_files.h"
#include "tests/rig/codec_rig.h"

namespace cdd::test {
namespace {

using tiles::Durability;
using tiles::TileOptions;
using tiles::TileReader;
using tiles::TileWriter;

constexpr std::size_t kHeight = 10, kWidth = 12, kFrameBytes = kHeight * kWidth * 2;

TileOptions small(Durability durability = Durability::Always, bool index_at_end = false) {
  TileOptions options;
  options.dimensions = {{0, 2, 2, "t"}, {kHeight, 4, 2, "y"}, {kWidth, 8, 1, "x"}};
  options.dtype = DType(Kind::UInt16);
  options.fill = {std::byte{0}, std::byte{0}};
  options.durability = durability;
  options.index_at_end = index_at_end;
  return options;
}

Buffer frame(std::uint64_t number) { return random_bytes(kFrameBytes, static_cast<unsigned>(number + 1)); }

// Frames [0, count) as they were written, or an error's text.
void expect_frames(RecordedFiles& files, std::uint64_t count) {
  const TileReader reader(files.files());
  ASSERT_EQ(reader.metadata()->shape[0], count);
  Buffer out(kFrameBytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::vector<std::uint64_t> start{i, 0, 0}, size{1, kHeight, kWidth};
    reader.read(start, size, out);
    ASSERT_EQ(out, frame(i)) << "frame " << i << " of " << count;
  }
}

// What was known to be there after some changes.
struct Known {
  std::size_t changes;
  std::uint64_t readable, durable;
};

std::vector<Known> write_frames(RecordedFiles& files, const TileOptions& options, std::uint64_t count) {
  std::vector<Known> known;
  const auto writer = TileWriter::create(files.files(), options);
  const auto note = [&] {
    const tiles::TileProgress p = writer->progress();
    known.push_back({files.changes(), p.frames_readable, p.frames_durable});
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    writer->append(frame(i));
    if (i % 3 == 1) writer->flush();
    note();
  }
  writer->close();
  note();
  return known;
}

Known known_at(const std::vector<Known>& known, std::size_t changes) {
  Known best{0, 0, 0};
  for (const Known& one : known) {
    if (one.changes <= changes) best = one;
  }
  return best;
}

// Goes on from these contents to `total` frames; what was known is to be there.
void expect_goes_on(FileContents contents, std::uint64_t least, std::uint64_t total) {
  RecordedFiles files(std::move(contents));
  const auto writer = TileWriter::open(files.files(), TileOptions{}, 0);
  const std::uint64_t have = writer->frames_received();
  ASSERT_GE(have, least);
  ASSERT_LE(have, total);
  for (std::uint64_t i = have; i < total; ++i) writer->append(frame(i));
  writer->close();
  expect_frames(files, total);
  EXPECT_EQ(files.contents().count(tiles::kJournalKey), 0u);
}

class TileCrash : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(IndexAtStartAndEnd, TileCrash, testing::Bool());

TEST_P(TileCrash, AfterEveryChangeAndWithTheNextOneTorn) {
  constexpr std::uint64_t kFrames = 11;
  RecordedFiles files;
  const std::vector<Known> known = write_frames(files, small(Durability::Always, GetParam()), kFrames);
  std::mt19937 random(1);
  // Before four changes there is no array yet.
  for (std::size_t n = 4; n <= files.changes(); ++n) {
    SCOPED_TRACE(n);
    expect_goes_on(files.after(n), known_at(known, n).readable, kFrames);
    expect_goes_on(files.after(n, 1 + random() % 60), known_at(known, n).readable, kFrames);
    if (HasFatalFailure()) return;
  }
}

TEST_P(TileCrash, AfterAPowerCutEveryDurableFrameIsThere) {
  constexpr std::uint64_t kFrames = 11;
  for (const Durability durability : {Durability::Always, Durability::Flush, Durability::Batch}) {
    RecordedFiles files;
    const std::vector<Known> known = write_frames(files, small(durability, GetParam()), kFrames);
    for (std::size_t n = 4; n <= files.changes(); ++n) {
      for (unsigned seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(testing::Message()
                     << "durability " << int(durability) << ", " << n << " changes, " << seed);
        expect_goes_on(files.after_power_cut(n, seed), known_at(known, n).durable, kFrames);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(TileCrash, AFullDiskLosesNothing) {
  constexpr std::uint64_t kFrames = 9;
  RecordedFiles whole;
  write_frames(whole, small(Durability::None, GetParam()), kFrames);
  for (std::size_t at = 4; at < whole.changes(); ++at) {
    SCOPED_TRACE(at);
    RecordedFiles files;
    const auto writer = TileWriter::create(files.files(), small(Durability::None, GetParam()));
    files.fail_at(at, ENOSPC);
    int errors = 0;
    const auto attempt = [&](auto&& work) {
      try {
        work();
      } catch (const Error& error) {
        ASSERT_EQ(error.os_errno(), ENOSPC);
        ++errors;
        work();
      }
    };
    for (std::uint64_t i = 0; i < kFrames; ++i) {
      const Buffer pixels = frame(i);
      attempt([&] {
        // An append that throws what failed before has taken nothing.
        if (writer->frames_received() == i) writer->append(pixels);
      });
      if (i % 3 == 1) attempt([&] { writer->flush(); });
    }
    attempt([&] { writer->close(); });
    EXPECT_EQ(errors, files.has_failed() ? 1 : 0);
    expect_frames(files, kFrames);
    if (HasFatalFailure()) return;
  }
}

// Who must not wait calls nothing but write(), and hears of the full disk from it.
TEST_P(TileCrash, WriteAloneGoesOnOnceThereIsRoomAgain) {
  constexpr std::uint64_t kFrames = 9;
  Buffer all;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    const Buffer one = frame(i);
    all.insert(all.end(), one.begin(), one.end());
  }
  RecordedFiles whole;
  write_frames(whole, small(Durability::None, GetParam()), kFrames);
  for (std::size_t at = 4; at < whole.changes(); ++at) {
    SCOPED_TRACE(at);
    RecordedFiles files;
    const auto writer = TileWriter::create(files.files(), small(Durability::None, GetParam()));
    files.fail_at(at, ENOSPC);
    int errors = 0;
    Bytes rest = all;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!rest.empty() && std::chrono::steady_clock::now() < end) {
      const tiles::WriteResult result = writer->write(rest);
      rest = result.unconsumed;
      if (!result.error) continue;
      ASSERT_EQ(*result.error, ErrorCode::Io);
      EXPECT_THROW(writer->check(), Error);
      ++errors;
    }
    ASSERT_TRUE(rest.empty());
    EXPECT_LE(errors, 1);
    try {
      writer->close();
    } catch (const Error& error) {
      ASSERT_EQ(error.os_errno(), ENOSPC);
      writer->close();
    }
    expect_frames(files, kFrames);
    if (HasFatalFailure()) return;
  }
}

TEST_P(TileCrash, AfterAnotherFailureTheWriterIsOfNoUseAndWhatIsThereIsTakenUp) {
  constexpr std::uint64_t kFrames = 9;
  RecordedFiles whole;
  write_frames(whole, small(Durability::Flush, GetParam()), kFrames);
  for (std::size_t at = 4; at < whole.changes(); ++at) {
    SCOPED_TRACE(at);
    RecordedFiles files;
    auto writer = TileWriter::create(files.files(), small(Durability::Flush, GetParam()));
    files.fail_at(at, EIO);
    int io = 0, closed = 0;
    const auto attempt = [&](auto&& work) {
      try {
        work();
      } catch (const Error& error) {
        ++(error.code() == ErrorCode::Io ? io : closed);
      }
    };
    for (std::uint64_t i = 0; i < kFrames; ++i) {
      attempt([&] { writer->append(frame(i)); });
      if (i % 3 == 1) attempt([&] { writer->flush(); });
    }
    attempt([&] { writer->close(); });
    if (files.has_failed()) {
      EXPECT_EQ(io, 1);
    }
    const std::uint64_t durable = writer->progress().frames_durable;
    writer.reset();
    expect_goes_on(files.contents(), files.has_failed() ? durable : 0, kFrames);
    if (HasFatalFailure()) return;
  }
}

// Puts the tiles in another order, late, and fails once if asked to.
class FakeEncoder final : public tiles::TileEncoder {
 public:
  FakeEncoder(tiles::TileCodec codec, int failures) : codec_(std::move(codec)), failures_(failures) {}

  void encode(tiles::Layer& layer, bool whole, tiles::TileSink& sink) override {
    std::vector<Bytes> planes, parts;
    for (std::uint64_t t = layer.tiles(); t-- > 0;) {
      if (layer.is_done(t)) continue;
      if (t == 1 && failures_ > 0) {
        --failures_;
        fail_io(ENOSPC, "gpu", "%s has no room");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (layer.parts_of(t, planes)) {
        sink.put_fill(t);
      } else {
        sink.put(t, codec_.encode(planes, parts));
      }
      if (whole) layer.set_done(t);
    }
  }

 private:
  tiles::TileCodec codec_;
  int failures_;
};

TEST(TileWriter, AnEncoderMayTakeItsTimeAndItsOrder) {
  for (const int failures : {0, 1}) {
    RecordedFiles files;
    const TileOptions options = small(Durability::None);
    const auto writer = TileWriter::create(files.files(), options);
    const tiles::TileCodec codec = tiles::TileCodec::named(options.codec, 2, writer->tiling().tile_bytes());
    writer->set_encoder(std::make_unique<FakeEncoder>(codec, failures));
    int errors = 0;
    for (std::uint64_t i = 0; i < 9;) {
      try {
        const Buffer pixels = frame(i);
        const tiles::WriteResult result = writer->write(pixels);
        if (result.error) writer->check();
        if (result.all_consumed()) {
          ++i;
        } else if (!result.unconsumed.empty()) {
          writer->append(result.unconsumed);
          ++i;
        }
      } catch (const Error& error) {
        ASSERT_EQ(error.os_errno(), ENOSPC);
        ++errors;
        if (writer->frames_received() > i) ++i;
      }
    }
    try {
      writer->close();
    } catch (const Error&) {
      ++errors;
      writer->close();
    }
    EXPECT_EQ(errors, failures);
    expect_frames(files, 9);
  }
}

// Threads of its own: for_each may have but one, and ThreadSanitizer knows none of oneTBB's.
class ThreadedEncoder final : public tiles::TileEncoder {
 public:
  explicit ThreadedEncoder(tiles::TileCodec codec) : codec_(std::move(codec)) {}

  void encode(tiles::Layer& layer, bool whole, tiles::TileSink& sink) override {
    std::atomic<std::uint64_t> next{0};
    const auto work = [&] {
      std::vector<Bytes> planes, parts;
      for (std::uint64_t t = next++; t < layer.tiles(); t = next++) {
        if (layer.is_done(t)) continue;
        if (layer.parts_of(t, planes)) {
          sink.put_fill(t);
        } else {
          sink.put(t, codec_.encode(planes, parts));
        }
        if (whole) layer.set_done(t);
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
  }

 private:
  tiles::TileCodec codec_;
};

// Layers that come faster than they are shown are shown soon all the same, though nobody comes by any more.
TEST(TileWriter, WhatCameBeforeAPauseIsShown) {
  for (const Durability durability : {Durability::None, Durability::Batch}) {
    RecordedFiles files;
    const auto writer = TileWriter::create(files.files(), small(durability));
    for (std::uint64_t i = 0; i < 6; ++i) writer->append(frame(i));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (writer->progress().frames_readable < 6 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    expect_frames(files, 6);
    EXPECT_EQ(writer->progress().frames_durable, durability == Durability::Batch ? 6u : 0u);
    writer->append(frame(6));  // and the writer may end while that is to come
    writer->append(frame(7));
  }
}

TEST(TileWriter, AFullArrayTakesNoMore) {
  RecordedFiles files;
  TileOptions options = small();
  options.dimensions[0].size = 1;
  const auto writer = TileWriter::create(files.files(), options);
  Buffer pixels = frame(0);
  pixels.push_back(std::byte{1});
  const tiles::WriteResult first = writer->write(pixels);
  EXPECT_EQ(first.unconsumed.size(), 1u);
  EXPECT_FALSE(first.error);
  const tiles::WriteResult second = writer->write(first.unconsumed);
  EXPECT_EQ(second.unconsumed.size(), 1u);
  EXPECT_EQ(second.error, ErrorCode::OutOfRange);
  EXPECT_FALSE(writer->write({}).error);
  writer->close();
  expect_frames(files, 1);
}

TEST(TileWriter, TilesArePutByManyThreadsWhileOthersAppendAndLook) {
  for (const char* const name : {"raw", "auto", "blosc-lz4"}) {
    RecordedFiles files;
    TileOptions options = small(Durability::Batch);
    options.codec.name = name;
    const auto writer = TileWriter::create(files.files(), options);
    const tiles::TileCodec codec = tiles::TileCodec::named(options.codec, 2, writer->tiling().tile_bytes());
    writer->set_encoder(std::make_unique<ThreadedEncoder>(codec));
    std::atomic<bool> is_over{false};
    std::thread looks([&] {
      std::uint64_t readable = 0;
      while (!is_over) {
        const tiles::TileProgress progress = writer->progress();
        EXPECT_GE(progress.frames_readable, readable);
        readable = progress.frames_readable;
      }
    });
    for (std::uint64_t i = 0; i < 41; ++i) {
      writer->append(frame(i));
      if (i % 13 == 5) writer->flush();
    }
    writer->close();
    is_over = true;
    looks.join();
    expect_frames(files, 41);
  }
}

TEST(TileWriter, ADamagedJournalIsAnErrorOrWhatWasThere) {
  RecordedFiles files;
  {
    const auto writer = TileWriter::create(files.files(), small(Durability::Flush));
    for (std::uint64_t i = 0; i < 7; ++i) writer->append(frame(i));
    writer->flush();
  }
  const FileContents whole = files.contents();
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    FileContents damaged = whole;
    std::vector<std::byte>& journal = damaged[tiles::kJournalKey];
    const int kind = round % 3;
    if (kind == 0) journal[random() % journal.size()] ^= std::byte(1 << random() % 8);
    if (kind == 1) journal.resize(random() % journal.size());
    if (kind == 2) {
      for (std::byte& byte : journal) byte = random() % 10 == 0 ? std::byte(random()) : byte;
    }
    RecordedFiles changed(damaged);
    try {
      TileWriter::open(changed.files(), TileOptions{}, 0)->close();
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::Io) << error.what();
      continue;
    }
    expect_frames(changed, 7);
    if (HasFatalFailure()) return;
  }
}

TEST(TileWriter, MetadataBeyond32DimensionsIsRefused) {
  RecordedFiles files;
  TileOptions options = small();
  options.dimensions.resize(33, {1, 1, 1, ""});
  try {
    TileWriter::create(files.files(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("at most 32"), std::string::npos);
  }
}

}  // namespace
}  // namespace cdd::test
