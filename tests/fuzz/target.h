// What is fuzzed: one row of the table in targets.cpp for each target. A target takes any bytes and aborts
// where a promise is broken; sanitizers and libFuzzer's limits see the rest. Errors of the store are answers,
// not findings. libfuzzer.cpp runs a target under libFuzzer, corpus_test.cpp runs all over what the
// repository keeps of their inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "core/base/bytes.h"

namespace cdd::fuzz {

using Buffer = std::vector<std::byte>;
using Random = std::minstd_rand;
// Changes bytes in any way, to at most `most` of them.
using Scramble = std::function<void(Buffer& bytes, std::size_t most)>;

struct Target {
  const char* name;
  const char* corpus;  // its folder in tests/fuzz/corpus: targets of one kind of input share it
  void (*run)(Bytes input);
  // Changes an input such that its checks hold often enough for the numbers behind them to get their turn.
  void (*mutate)(Buffer& input, std::size_t most, Random& random, const Scramble& scramble);
};

std::span<const Target> targets() noexcept;
const Target* find_target(const char* name) noexcept;

// Says what is broken and aborts.
void require(bool holds, const char* promise) noexcept;

// The first dozen bytes of an input decide on small things; beyond the end there are zeros.
class Choices {
 public:
  explicit Choices(Bytes input) noexcept : rest_(input) {}

  std::uint32_t byte() noexcept;
  std::uint32_t word() noexcept;  // two bytes
  Bytes rest() const noexcept { return rest_; }

 private:
  Bytes rest_;
};

// file_targets.cpp: inputs are files.
void open(Bytes file);
void walk_index(Bytes file);
void recover(Bytes file);
void salvage_records(Bytes file);
void header(Bytes file);

// file_mutator.cpp
void mutate_file(Buffer& file, std::size_t most, Random& random, const Scramble& scramble);
void mutate_header(Buffer& file, std::size_t most, Random& random, const Scramble& scramble);

// chunk_targets.cpp: inputs are a head that chooses layout, rows and range, then a payload or rows.
void decode_bytes(Bytes input);
void decode_okx_f16(Bytes input);
void decode_okx_f32(Bytes input);
void decode_generic(Bytes input);
void decode_levels(Bytes input);
void decode_numeric(Bytes input);
void decode_record(Bytes input);
void encode_books(Bytes input);
void encode_levels(Bytes input);
void encode_numeric(Bytes input);
void encode_auto(Bytes input);
void mutate_levels(Buffer& input, std::size_t most, Random& random, const Scramble& scramble);
void mutate_numeric(Buffer& input, std::size_t most, Random& random, const Scramble& scramble);
void mutate_plainly(Buffer& input, std::size_t most, Random& random, const Scramble& scramble);

// packed_targets.cpp: inputs are CSV text after four bytes of options, or files of packed rows.
void csv_text(Bytes input);
void packed_file(Bytes input);

// tile_targets.cpp: inputs are zarr.json; a byte, then a shard or a journal; a frame of blosc after the size
// of its content; content after three bytes of options.
void tiles_metadata(Bytes input);
void tiles_shard(Bytes input);
void tiles_journal(Bytes input);
void blosc_frame(Bytes input);
void blosc_content(Bytes input);
void blosc_literals(Bytes input);
void blosc_runs(Bytes input);
void mutate_shard(Buffer& input, std::size_t most, Random& random, const Scramble& scramble);
void mutate_journal(Buffer& input, std::size_t most, Random& random, const Scramble& scramble);

}  // namespace cdd::fuzz
