// A store whose bytes somebody else fetches: what it asks for is what it then reads, all of it beforehand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>

#include "core/storage/fetched.h"
#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"

namespace cdd {
namespace {

constexpr std::uint64_t kRows = 20'000;

// The bytes of a store, and what was asked for and read of them.
class Counted final : public FetchedStorage::Source {
 public:
  explicit Counted(std::vector<std::byte> image) : image_(std::move(image)) {}

  std::uint64_t size() override { return image_.size(); }

  void ask(std::span<const ByteRange> ranges) override {
    const std::lock_guard lock(mutex_);
    ++asks;
    for (const ByteRange& range : ranges) asked.push_back(range);
  }

  std::vector<FetchedStorage::Held> read(std::uint64_t offset, MutableBytes out) override {
    const std::lock_guard lock(mutex_);
    if (fails) fail(ErrorCode::Io, "no answer");
    if (offset < held_bytes) {
      const auto end = image_.begin() + static_cast<std::ptrdiff_t>(held_bytes);
      ++holds;
      return {{0, {image_.begin(), end}}};
    }
    std::memcpy(out.data(), image_.data() + offset, out.size());
    reads.push_back({offset, out.size()});
    return {};
  }

  std::vector<ByteRange> asked, reads;
  int asks = 0, holds = 0;
  std::uint64_t held_bytes = 0;
  bool fails = false;

 private:
  std::vector<std::byte> image_;
  std::mutex mutex_;
};

std::vector<std::byte> image_of(const std::vector<std::int64_t>& rows) {
  auto storage = std::make_shared<MemoryStorage>();
  WriterOptions options;
  options.chunk_rows = 50;
  auto writer = Writer::create(storage, options);
  writer->append(RowLayout(DType(Kind::Int64), {}),
                 {reinterpret_cast<const std::byte*>(rows.data()), rows.size() * sizeof rows[0]},
                 rows.size());
  writer->close();
  std::vector<std::byte> image;
  storage->visit([&](Bytes all) { image.assign(all.begin(), all.end()); });
  return image;
}

class Far : public testing::Test {
 protected:
  Far() : rows_(kRows) {
    std::iota(rows_.begin(), rows_.end(), std::int64_t{7});
    auto source = std::make_unique<Counted>(image_of(rows_));
    source_ = source.get();
    storage_ = std::make_shared<FetchedStorage>("far", std::move(source));
  }

  std::vector<std::int64_t> rows_;
  Counted* source_;
  std::shared_ptr<FetchedStorage> storage_;
};

TEST_F(Far, WindowsReadWhatThePlanSaysAndAskForItAtOnce) {
  const Reader reader(storage_);
  ASSERT_TRUE(reader.is_far());
  ASSERT_EQ(reader.rows(), kRows);
  source_->asked.clear();
  source_->reads.clear();
  source_->asks = 0;
  const std::vector<std::uint64_t> starts = {19'000, 10, 40, 7'777};
  std::vector<std::int64_t> out(starts.size() * 64);
  reader.read_windows(starts, 64, {reinterpret_cast<std::byte*>(out.data()), out.size() * 8});
  for (std::size_t w = 0; w < starts.size(); ++w) {
    EXPECT_TRUE(std::equal(out.begin() + static_cast<std::ptrdiff_t>(64 * w),
                           out.begin() + static_cast<std::ptrdiff_t>(64 * w + 64),
                           rows_.begin() + static_cast<std::ptrdiff_t>(starts[w])));
  }
  const auto same = [](const ByteRange& a, const ByteRange& b) {
    return a.offset == b.offset && a.size == b.size;
  };
  const std::vector<ByteRange> plan = reader.plan(starts, 64);
  EXPECT_EQ(source_->asks, 1);
  EXPECT_TRUE(std::equal(plan.begin(), plan.end(), source_->asked.begin(), source_->asked.end(), same));
  auto reads = source_->reads;
  std::sort(reads.begin(), reads.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  EXPECT_TRUE(std::equal(plan.begin(), plan.end(), reads.begin(), reads.end(), same));
  EXPECT_TRUE(std::is_sorted(plan.begin(), plan.end(),
                             [](const auto& a, const auto& b) { return a.offset < b.offset; }));
}

TEST_F(Far, TheIndexIsAskedForInWholeBlocksAndReadOnce) {
  const Reader reader(storage_);
  EXPECT_GE(source_->asks, 2) << "400 chunks have blocks of 128 and 256";
  source_->reads.clear();
  for (std::uint64_t chunk = 0; chunk < reader.chunks(); ++chunk) reader.chunk_rows(chunk);
  EXPECT_TRUE(source_->reads.empty());
}

TEST_F(Far, WhatIsHeldIsNotReadAgain) {
  source_->held_bytes = source_->size();
  const Reader reader(storage_);
  std::vector<std::int64_t> out(kRows);
  reader.read_into({0, kRows}, {reinterpret_cast<std::byte*>(out.data()), out.size() * 8});
  EXPECT_EQ(out, rows_);
  EXPECT_EQ(source_->holds, 1);
  EXPECT_TRUE(source_->reads.empty());
  EXPECT_TRUE(reader.is_cached(0));
}

TEST_F(Far, FailuresComeOutAndPass) {
  const Reader reader(storage_);
  std::int64_t out = 0;
  const MutableBytes bytes(reinterpret_cast<std::byte*>(&out), 8);
  source_->fails = true;
  EXPECT_THROW(reader.read_into({500, 1}, bytes), Error);
  source_->fails = false;
  reader.read_into({500, 1}, bytes);
  EXPECT_EQ(out, 507);
}

}  // namespace
}  // namespace cdd
