// Coded streams of LEVELS: codes and their tables, every form of a stream, whole books, damage.
#include "core/codec/levels/coded.h"

#include <cmath>
#include <numeric>
#include <set>

#include "tests/rig/levels_rig.h"
#include "tests/rig/simd_targets.h"
#include "tests/rig/test_data.h"

namespace cdd {
namespace {

using namespace levels_rig;
using namespace levels;
using test::for_each_target;
using Values = std::vector<std::uint32_t>;

// Bins with codes for counts that halve more or less fast, and some of none.
std::vector<Bin> random_bins(std::size_t n, Random32& random, unsigned most_width) {
  Values counts(n);
  for (std::uint32_t& c : counts) c = random() % 4 == 0 ? 0 : 1 + random() % (1u << random() % 16);
  counts.front() = counts.back() = 3;
  std::vector<Bin> bins(n);
  for (Bin& bin : bins) bin.width = static_cast<std::uint8_t>(random() % (most_width + 1));
  choose_lengths(counts, kMaxCodeLength, bins);
  return bins;
}

TEST(PrefixCode, LengthsAreCompleteBoundedAndNearlyTheBest) {
  Random32 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t n = 2 + random() % (kMaxBins - 1);
    Values counts(n);
    for (std::uint32_t& c : counts) c = random() % 3 == 0 ? 0 : 1 + random() % (1u << random() % 20);
    counts[0] = 1;
    counts[n - 1] = 1;
    const auto fewest = static_cast<unsigned>(std::bit_width(n - 1));
    const unsigned most = fewest + random() % (kMaxCodeLength + 1 - fewest);
    std::vector<Bin> bins(n);
    choose_lengths(counts, most, bins);
    double space = 0, bits = 0, entropy = 0;
    const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(bins[i].length == 0, counts[i] == 0);
      ASSERT_LE(bins[i].length, most);
      if (counts[i] == 0) continue;
      space += std::ldexp(1.0, -bins[i].length);
      bits += static_cast<double>(std::size_t{counts[i]} * bins[i].length);
      entropy += counts[i] * std::log2(sum / counts[i]);
    }
    ASSERT_EQ(space, 1);
    // Codes that are cut short cost more, but no more than codes of equal length would take.
    ASSERT_LE(bits, std::max(entropy + sum, sum * fewest));
  }
}

TEST(PrefixCode, TablesSayWhatCodesMean) {
  Random32 random(2);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Bin> bins = random_bins(2 + random() % (kMaxBins - 1), random, 31);
    std::vector<CodeEntry> entries(std::size_t{1} << kMaxCodeLength);
    CodeTable table;
    ASSERT_TRUE(make_code_table(bins, 77, entries.data(), table));
    std::vector<std::uint16_t> codes(bins.size());
    make_codes(bins, codes);
    std::uint32_t begin = 77;
    for (std::size_t i = 0; i < bins.size(); ++i) {
      for (unsigned junk = 0; bins[i].length != 0 && junk < 1u << (table.index_bits - bins[i].length);
           ++junk) {
        const CodeEntry& e = entries[codes[i] | junk << bins[i].length];
        ASSERT_EQ(e.base, begin);
        ASSERT_EQ(e.length, bins[i].length);
        ASSERT_EQ(e.width, bins[i].width);
        ASSERT_EQ(e.bits, e.length + e.width);
        ASSERT_LE(e.bits, table.most_bits);
      }
      begin += std::uint32_t{1} << bins[i].width;
    }
  }
}

// Whatever lengths a file says: a table exactly where every bit string means one thing.
TEST(PrefixCode, OnlyCompleteCodesHaveTables) {
  Random32 random(3);
  std::vector<CodeEntry> entries(std::size_t{1} << kMaxCodeLength);
  int complete = 0;
  for (int round = 0; round < 200000; ++round) {
    std::vector<Bin> bins(1 + random() % 7);
    double space = 0;
    bool is_short = true;
    for (Bin& bin : bins) {
      bin = {0, static_cast<std::uint8_t>(random() % (round % 9 == 0 ? 16 : 5))};
      is_short &= bin.length <= kMaxCodeLength;
      space += bin.length == 0 ? 0 : std::ldexp(1.0, -bin.length);
    }
    CodeTable table;
    ASSERT_EQ(make_code_table(bins, 0, entries.data(), table), is_short && space == 1);
    complete += is_short && space == 1;
  }
  EXPECT_GT(complete, 1000);
}

// Reads codes as the specification says, a bit at a time.
struct SlowReader {
  std::span<const Bin> bins;
  std::vector<std::uint16_t> codes;

