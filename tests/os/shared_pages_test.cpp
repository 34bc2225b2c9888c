#include "core/os/shared_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace cdd {
namespace {

struct Block {
  unsigned char* bytes;
  std::size_t size;
  unsigned char mark;

  bool is_whole() const {
    for (std::size_t i = 0; i < size; ++i) {
      if (bytes[i] != mark) return false;
    }
    return true;
  }
};

Block take(std::size_t size, unsigned char mark) {
  auto* const bytes = static_cast<unsigned char*>(take_shared(size));
  std::memset(bytes, mark, size);
  return {bytes, size, mark};
}

TEST(SharedPages, BlocksAreAlignedAndApart) {
  std::vector<Block> blocks;
  for (unsigned i = 0; i < 3000; ++i) {  // more than a large page
    const std::size_t sizes[] = {1, 64, 100, 3200, 9000};
    blocks.push_back(take(sizes[i % 5], static_cast<unsigned char>(i)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().bytes) % 64, 0U);
    if (i % 3 == 0) {  // what is given back may come again
      give_shared(blocks[i / 2].bytes, blocks[i / 2].size);
      blocks[i / 2] = take(blocks[i / 2].size, static_cast<unsigned char>(i + 1));
    }
  }
  for (const Block& block : blocks) EXPECT_TRUE(block.is_whole());
  for (const Block& block : blocks) give_shared(block.bytes, block.size);
}

TEST(SharedPages, ThreadsDoNotGetOneAnothersBlocks) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 2000; ++i) {
        const Block one = take(200, static_cast<unsigned char>(t));
        const Block two = take(1300, static_cast<unsigned char>(t + 10));
        wrong[t] += one.is_whole() && two.is_whole() ? 0 : 1;
        give_shared(one.bytes, one.size);
        give_shared(two.bytes, two.size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace cdd
