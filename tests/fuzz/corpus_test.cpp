// Runs every fuzz target over its corpus: inputs that once found something, or reach what little else
// reaches; then over changes of them by the target's own mutator, for its share of a minute. The same changes
// in the same order each time, as far as the machine gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tests/fuzz/target.h"
#include "tests/rig/test_data.h"

namespace cdd::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

// Of changing inputs, for all targets together.
std::chrono::duration<double> time_for_all() {
  const char* const given = std::getenv("CDD_FUZZ_SECONDS");
  return std::chrono::duration<double>(given == nullptr ? 60 : std::strtod(given, nullptr));
}

// What libFuzzer's own mutations come down to.
void scramble(Buffer& bytes, std::size_t most, Random& random) {
  for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto byte = static_cast<std::byte>(random() >> 8);
    switch (random() % 4) {
      case 0:
        bytes.insert(place, byte);
        break;
      case 1:
        if (!bytes.empty()) bytes.erase(place);
        break;
      case 2:
        if (!bytes.empty()) *place ^= static_cast<std::byte>(1u << random() % 8);
        break;
      default:
        if (!bytes.empty()) *place = byte;
    }
  }
  bytes.resize(std::min(bytes.size(), most));
}

class FuzzCorpus : public testing::TestWithParam<const Target*> {};

TEST_P(FuzzCorpus, RunsThrough) {
  const Target& target = *GetParam();
  const auto folder = std::filesystem::path(CDD_SOURCE_DIR) / "tests/fuzz/corpus" / target.corpus;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  EXPECT_GE(paths.size(), 5u);
  std::vector<Buffer> inputs;
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    inputs.push_back(test::read_file(path));
    target.run(inputs.back());
  }
  Random random(1);
  const Scramble change = [&](Buffer& bytes, std::size_t most) { scramble(bytes, most, random); };
  const auto end = Clock::now() + time_for_all() / targets().size();
  std::size_t changes = 0;
  do {
    const Buffer& input = inputs[changes % inputs.size()];
    Buffer changed = input;
    target.mutate(changed, input.size() + 64, random, change);
    target.run(changed);
    ++changes;
  } while (changes < inputs.size() || Clock::now() < end);
  RecordProperty("changed_inputs", std::to_string(changes));
}

std::vector<const Target*> all_targets() {
  std::vector<const Target*> all;
  for (const Target& target : targets()) all.push_back(&target);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, FuzzCorpus, testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace cdd::fuzz
