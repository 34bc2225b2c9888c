// Kills and damage together: at every moment of a writer's life one bit flips in what a kill then leaves. Of
// the rows that were acknowledged one chunk at most is lost, with an error, and the next writer keeps the
// others: whatever the writer was at, a proof of what it committed is in the file. The same when it was
// killed while it recovered the file that another one had left.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/store/index/block_walk.h"
#include "core/store/reader.h"
#include "tests/rig/crash_simulator.h"

namespace cdd {
namespace {

constexpr std::size_t kFlips = 100;  // at each moment

std::size_t flips() {
  const char* const given = std::getenv("CDD_PROOF_FLIPS");
  return given == nullptr ? kFlips : static_cast<std::size_t>(std::max(1, std::atoi(given)));
}

// Of the first `rows` rows, how many cannot be read. Those that can are right.
std::uint64_t lost_rows(const std::shared_ptr<Storage>& storage, const Image& expected, std::uint64_t rows) {
  const Reader reader(storage);
  EXPECT_GE(reader.rows(), rows);
  std::uint64_t lost = 0;
  Image found(Session::kRowBytes);
  for (std::uint64_t row = 0; row < std::min(rows, reader.rows()); ++row) {
    const auto wanted = expected.begin() + static_cast<std::ptrdiff_t>(row * Session::kRowBytes);
    try {
      reader.read_into({row, 1}, found);
      EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted)) << "row " << row << " is wrong";
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::Io) << error.what();
      ++lost;
    }
  }
  return lost;
}

class Proof : public testing::TestWithParam<CrashWorkload> {
 protected:
  Proof() { GetParam().run(session_); }

  // No chunk has more rows than this.
  void expect_little_loss(const Image& image, const Promise& promise) {
    const std::uint64_t chunk_rows = GetParam().options.chunk_rows;
    const auto storage = std::make_shared<RecordingStorage>(image);
    EXPECT_LE(lost_rows(storage, promise.rows, promise.durable_rows), chunk_rows);
    const auto writer = Writer::open(storage, GetParam().options);
    EXPECT_GE(writer->rows(), promise.durable_rows) << "the next writer cut them off";
    writer->append(Session::layout(), Image(Session::kRowBytes), 1);
    writer->close();
    EXPECT_LE(lost_rows(storage, promise.rows, promise.durable_rows), chunk_rows) << "after an append";
  }

  // Calls `look` with `count` bits flipped, one at a time.
  template <class Look>
  void flip_bits(Image& image, std::size_t count, Look&& look) {
    const std::uint64_t start = read_header(*storage_).first_block;
    for (std::size_t i = 0; i < count && !HasFailure(); ++i, ++cases_) {
      const auto byte = static_cast<std::size_t>(start + random_() % (image.size() - start));
      const std::byte mask = std::byte{1} << (random_() % 8);
      image[byte] ^= mask;
      look(", byte " + std::to_string(byte));
      image[byte] ^= mask;
    }
  }

  void flip_bits(Image& image, const Promise& promise, std::size_t count, const std::string& when) {
    flip_bits(image, count, [&](const std::string& where) {
      expect_little_loss(image, promise);
      EXPECT_FALSE(HasFailure()) << when << where;
    });
  }

  // Calls `look` with what a kill leaves after each write of the next writer's recovery.
  template <class Look>
  void at_every_moment_of_recovery(const Image& image, Look&& look) {
    const auto recovered = std::make_shared<RecordingStorage>(image);
    Writer::open(recovered, GetParam().options)->give_up();
    const auto& operations = recovered->operations();
    Image left = image;
    for (std::size_t t = 0; t < operations.size() && !HasFailure(); ++t) {
      redo(operations[t], left);
      if (operations[t].kind != Operation::Kind::Sync) look(left, t);
    }
  }

  // Calls `look` with what a kill leaves at every moment when rows are acknowledged.
  template <class Look>
  void at_every_moment(Look&& look) {
    const auto& operations = storage_->operations();
    const auto& promises = session_.promises();
    Image image;
    std::size_t promise = 0;
    for (std::size_t t = 0; t <= operations.size() && !HasFailure(); ++t) {
      while (promise + 1 < promises.size() && promises[promise + 1].operations <= t) ++promise;
      const bool is_promised = t >= promises.front().operations && promises[promise].durable_rows > 0;
      if (is_promised) look(image, promises[promise], "after operation " + std::to_string(t));
      if (t < operations.size()) redo(operations[t], image);
    }
  }

  std::shared_ptr<RecordingStorage> storage_ = std::make_shared<RecordingStorage>();
  Session session_{storage_, GetParam().options, 0};
  Random random_{17};
  std::uint64_t cases_ = 0;
};

TEST_P(Proof, OneFlippedBitAndAKillCostOneChunkAtMost) {
  at_every_moment([&](Image& image, const Promise& promise, const std::string& when) {
    flip_bits(image, promise, flips(), when);
  });
  EXPECT_GE(cases_, flips());
  RecordProperty("cases", std::to_string(cases_));
}

TEST_P(Proof, OneFlippedBitAndAKilledRecoveryCostOneChunkAtMost) {
  at_every_moment([&](Image& image, const Promise& promise, const std::string& when) {
    at_every_moment_of_recovery(image, [&](Image& left, std::size_t t) {
      flip_bits(left, promise, flips() / 2, when + ", and " + std::to_string(t) + " of a recovery");
    });
  });
  RecordProperty("cases", std::to_string(cases_));
}

TEST_P(Proof, OneFlippedBitBeforeAKilledRecoveryCostsOneChunkAtMost) {
  at_every_moment([&](Image& image, const Promise& promise, const std::string& when) {
    flip_bits(image, flips() / 4, [&](const std::string& where) {
      at_every_moment_of_recovery(image, [&](Image& left, std::size_t t) {
        expect_little_loss(left, promise);
        EXPECT_FALSE(HasFailure()) << when << where << ", before " << t << " of a recovery";
      });
    });
  });
  EXPECT_GE(cases_, flips() / 4);
  RecordProperty("cases", std::to_string(cases_));
}

// What a call acknowledged is proven when it returns, and opening the file then reads no record.
TEST_P(Proof, IsThereWhenTheCallReturns) {
  Image image;
  std::size_t done = 0;
  for (const Promise& promise : session_.promises()) {
    for (; done < promise.operations; ++done) redo(storage_->operations()[done], image);
    if (promise.durable_rows == 0 || promise.durable_rows < promise.written_rows) continue;
    const RecordingStorage left(image);
    const Header header = read_header(left);
    const BlockWalk walk(left, header.metadata, header.first_block);
    EXPECT_TRUE(walk.find_tail().clean) << "after operation " << done;
    EXPECT_EQ(walk.find_end().rows, promise.durable_rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, Proof, testing::ValuesIn(crash_workloads()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace cdd
