#include <chrono>
#include <random>

#include "core/threads/for_each.h"
#include "tests/tiles/small_array.h"

namespace cdd::test {
namespace {

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

// Readers find these frames, and whatever more the array says it has, without a writer.
void expect_readable(FileContents contents, std::uint64_t least, bool has_rest = true) {
  RecordedFiles files(std::move(contents));
  const std::uint64_t count = frames_shown(files);
  ASSERT_GE(count, least);
  check_frames(files, has_rest ? count : least);
}

// Killed at any moment, or cut off from power, while it goes on with an array that was closed within a shard.
TEST_P(TileCrash, WhatReadersSawStaysReadableWhileAnArrayGoesOn) {
  constexpr std::uint64_t kBefore = 5, kFrames = 9;
  const bool index_at_end = GetParam();
  for (const Durability durability : {Durability::Always, Durability::Batch, Durability::None}) {
    RecordedFiles closed;
    write_frames(closed, small(durability, index_at_end), kBefore);
    RecordedFiles files(closed.contents());
    const auto writer = TileWriter::open(files.files(), small(durability), 0);
    for (std::uint64_t i = kBefore; i < kFrames; ++i) {
      writer->append(frame(i));
      writer->flush();
    }
    writer->close();
    for (std::size_t n = 0; n <= files.changes(); ++n) {
      SCOPED_TRACE(testing::Message() << "durability " << int(durability) << ", " << n << " changes");
      expect_readable(files.after(n), kBefore);
      expect_goes_on(files.after(n), kBefore, kFrames);
      expect_goes_on(files.after(n, 1 + n % 60), kBefore, kFrames);
      // An index at the start is written in its place, torn or not.
      if (index_at_end) expect_readable(files.after(n, 1 + n % 60), kBefore);
      if (index_at_end) expect_readable(files.after_power_cut(n, static_cast<unsigned>(n)), kBefore, false);
      if (HasFatalFailure()) return;
    }
    expect_frames(files, kFrames);
    for (const auto& [key, bytes] : files.contents()) EXPECT_EQ(key.find("/."), std::string::npos) << key;
  }
}

// Calls `work` with a new writer whose files have no room at one change, for each change there is.
template <class Work>
void on_a_full_disk(bool index_at_end, std::uint64_t frames, Work&& work) {
  const TileOptions options = small(Durability::None, index_at_end);
  RecordedFiles whole;
  write_frames(whole, options, frames);
  for (std::size_t at = 4; at < whole.changes(); ++at) {
    SCOPED_TRACE(at);
    RecordedFiles files;
    const auto writer = TileWriter::create(files.files(), options);
    files.fail_at(at, ENOSPC);
    work(files, *writer);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(TileCrash, AFullDiskLosesNothing) {
  constexpr std::uint64_t kFrames = 9;
  on_a_full_disk(GetParam(), kFrames, [&](RecordedFiles& files, TileWriter& writer) {
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
        if (writer.frames_received() == i) writer.append(pixels);
      });
      if (i % 3 == 1) attempt([&] { writer.flush(); });
    }
    attempt([&] { writer.close(); });
    EXPECT_EQ(errors, files.has_failed() ? 1 : 0);
    expect_frames(files, kFrames);
  });
}

// Who must not wait calls nothing but write(), and hears of the full disk from it.
TEST_P(TileCrash, WriteAloneGoesOnOnceThereIsRoomAgain) {
  constexpr std::uint64_t kFrames = 9;
  Buffer all;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    const Buffer one = frame(i);
    all.insert(all.end(), one.begin(), one.end());
  }
  on_a_full_disk(GetParam(), kFrames, [&](RecordedFiles& files, TileWriter& writer) {
    int errors = 0;
    Bytes rest = all;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!rest.empty() && std::chrono::steady_clock::now() < end) {
      const tiles::WriteResult result = writer.write(rest);
      rest = result.unconsumed;
      if (!result.error) continue;
      ASSERT_EQ(*result.error, ErrorCode::Io);
      EXPECT_THROW(writer.check(), Error);
      ++errors;
    }
    ASSERT_TRUE(rest.empty());
    EXPECT_LE(errors, 1);
    try {
      writer.close();
    } catch (const Error& error) {
      ASSERT_EQ(error.os_errno(), ENOSPC);
      writer.close();
    }
    expect_frames(files, kFrames);
  });
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

// A file whose first reads of the index find it half written.
class HalfWritten final : public tiles::ArrayFile {
 public:
  HalfWritten(std::unique_ptr<ArrayFile> file, unsigned times) : file_(std::move(file)), times_(times) {}

  std::size_t read_at(std::uint64_t offset, MutableBytes out) const override {
    const std::size_t got = file_->read_at(offset, out);
    if (offset == 0 && reads_++ < times_) out[0] ^= std::byte{1};
    return got;
  }
  void write_at(std::uint64_t, std::span<const Bytes>) override { ADD_FAILURE(); }
  std::uint64_t size() const override { return file_->size(); }
  void truncate(std::uint64_t) override { ADD_FAILURE(); }
  void sync() override { ADD_FAILURE(); }

 private:
  const std::unique_ptr<ArrayFile> file_;
  const unsigned times_;
  mutable unsigned reads_ = 0;
};

class HalfWrittenFiles final : public tiles::ArrayFiles {
 public:
  HalfWrittenFiles(std::unique_ptr<ArrayFiles> files, unsigned times)
      : files_(std::move(files)), times_(times) {}

  std::unique_ptr<tiles::ArrayFile> open(const std::string& key, bool to_write) const override {
    auto file = files_->open(key, to_write);
    if (key == tiles::kMetadataKey || !file) return file;
    return std::make_unique<HalfWritten>(std::move(file), times_);
  }
  void publish(const std::string&, Bytes) override { ADD_FAILURE(); }
  std::unique_ptr<tiles::ArrayFile> lock(const std::string& key) override { return files_->lock(key); }
  void replace(const std::string&, const std::string&) override { ADD_FAILURE(); }
  void remove(const std::string&) override { ADD_FAILURE(); }
  std::string name_of(const std::string& key) const override { return files_->name_of(key); }

 private:
  const std::unique_ptr<ArrayFiles> files_;
  const unsigned times_;
};

TEST(TileReader, AnIndexThatIsBeingWrittenIsReadAgain) {
  RecordedFiles files;
  auto writer = TileWriter::create(files.files(), small());
  for (std::uint64_t i = 0; i < 4; ++i) writer->append_frames(frame(i));
  writer->close();
  const std::vector<std::uint64_t> start{2, 0, 0}, size{1, kHeight, kWidth};
  Buffer out(kFrameBytes);
  TileReader(std::make_unique<HalfWrittenFiles>(files.files(), 3)).read(start, size, out);
  EXPECT_EQ(out, frame(2));
  const TileReader damaged(std::make_unique<HalfWrittenFiles>(files.files(), ~0u));
  try {
    damaged.read(start, size, out);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Checksum);
  }
}

}  // namespace
}  // namespace cdd::test
