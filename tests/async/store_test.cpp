#include "core/async/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "core/async/task.h"
#include "core/base/error.h"
#include "core/threads/latch.h"
#include "tests/rig/small_store.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace cdd {
namespace {

const RowLayout kBooks(DType(Kind::Float32), {{50, 3}});

struct Opened {
  SmallStore store = make_small_store(kBooks, 16, 40, true);
  std::shared_ptr<Reader> reader =
      std::make_shared<Reader>(std::make_shared<ViewStorage>(Bytes(store.image), "<test>"));

  Bytes rows(RowRange range) const {
    return Bytes(store.rows).subspan(range.first * kBooks.row_bytes(), range.count * kBooks.row_bytes());
  }
};

// Occupies all threads there may be until it ends.
class Blocked {
 public:
  Blocked() {
    for (Plug& plug : plugs_) Jobs::shared().submit(plug);
    for (Plug& plug : plugs_) plug.begun.wait();
  }
  ~Blocked() { release(); }
  void release() {
    for (Plug& plug : plugs_) {
      if (!plug.go.try_wait()) plug.go.count_down();
      plug.ended.wait();
    }
  }

 private:
  struct Plug final : Job {
    Latch begun{1}, go{1}, ended{1};
    void run() noexcept override {
      begun.count_down();
      go.wait();
      ended.count_down();
    }
  };
  std::array<Plug, Jobs::kMaxThreads> plugs_;
};

Task<std::thread::id> read_one(AsyncReader& reader, RowRange range, MutableBytes out) {
  co_await reader.read(range, out);
  co_return std::this_thread::get_id();
}

TEST(AsyncReader, ReadsWhatTheReaderReads) {
  const Opened opened;
  for (const auto inlined : {AsyncReader::Inline::WhenWarm, AsyncReader::Inline::Never}) {
    AsyncReader reader(opened.reader, inlined);
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t first = random() % 640;
      const RowRange range{first, random() % (641 - first)};
      std::vector<std::byte> out(range.count * kBooks.row_bytes());
      const std::thread::id where = sync_wait(read_one(reader, range, out));
      EXPECT_TRUE(std::ranges::equal(out, opened.rows(range)));
      if (inlined == AsyncReader::Inline::WhenWarm && out.size() <= WarmChunks::kInlineBytes) {
        EXPECT_EQ(where, std::this_thread::get_id());
      }
    }
  }
}

Task<void> read_windows_of(AsyncReader& reader, std::span<const std::uint64_t> starts, std::uint64_t rows,
                           MutableBytes out) {
  co_await reader.read_windows(starts, rows, out);
}

TEST(AsyncReader, ReadsWindows) {
  const Opened opened;
  AsyncReader reader(opened.reader);
  const std::vector<std::uint64_t> starts{600, 0, 13, 13, 64};
  std::vector<std::byte> out(starts.size() * 20 * kBooks.row_bytes());
  sync_wait(read_windows_of(reader, starts, 20, out));
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto window = Bytes(out).subspan(i * 20 * kBooks.row_bytes(), 20 * kBooks.row_bytes());
    EXPECT_TRUE(std::ranges::equal(window, opened.rows({starts[i], 20})));
  }
}

TEST(AsyncReader, ThrowsWhatTheReaderThrows) {
  const Opened opened;
  for (const auto inlined : {AsyncReader::Inline::WhenWarm, AsyncReader::Inline::Never}) {
    AsyncReader reader(opened.reader, inlined);
    std::vector<std::byte> out(8 * kBooks.row_bytes());
    try {
      sync_wait(read_one(reader, {635, 8}, out));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::OutOfRange);
    }
    try {
      sync_wait(read_one(reader, {0, 7}, out));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    }
  }
}

Task<void> read_to(AsyncReader& reader, RowRange range, MutableBytes out, std::stop_token stop,
                   std::atomic<int>* outcome) {
  try {
    co_await reader.read(range, out, nullptr, stop);
    *outcome = 1;
  } catch (const Error& error) {
    *outcome = error.code() == ErrorCode::Cancelled ? 2 : 3;
  }
}

TEST(AsyncReader, StopTakesBackWhatHasNotBegun) {
  const Opened opened;
  AsyncReader reader(opened.reader, AsyncReader::Inline::Never);
  Blocked blocked;
  std::stop_source stop;
  std::atomic<int> outcome{0};
  std::vector<std::byte> out(8 * kBooks.row_bytes(), std::byte{0xee});
  std::thread waiter([&] { sync_wait(read_to(reader, {0, 8}, out, stop.get_token(), &outcome)); });
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(outcome, 2);
  blocked.release();
  EXPECT_TRUE(std::ranges::all_of(out, [](std::byte b) { return b == std::byte{0xee}; }));
}

