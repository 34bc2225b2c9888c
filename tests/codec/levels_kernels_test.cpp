// Kernels of LEVELS on every SIMD target beside what they are to do, one value at a time: those whose paths
// depend on the width of a value or the size of an entry.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "core/base/scratch.h"
#include "core/simd/levels/levels.h"
#include "tests/rig/simd_targets.h"

namespace cdd::simd {
namespace {

using test::for_each_target;
using Bytes = std::vector<std::byte>;
using Values = std::vector<std::uint32_t>;

constexpr std::size_t kEntryBytes[] = {4, 8, 12, 16, 20, 24};
constexpr std::byte kGuard{0x5a};

Bytes random_bytes(std::size_t n, std::mt19937& random) {
  Bytes bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

std::uint32_t packed_value(const Bytes& bytes, unsigned width, std::size_t i) {
  std::uint32_t v = 0;
  for (unsigned b = 0; b < width; ++b) {
    const std::size_t bit = i * width + b;
    v |= (std::to_integer<std::uint32_t>(bytes[bit / 8]) >> bit % 8 & 1) << b;
  }
  return v;
}

TEST(LevelsKernels, UnpackValuesOfEveryWidth) {
  std::mt19937 random(1);
  for (unsigned width = 0; width <= 24; ++width) {
    for (const std::size_t n : {1, 3, 15, 16, 17, 48, 100, 257}) {
      const Bytes bytes = random_bytes((n * width + 7) / 8 + kScratchPadding, random);
      const auto base = static_cast<std::uint32_t>(random());
      Values expected(n);
      for (std::size_t i = 0; i < n; ++i) expected[i] = base + packed_value(bytes, width, i);
      for_each_target([&] {
        Values got(n + 16);
        levels_kernels().unpack(bytes.data(), width, n, base, got.data());
        got.resize(n);
        ASSERT_EQ(got, expected) << width << " bits, " << n << " values";
      });
    }
  }
}

TEST(LevelsKernels, UnpackValuesInTwoParts) {
  std::mt19937 random(2);
  for (unsigned high_width = 1; high_width <= 16; ++high_width) {
    for (const std::size_t n : {1, 15, 16, 31, 130}) {
      const Bytes low = random_bytes(n * 2 + kScratchPadding, random);
      const Bytes high = random_bytes((n * high_width + 7) / 8 + kScratchPadding, random);
      const auto base = static_cast<std::uint32_t>(random());
      Values expected(n);
      for (std::size_t i = 0; i < n; ++i) {
        expected[i] = base + packed_value(low, 16, i) + (packed_value(high, high_width, i) << 16);
      }
      for_each_target([&] {
        Values got(n + 16);
        levels_kernels().unpack_wide(low.data(), high.data(), high_width, n, base, got.data());
        got.resize(n);
        ASSERT_EQ(got, expected) << high_width << " high bits, " << n << " values";
      });
    }
  }
}

// n entries of random bytes, each with what lies between it and the next.
Bytes random_entries(std::size_t n, std::size_t entry_bytes, std::mt19937& random) {
  return random_bytes((n + 16) * levels_entry_stride(entry_bytes), random);
}

Bytes rows_of(const Bytes& entries, std::size_t entry_bytes, const Values& ids) {
  Bytes rows;
  for (const std::uint32_t id : ids) {
    const std::byte* const entry = entries.data() + id * levels_entry_stride(entry_bytes);
    rows.insert(rows.end(), entry, entry + entry_bytes);
  }
  return rows;
}

TEST(LevelsKernels, BlocksOfIdsBecomeRowsAndNothingElseIsWritten) {
  std::mt19937 random(3);
  for (const std::size_t entry_bytes : kEntryBytes) {
    for (const std::size_t slots : {1, 2, 3, 4, 5, 8, 11, 50}) {
      const std::size_t n_rows = 1 + random() % kIdBlockRows, first = random() % n_rows;
      const std::size_t rows = 1 + random() % (n_rows - first), n_entries = 1 + random() % 300;
      const Bytes entries = random_entries(n_entries, entry_bytes, random);
      // Ids as the format has them: of slot 0, then steps, slot by slot.
      Values ids(n_rows * slots), starts(n_rows + 16), deltas(n_rows * slots + 16), wanted;
      for (std::uint32_t& id : ids) id = static_cast<std::uint32_t>(random() % n_entries);
      for (std::size_t r = 0; r < n_rows; ++r) {
        starts[r] = ids[r * slots];
        for (std::size_t j = 1; j < slots; ++j)
          deltas[(j - 1) * n_rows + r] = ids[r * slots + j] - ids[r * slots + j - 1];
      }
      for (std::size_t i = first * slots; i < (first + rows) * slots; ++i) wanted.push_back(ids[i]);
      Bytes expected = rows_of(entries, entry_bytes, wanted);
      expected.resize(expected.size() + 64, kGuard);
      for_each_target([&] {
        std::vector<std::uint16_t> block(kIdBlockRows * slots + 32);
        ASSERT_TRUE(levels_kernels().sum_ids(starts.data(), deltas.data(), n_rows, slots,
                                             static_cast<std::uint32_t>(n_entries), block.data()));
        Bytes got(expected.size(), kGuard);
        levels_kernels().gather_block(
            {entries.data(), levels_entry_stride(entry_bytes), entry_bytes, slots, got.data(), rows},
            block.data(), first);
        ASSERT_EQ(got, expected) << entry_bytes << " bytes, " << slots << " slots, rows " << first << " to "
                                 << first + rows;
        // One id too large: told, and still an entry.
        Values more = deltas;
        if (slots > 1) more[(slots - 2) * n_rows + n_rows - 1] += static_cast<std::uint32_t>(n_entries);
        if (slots == 1) return;
        ASSERT_FALSE(levels_kernels().sum_ids(starts.data(), more.data(), n_rows, slots,
                                              static_cast<std::uint32_t>(n_entries), block.data()));
        for (std::size_t i = 0; i < slots; ++i) ASSERT_LT(block[i * kIdBlockRows + n_rows - 1], n_entries);
      });
    }
  }
}

TEST(LevelsKernels, RowsThatAreRepeatedEndWhereTheyShould) {
  std::mt19937 random(4);
  for (const std::size_t entry_bytes : kEntryBytes) {
    for (const std::size_t slots : {1, 3, 7, 9, 50}) {
      constexpr std::size_t kRows = 20;
      const std::size_t n_entries = 1 + random() % 200;
      const Bytes entries = random_entries(n_entries, entry_bytes, random);
      std::vector<std::uint16_t> doubled;
      Values all;
      std::uint32_t starts[kRows], states[kRows];
      std::vector<Values> of_state;
      for (std::size_t r = 0; r < kRows; ++r) {
        if (r == 0 || random() % 2 == 0) {
          starts[of_state.size()] = static_cast<std::uint32_t>(doubled.size());
          of_state.emplace_back();
          for (std::size_t j = 0; j < slots; ++j) {
            of_state.back().push_back(static_cast<std::uint32_t>(random() % n_entries));
            doubled.push_back(static_cast<std::uint16_t>(2 * of_state.back().back()));
          }
        }
        states[r] = static_cast<std::uint32_t>(of_state.size() - 1);
        all.insert(all.end(), of_state.back().begin(), of_state.back().end());
      }
      doubled.resize(doubled.size() + 32);
      Bytes expected = rows_of(entries, entry_bytes, all);
      expected.resize(expected.size() + 64, kGuard);
      for_each_target([&] {
        Bytes got(expected.size(), kGuard);
        levels_kernels().gather_rows(
            {entries.data(), levels_entry_stride(entry_bytes), entry_bytes, slots, got.data(), kRows},
            doubled.data(), starts, states);
        ASSERT_EQ(got, expected) << entry_bytes << " bytes, " << slots << " slots";
      });
    }
  }
}

TEST(LevelsKernels, EntriesAreWhatTheirColumnsSay) {
  std::mt19937 random(5);
  for (const std::uint32_t features : {1u, 2u, 3u, 4u}) {
    for (const std::size_t n : {1, 7, 16, 40}) {
      constexpr std::size_t kPitch = 64;
      Values lanes(kPitch * features);
      for (std::uint32_t& v : lanes) v = static_cast<std::uint32_t>(random() % 2000000) - 1000000;
      std::vector<std::uint8_t> scales(features);
      for (std::uint8_t& s : scales)
        s = random() % 3 == 0 ? LevelsColumns::kBits : static_cast<std::uint8_t>(random() % 6);
      const std::size_t stride = levels_entry_stride(features * 4);
      for_each_target([&] {
        Bytes entries((n + 16) * stride);
        levels_kernels().make_entries({lanes.data(), kPitch, scales.data(), features, 4}, n, entries.data());
        for (std::size_t i = 0; i < n; ++i) {
          for (std::uint32_t f = 0; f < features; ++f) {
            const std::uint32_t q = lanes[f * kPitch + i];
            std::uint32_t bits = q, got;
            if (scales[f] != LevelsColumns::kBits) {
              const auto item = static_cast<float>(static_cast<std::int32_t>(q) * kInversePowers[scales[f]]);
              std::memcpy(&bits, &item, 4);
            }
            std::memcpy(&got, entries.data() + i * stride + f * 4, 4);
            ASSERT_EQ(got, bits) << "entry " << i << " of " << n << ", feature " << f << " of " << features;
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace cdd::simd
