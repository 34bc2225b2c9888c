// What a writer does while nobody is in it, and with encoders of others.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/tiles/small_array.h"

namespace cdd::test {
namespace {

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

// An encoder that takes long, as high levels of zstd do.
class SlowEncoder final : public tiles::TileEncoder {
 public:
  void encode(tiles::Layer& layer, bool whole, tiles::TileSink& sink) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (std::uint64_t t = 0; t < layer.tiles(); ++t) {
      if (layer.is_done(t)) continue;
      sink.put_fill(t);
      if (whole) layer.set_done(t);
    }
  }
};

// More of them than there are threads of jobs, each of which always has a layer to encode.
TEST(TileWriter, BusyWritersKeepNobodyWaiting) {
  constexpr int kBusy = static_cast<int>(Jobs::kMaxThreads) + 2;
  std::vector<std::unique_ptr<RecordedFiles>> files;
  std::vector<std::unique_ptr<TileWriter>> writers;
  for (int i = 0; i <= kBusy; ++i) {
    files.push_back(std::make_unique<RecordedFiles>());
    writers.push_back(TileWriter::create(files.back()->files(), small(Durability::None)));
  }
  TileWriter& paused = *writers[kBusy];
  for (std::uint64_t i = 0; i < 6; ++i) paused.append(frame(i));
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kBusy; ++i) {
    writers[static_cast<std::size_t>(i)]->set_encoder(std::make_unique<SlowEncoder>());
    threads.emplace_back([&, i] {
      while (!is_over) writers[static_cast<std::size_t>(i)]->append(frame(0));
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto all = [&] {
    for (int i = 0; i < kBusy; ++i) {
      if (writers[static_cast<std::size_t>(i)]->progress().frames_encoded == 0) return false;
    }
    return paused.progress().frames_readable == 6;
  };
  while (!all() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(all());
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

// Layers that came encoded are shown, too, though the next one is refused.
TEST(TileWriter, ARefusedLayerKeepsNoneBeforeItFromReaders) {
  RecordedFiles files;
  const auto writer = TileWriter::create(files.files(), small(Durability::None));
  const std::vector<Bytes> tiles(static_cast<std::size_t>(writer->tiling().layer_tiles()));
  for (int i = 0; i < 3; ++i) writer->put_layer(tiles, 2);
  EXPECT_THROW(writer->put_layer(tiles, 3), Error);
  EXPECT_EQ(writer->progress().frames_encoded, 6u);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (writer->progress().frames_readable < 6 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(writer->progress().frames_readable, 6u);
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

}  // namespace
}  // namespace cdd::test