// Whichever comes first, after the await nobody writes to `out`, which is freed.
TEST(AsyncReader, StopsAtAnyMoment) {
  const Opened opened;
  AsyncReader reader(opened.reader, AsyncReader::Inline::Never);
  std::array<int, 4> seen{};
  for (int i = 0; i < 3000; ++i) {
    std::stop_source stop;
    std::atomic<int> outcome{0};
    auto out = std::make_unique<std::vector<std::byte>>(32 * kBooks.row_bytes());
    std::thread stopper([&] {
      std::atomic<int> spin{0};
      while (spin++ < (i % 50) * 40) {
      }
      stop.request_stop();
    });
    sync_wait(read_to(reader, {static_cast<std::uint64_t>(i % 600), 32}, *out, stop.get_token(), &outcome));
    out.reset();
    stopper.join();
    ++seen[static_cast<std::size_t>(outcome)];
  }
  EXPECT_EQ(seen[0] + seen[3], 0);
  EXPECT_EQ(seen[1] + seen[2], 3000);
}

TEST(AsyncReader, GoesOnWhereItIsTold) {
  const Opened opened;
  AsyncReader reader(opened.reader, AsyncReader::Inline::Never);
  std::mutex mutex;
  std::condition_variable changed;
  std::coroutine_handle<> posted;
  reader.resume_with([&](std::coroutine_handle<> handle) {
    const std::lock_guard lock(mutex);
    posted = handle;
    changed.notify_one();
  });
  std::thread::id where;
  std::thread loop([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return static_cast<bool>(posted); });
    lock.unlock();
    where = std::this_thread::get_id();
    posted.resume();
  });
  std::vector<std::byte> out(8 * kBooks.row_bytes());
  const std::thread::id gone_on = sync_wait(read_one(reader, {0, 8}, out));
  const std::thread::id expected = loop.get_id();
  loop.join();
  EXPECT_EQ(where, expected);
  EXPECT_EQ(gone_on, expected);
}

TEST(WarmChunks, RemembersEachChunk) {
  WarmChunks warm;
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> added;
  for (int i = 0; i < 2000; ++i) added.push_back(random() % 300'000'000);
  for (const std::uint64_t chunk : added) {
    warm.add(chunk);
    EXPECT_EQ(warm.has(chunk), chunk < (std::uint64_t{4096} << 16));
  }
  EXPECT_FALSE(warm.has(1) && warm.has(2) && warm.has(3));
  EXPECT_FALSE(warm.has(~std::uint64_t{0}));
}

Task<void> append_all(AsyncWriter& writer, const RowLayout& layout, Bytes rows, std::uint64_t n, int pieces) {
  const std::uint64_t step = n / static_cast<std::uint64_t>(pieces);
  for (int i = 0; i < pieces; ++i) {
    const std::uint64_t at = step * static_cast<std::uint64_t>(i) * layout.row_bytes();
    co_await writer.append(layout, rows.subspan(at, step * layout.row_bytes()), step);
  }
  co_await writer.flush();
  co_await writer.close();
}

TEST(AsyncWriter, WritesInTheOrderOfTheCalls) {
  const auto rows = small_rows(kBooks, 400, 7);
  const auto storage = std::make_shared<MemoryStorage>();
  {
    AsyncWriter writer(
        std::shared_ptr<Writer>(Writer::create(MemoryStorage::lock_for_writing(storage), WriterOptions())));
    sync_wait(append_all(writer, kBooks, rows, 400, 20));
    EXPECT_TRUE(writer.writer().is_closed());
  }
  const Reader reader(storage);
  ASSERT_EQ(reader.rows(), 400U);
  std::vector<std::byte> out(rows.size());
  reader.read_into({0, 400}, out);
  EXPECT_EQ(out, rows);
}

#if !defined(_WIN32)
TEST(AsyncReader, ReadsInAForkedChild) {
  const Opened opened;
  AsyncReader reader(opened.reader, AsyncReader::Inline::Never);
  std::vector<std::byte> out(8 * kBooks.row_bytes());
  sync_wait(read_one(reader, {0, 8}, out));  // threads are there
  const pid_t child = ::fork();
  if (child == 0) {
    sync_wait(read_one(reader, {100, 8}, out));
    ::_exit(std::ranges::equal(out, opened.rows({100, 8})) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace cdd
