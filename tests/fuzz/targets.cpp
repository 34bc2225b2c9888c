// The table of the fuzz targets, and what they share.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/target.h"

namespace cdd::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"open", "file", open, mutate_file},
    {"index", "file", walk_index, mutate_file},
    {"recovery", "file", recover, mutate_file},
    {"salvage", "file", salvage_records, mutate_file},
    {"header", "file", header, mutate_header},
    {"decode_bytes", "decode_bytes", decode_bytes, mutate_plainly},
    {"decode_okx_f16", "decode_okx_f16", decode_okx_f16, mutate_plainly},
    {"decode_okx_f32", "decode_okx_f32", decode_okx_f32, mutate_plainly},
    {"decode_generic", "decode_generic", decode_generic, mutate_plainly},
    {"decode_levels", "decode_levels", decode_levels, mutate_levels},
    {"decode_numeric", "decode_numeric", decode_numeric, mutate_numeric},
    {"decode_record", "decode_record", decode_record, mutate_plainly},
    {"encode_books", "rows", encode_books, mutate_plainly},
    {"encode_levels", "rows", encode_levels, mutate_plainly},
    {"encode_numeric", "rows", encode_numeric, mutate_plainly},
    {"encode_auto", "rows", encode_auto, mutate_plainly},
    {"csv_text", "csv_text", csv_text, mutate_plainly},
    {"packed_file", "packed_file", packed_file, mutate_plainly},
    {"tiles_metadata", "tiles_metadata", tiles_metadata, mutate_plainly},
    {"tiles_shard", "tiles_shard", tiles_shard, mutate_shard},
    {"tiles_journal", "tiles_journal", tiles_journal, mutate_journal},
    {"blosc_frame", "blosc_frame", blosc_frame, mutate_plainly},
    {"blosc_literals", "blosc_literals", blosc_literals, mutate_plainly},
    {"blosc_runs", "blosc_runs", blosc_runs, mutate_plainly},
    {"blosc_content", "blosc_content", blosc_content, mutate_plainly},
};

}  // namespace

std::span<const Target> targets() noexcept { return kTargets; }

const Target* find_target(const char* name) noexcept {
  for (const Target& target : kTargets) {
    if (std::strcmp(target.name, name) == 0) return &target;
  }
  return nullptr;
}

void require(bool holds, const char* promise) noexcept {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

std::uint32_t Choices::byte() noexcept {
  if (rest_.empty()) return 0;
  const auto value = std::to_integer<std::uint32_t>(rest_.front());
  rest_ = rest_.subspan(1);
  return value;
}

std::uint32_t Choices::word() noexcept {
  const std::uint32_t low = byte();
  return low | byte() << 8;
}

void mutate_plainly(Buffer& input, std::size_t most, Random&, const Scramble& scramble) {
  scramble(input, most);
}

}  // namespace cdd::fuzz
