// What reading one row of a store costs without Python: by the codec alone, whose chunk must be opened up to
// that row whatever is wanted of it, and by the core's reader. One JSON object to standard output:
// nanoseconds for the first row of a chunk, for any row by the codec, for any row by the reader.
//
//   one_row FILE.cdd [READS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "core/storage/mapped_file.h"
#include "core/store/reader.h"

namespace cdd {
namespace {

constexpr int kRounds = 7;

// One row of a chunk whose record is in memory.
struct Place {
  Bytes record;
  ChunkKey key;
  std::uint32_t n_rows;
  std::uint64_t row;
};

// The median round's time of one call.
template <class Work>
double nanoseconds(std::size_t count, Work&& work) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) work(i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    rounds.push_back(took.count() / static_cast<double>(count));
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

void measure(const char* path, std::size_t reads) {
  const std::shared_ptr<Storage> storage = MappedStorage::open(path);
  const Reader reader(storage);
  const RowLayout layout = reader.layout();
  const std::uint64_t salt = reader.header().metadata.check_salt();
  std::vector<std::byte> out(layout.row_bytes());
  std::vector<Place> places;
  std::vector<std::uint64_t> rows;
  std::deque<Scratch> scratches;  // for records that the map's end is too near to
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < reads; ++i) {
    const std::uint64_t chunk = random() % reader.chunks();
    const ChunkInfo info = reader.chunk_info(chunk);
    const auto n_rows = static_cast<std::uint32_t>(info.stop - info.start);
    const Bytes record =
        storage->read_at(info.offset, static_cast<std::size_t>(info.stored_bytes), scratches.emplace_back());
    places.push_back({record, {salt, chunk}, n_rows, random() % n_rows});
    rows.push_back(info.start + places.back().row);
  }
  const auto decode = [&](const Place& p, std::uint64_t row) {
    decode_chunk_rows(layout, p.record, p.key, Verify::None, p.n_rows, {row, 1}, out.data());
  };
  const double first = nanoseconds(reads, [&](std::size_t i) { decode(places[i], 0); });
  const double any = nanoseconds(reads, [&](std::size_t i) { decode(places[i], places[i].row); });
  const double read = nanoseconds(reads, [&](std::size_t i) { reader.read_into({rows[i], 1}, out); });
  std::printf("{\"first_row_ns\": %.0f, \"any_row_ns\": %.0f, \"reader_ns\": %.0f}\n", first, any, read);
}

}  // namespace
}  // namespace cdd

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: one_row FILE.cdd [READS]\n");
    return 2;
  }
  try {
    cdd::measure(argv[1], argc > 2 ? static_cast<std::size_t>(std::atoll(argv[2])) : 2000);
  } catch (const cdd::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