  std::uint32_t next(const Buffer& bytes, std::size_t& bit) const {
    const auto take = [&] {
      const unsigned b = static_cast<unsigned>(bytes[bit / 8]) >> bit % 8 & 1;
      ++bit;
      return b;
    };
    unsigned code = 0, length = 0;
    while (true) {
      code |= take() << length++;
      std::uint32_t begin = 0;
      for (std::size_t i = 0; i < bins.size(); ++i) {
        if (bins[i].length == length && codes[i] == code) {
          std::uint32_t v = 0;
          for (unsigned b = 0; b < bins[i].width; ++b) v |= take() << b;
          return begin + v;
        }
        begin += std::uint32_t{1} << bins[i].width;
      }
    }
  }
};

TEST(PrefixCode, EveryTargetReadsLikeTheDefinition) {
  Random32 random(4);
  for (int round = 0; round < 60; ++round) {
    const std::vector<Bin> bins =
        random_bins(2 + random() % 20, random, std::array{0u, 3u, 8u, 31u}[random() % 4]);
    SlowReader slow{bins, std::vector<std::uint16_t>(bins.size())};
    make_codes(bins, slow.codes);
    // Any bits are codes: lanes of random bytes, one behind the other.
    const std::size_t n = random() % 300, lane_bytes = n / 4 * 6 + 12;
    Buffer bytes(4 * lane_bytes);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    Values expected(n);
    std::size_t bits[simd::kCodeLanes];
    for (std::size_t l = 0; l < simd::kCodeLanes; ++l) bits[l] = l * lane_bytes * 8;
    for (std::size_t i = 0; i < n; ++i) expected[i] = slow.next(bytes, bits[i % simd::kCodeLanes]);
    std::vector<CodeEntry> entries(std::size_t{1} << kMaxCodeLength);
    CodeTable table;
    ASSERT_TRUE(make_code_table(bins, 0, entries.data(), table));
    // As many bytes as are used, and the padding: nothing else may be read.
    const std::size_t used = (bits[3] + 7) / 8;
    Buffer tight(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(used));
    tight.resize(used + kScratchPadding, std::byte{0x5a});
    for_each_target([&] {
      simd::CodeLanes lanes{tight.data(), {}, {}, used};
      for (std::size_t l = 0; l < simd::kCodeLanes; ++l) lanes.bit[l] = l * lane_bytes * 8;
      Values out(n);
      simd::levels_kernels().read_codes(table, lanes, n / 8 * 4, out.data());
      simd::levels_kernels().read_codes(table, lanes, n - n / 8 * 4, out.data() + n / 8 * 4);
      ASSERT_EQ(out, expected);
      for (std::size_t l = 0; l < simd::kCodeLanes; ++l) ASSERT_EQ(lanes.bit[l], bits[l]);
    });
  }
}

// Streams through heads, bodies and lanes and back; returns the forms they took.
std::multiset<CodedForm> expect_streams(const std::vector<Values>& streams) {
  std::vector<StreamPlan> packed;
  std::vector<CodedPlan> plans;
  std::size_t bits = 0, n_values = 0;
  std::multiset<CodedForm> forms;
  for (const Values& values : streams) packed.push_back(plan_stream(values, true, 0));
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packed[i].may_be_delta = i % 2 == 1;
    packed[i].head.delta = i % 4 == 1;
    plans.push_back(plan_coded(packed[i]));
    bits += plans.back().bits;
    n_values += streams[i].size();
    forms.insert(plans.back().form);
  }
  std::vector<const CodedPlan*> pointers;
  for (const CodedPlan& plan : plans) pointers.push_back(&plan);
  const Buffer specials{std::byte{7}, std::byte{8}};
  Buffer bytes(bits / 8 + kLanesBytes + specials.size() + 8);
  std::byte* const end = write_coded(pointers, specials, bytes.data());
  const auto size = static_cast<std::size_t>(end - bytes.data());
  EXPECT_LE(size, bits / 8 + kLanesBytes + specials.size());
  bytes.resize(size);
  bytes.resize(size + kScratchPadding, std::byte{0xa5});
  for_each_target([&] {
    CodedReader reader({bytes.data(), bytes.data() + size}, n_values, streams.size());
    std::vector<Stream> got(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) reader.take_head(streams[i].size(), i % 2 == 1, got[i]);
    const std::byte* const found = reader.take_bodies(specials.size());
    EXPECT_TRUE(equal({found, specials.size()}, specials));
    for (std::size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(got[i].head.delta, i % 4 == 1 && !streams[i].empty());
      for (const std::size_t first : {std::size_t{0}, streams[i].size() / 32 * 16}) {
        const std::size_t count = (streams[i].size() - first + 1) / (1 + first % 3);
        const std::size_t n = std::min(count, streams[i].size() - first);
        Values out(n + 16);
        read_stream(simd::levels_kernels(), got[i], first, n, out.data());
        out.resize(n);
        const auto from = streams[i].begin() + static_cast<std::ptrdiff_t>(first);
        EXPECT_EQ(out, Values(from, from + static_cast<std::ptrdiff_t>(n))) << "stream " << i;
      }
    }
  });
  return forms;
}

