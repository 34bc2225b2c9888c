// Replays the fuzzer's corpus: inputs that once found something, or reach what little else reaches.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/open_all.h"

namespace cdd {
namespace {

TEST(FuzzCorpus, OfOpenRunsThrough) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CDD_FUZZ_CORPUS)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    open_all({as_bytes(text.data()), text.size()});
    ++files;
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace cdd
