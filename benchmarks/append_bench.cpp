// Appending every real array to a store in memory, by automatic choice: MB/s of raw rows, bytes of the file
// and the codecs chosen. Times are thread CPU time, the best of a few rounds, one core, data warm. An array
// goes in over and over until 8 MiB are there, and once as it is: what a short series pays for its first
// chunks.
//
// usage: append_bench [name part] [fast|dense|a codec's name]
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>

#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "core/threads/for_each.h"
#include "tests/rig/test_data.h"

namespace cdd {
namespace {

constexpr std::size_t kLongBytes = 8 << 20;
constexpr int kRounds = 5;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Result {
  double mb_per_second = 0;
  std::uint64_t bytes = 0;
  std::string codecs;
};

Result append(const test::TestArray& array, std::size_t times, const WriterOptions& options) {
  Result result;
  std::shared_ptr<MemoryStorage> memory;
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    memory = std::make_shared<MemoryStorage>();
    memory->truncate(2 * array.rows().size() * times);  // its growth is no part of what is measured
    memory->truncate(0);
    const auto writer = Writer::create(memory, options);
    const double start = cpu_seconds();
    for (std::size_t i = 0; i < times; ++i) writer->append(array.layout, array.rows(), array.n_rows);
    writer->close();
    best = std::min(best, cpu_seconds() - start);
  }
  const auto raw = static_cast<double>(array.rows().size() * times);
  result.mb_per_second = raw / best / 1e6;
  result.bytes = memory->size();
  std::map<std::string, int> counts;
  const Reader reader(memory);
  for (std::uint64_t i = 0; i < reader.chunks(); ++i) ++counts[reader.chunk_info(i).codec];
  for (const auto& [name, count] : counts) result.codecs += name + ":" + std::to_string(count) + " ";
  return result;
}

}  // namespace
}  // namespace cdd

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  const std::string mode = argc > 2 ? argv[2] : "fast";
  cdd::WriterOptions options;
  options.durability = cdd::Durability::None;
  options.profile = mode == "dense" ? cdd::Profile::Dense : cdd::Profile::Fast;
  if (mode != "dense" && mode != "fast") options.codec = mode;
  cdd::set_threads(1);
  std::printf("%-46s | %8s %10s | %8s %10s  %s\n", "array", "once", "bytes", "MB/s", "bytes", "chunks");
  for (const char* folder : {"series", "lob"}) {
    for (const cdd::test::TestArray& array : cdd::test::load_arrays(folder)) {
      if (array.name.find(part) == std::string::npos) continue;
      const cdd::Result once = cdd::append(array, 1, options);
      const cdd::Result many = cdd::append(array, cdd::kLongBytes / array.rows().size() + 1, options);
      std::printf("%-46s | %8.0f %10llu | %8.0f %10llu  %s\n", array.name.c_str(), once.mb_per_second,
                  static_cast<unsigned long long>(once.bytes), many.mb_per_second,
                  static_cast<unsigned long long>(many.bytes), many.codecs.c_str());
    }
  }
  return 0;
}