TEST(CodedStreams, EveryFormComesBack) {
  Random32 random(5);
  std::multiset<CodedForm> forms;
  const auto skewed = [&] { return static_cast<std::uint32_t>(random() % (1u << random() % 20)); };
  for (int round = 0; round < 60; ++round) {
    std::vector<Values> streams;
    for (unsigned k = 1 + random() % 9; k > 0; --k) {
      Values values(random() % 5 == 0 ? random() % 4 : random() % 3000);
      const Values few{skewed() * 9973, skewed() * 9973, skewed() * 9973, skewed(), 0x80000000, 0xffffffff};
      const unsigned kind = random() % 6;
      const auto base = static_cast<std::uint32_t>(random());
      for (std::uint32_t& v : values) {
        switch (kind) {
          case 0:
            v = static_cast<std::uint32_t>(random());
            break;
          case 1:
            v = skewed();
            break;
          case 2:  // both signs
            v = random() % 2 == 0 ? skewed() : 0u - skewed();
            break;
          case 3:  // few values that come again and again
            v = few[random() % few.size()];
            break;
          case 4:  // most at one place, others around it
            v = base + (random() % 4 == 0 ? skewed() : 70000);
            break;
          default:  // two heaps
            v = base + (random() % 3 == 0 ? 0u : 4000u) + static_cast<std::uint32_t>(random() % 16);
        }
      }
      streams.push_back(std::move(values));
    }
    forms.merge(expect_streams(streams));
  }
  for (const CodedForm form : {CodedForm::Packed, CodedForm::Classes, CodedForm::Bins, CodedForm::Lookup}) {
    EXPECT_GE(forms.count(form), 5u) << static_cast<int>(form);
  }
}

TEST(CodedStreams, EdgesOfRanges) {
  const Values ends{0, 0xffffffff, 0x7fffffff, 0x80000000};
  Values many, halves, one(500, 3), low;
  for (std::uint32_t i = 0; i < 400; ++i) {
    many.push_back(ends[i % 4]);
    halves.push_back(i % 9 == 0 ? 0x80000000 + i : 0x7fffffff - i % 4);
    low.push_back(i % 16 == 0 ? i << 20 : i % 3);
  }
  one[250] = 4;
  expect_streams({many, halves, one, low, ends, {}, {5}});
  expect_streams({{}, {}});
}

std::vector<Book> books() {
  // Buckets that are chosen anew in each row: ids of all levels are the best there is.
  Random32 random(6);
  const auto aggregated = make_book<float>(90, 30, 3, [&](auto, auto j, auto f) {
    if (f == 0) return static_cast<float>(100 + j + 0.25 * (random() % 4));
    return static_cast<float>(f == 1 ? 10 * (1 + random() % 3) : 1 + random() % 2);
  });
  return {sorted_book(150, 20, Order::Rising, 1),
          sorted_book(90, 7, Order::BestFirst, 2),
          random_book(150, 50, 3, 1),
          random_book(100, 7, 5, 3),
          random_book(9000, 9, 2, 4),
          aggregated};
}

TEST(CodedLevels, EveryTargetDecodesTheSame) {
  std::set<int> layouts;
  for (const Book& b : books()) {
    const Buffer payload = expect_round_trip(b, How::Coded);
    ASSERT_FALSE(payload.empty());
    EXPECT_GE(static_cast<int>(payload[0]), 3);
    EXPECT_LE(payload.size(), encode(b.layout, b.data, b.n_rows, How::Smallest).size());
    for (const int layout : layouts_of(payload, b.n_rows)) layouts.insert(layout);
    for_each_target([&] { expect_round_trip(b.layout, b.data, b.n_rows, payload); });
  }
  EXPECT_EQ(layouts, (std::set<int>{0, 1, 2}));
}

TEST(CodedLevels, Damaged) {
  damage(sorted_book(60, 7, Order::Rising, 1), How::Coded);
  damage(random_book(70, 12, 3, 1), How::Coded);
  const auto steps = make_book<float>(
      33000, 2, 1, [](auto r, auto j, auto) { return static_cast<float>(100 + j + r / 3000 * (r / 3000)); });
  damage(steps, How::Coded);
  damage(books().back(), How::Coded);
}

// No chunk of a real book is larger than packed, and most are smaller by more than that.
TEST(CodedLevels, RealBooksAreSmaller) {
  CDD_SKIP_WITHOUT_DATA();
  std::size_t coded = 0, packed = 0;
  for (const test::TestArray& a : test::load_arrays("lob")) {
    for (const std::uint32_t chunk_rows : {64u, 256u}) {
      const std::uint32_t n = std::min(chunk_rows, a.n_rows);
      const Bytes rows = a.rows(a.n_rows - n, n);
      const std::size_t small = encode(a.layout, rows, n, How::Coded).size();
      const std::size_t before = encode(a.layout, rows, n, How::Smallest).size();
      EXPECT_LE(small, before) << a.name;
      coded += small;
      packed += before;
    }
  }
  EXPECT_LT(coded * 100, packed * 88);
}

}  // namespace
}  // namespace cdd
