// Records that were written once and must be readable for ever: tests/golden/NAME.record, for lossy ones and
// those whose rows are no formula also NAME.rows, what they decode to. Files are never written anew
// (compressors may give other bytes tomorrow); a run with CDD_WRITE_GOLDEN set writes those that do not exist
// yet.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "core/codec/scheme.h"
#include "tests/rig/codec_rig.h"
#include "tests/rig/levels_rig.h"
#include "tests/rig/test_data.h"

namespace cdd::test {
namespace {

struct Golden {
  const char* name;
  const char* codec;
  RowLayout layout;
  std::uint32_t n_rows;
  Buffer rows;
  Float16Options float16 = {};
  bool keeps_rows = false;
  bool coded = false;  // LEVELS as the profile `dense` makes it
};

RowLayout layout_of(Kind kind, std::vector<std::uint32_t> dims) { return RowLayout(kind, dims); }

Buffer book_rows(std::uint32_t n_rows, std::uint32_t levels, std::uint32_t features) {
  const std::vector<float> book = small_book(n_rows, levels, features);
  const Bytes bytes = bytes_of(book);
  return {bytes.begin(), bytes.end()};
}

// Items of any size that repeat and drift, so that every codec has something to do.
template <class T>
Buffer item_rows(std::size_t n) {
  Buffer rows(n * sizeof(T));
  for (std::size_t i = 0; i < n; ++i)
    store<T>(rows.data() + i * sizeof(T), static_cast<T>(i / 8 * 3 + i * i % 5));
  return rows;
}

template <class T>
Buffer bytes_of_items(const std::vector<T>& items) {
  const std::byte* const bytes = as_bytes(items.data());
  return {bytes, bytes + items.size() * sizeof(T)};
}

// Series that take NUMERIC through what its payload can say: each representation, predictor and packing.
std::vector<Golden> numeric_goldens() {
  std::minstd_rand random(6);
  const auto below = [&](unsigned n) { return static_cast<int>(random() >> 8) % static_cast<int>(n); };
  std::vector<std::int64_t> times, regular;
  std::vector<double> quotes;
  std::vector<float> noise, decimals;
  std::vector<std::int32_t> codes, pairs;
  std::vector<std::int16_t> counts;
  std::int64_t time = 1'700'000'000'000;
  int tick = 431'250;
  for (int i = 0; i < 600; ++i) {
    time += below(8) == 0 ? 60'000 + below(900) : below(3) * 10;
    times.push_back(time);
    regular.push_back(1'700'000'000'000'000'000 + std::int64_t{i} * 60'000'000'000 + (i > 400 ? 7 : 0));
    tick += below(9) - 4;
    codes.push_back(below(11) * below(7919) % 23 * 48'271'123);
    counts.push_back(static_cast<std::int16_t>(below(40) == 0  ? below(30'000)
                                               : below(3) == 0 ? below(60)
                                                               : 1));
    if (i >= 200) continue;
    quotes.insert(quotes.end(), {tick / 10.0, below(5000) / 1000.0, (tick + 1 + below(2)) / 10.0});
    decimals.push_back(static_cast<float>(tick) * 0.01f + static_cast<float>(below(90) == 0) / 3);
    const int walk = tick * 1000 + below(300);
    pairs.insert(pairs.end(), {walk, walk - 700 + below(5)});
    for (int k = 0; k < 6; ++k)
      noise.push_back(std::sqrt(static_cast<float>(100 + k) + static_cast<float>(i / 9 + below(2)) * 0.001f));
  }
  decimals[20] = std::numeric_limits<float>::quiet_NaN();
  decimals[21] = -0.0f;
  decimals[150] = std::numeric_limits<float>::infinity();
  const DType ms(Kind::Datetime64, 8);
  const DType ns(Kind::Datetime64, 10);
  return {
      {"numeric_times", "numeric", RowLayout(ms, {}), 600, bytes_of_items(times), {}, true},
      {"numeric_regular", "numeric", RowLayout(ns, {}), 600, bytes_of_items(regular), {}, true},
      {"numeric_quotes", "numeric", layout_of(Kind::Float64, {3}), 200, bytes_of_items(quotes), {}, true},
      {"numeric_noise", "numeric", layout_of(Kind::Float32, {3, 2}), 200, bytes_of_items(noise), {}, true},
      {"numeric_decimals", "numeric", layout_of(Kind::Float32, {}), 200, bytes_of_items(decimals), {}, true},
      {"numeric_codes", "numeric", layout_of(Kind::Int32, {}), 600, bytes_of_items(codes), {}, true},
      {"numeric_pairs", "numeric", layout_of(Kind::Int32, {2}), 200, bytes_of_items(pairs), {}, true},
      {"numeric_counts", "numeric", layout_of(Kind::Int16, {}), 600, bytes_of_items(counts), {}, true},
      {"numeric_zstd", "numeric+zstd", layout_of(Kind::Float64, {3}), 200, bytes_of_items(quotes), {}, true},
  };
}

// What those above leave out: patches, differences of differences, rows before, streams before, an order.
std::vector<Golden> more_numeric_goldens() {
  std::minstd_rand random(7);
  const auto below = [&](unsigned n) { return static_cast<int>(random() >> 8) % static_cast<int>(n); };
  std::vector<float> sizes;
  std::vector<std::int64_t> sweep;
  std::vector<std::int32_t> levels;
  std::vector<double> bars;
  std::vector<int> base(20);
  for (int& b : base) b = below(1'000'000);
  std::int64_t position = 0;
  int close = 70'000;
  for (int i = 0; i < 300; ++i) {
    sizes.push_back(static_cast<float>(below(100'000)) / 100);
    position += std::int64_t{i} * 5'000 + below(3);
    sweep.push_back(position);
    const int open = close;
    close += below(400) - 200;
    bars.insert(bars.end(), {open / 100.0, close / 100.0});
    if (i % 3 != 0) continue;
    for (int& b : base) {
      b += below(6) == 0 ? below(40) - 20 : 0;
      levels.insert(levels.end(), {b, below(50)});
    }
  }
  sizes[20] = std::numeric_limits<float>::quiet_NaN();
  sizes[21] = -0.0f;
  sizes[250] = std::numeric_limits<float>::infinity();
  const RowLayout book = layout_of(Kind::Int32, {20, 2});
  return {
      {"numeric_patches", "numeric", layout_of(Kind::Float32, {}), 300, bytes_of_items(sizes), {}, true},
      {"numeric_second", "numeric", layout_of(Kind::Int64, {}), 300, bytes_of_items(sweep), {}, true},
      {"numeric_levels", "numeric", book, 100, bytes_of_items(levels), {}, true},
      {"numeric_bars", "numeric", layout_of(Kind::Float64, {2}), 300, bytes_of_items(bars), {}, true},
  };
}

// A book whose levels come, go, return and change, by whole ticks. Two sides of `depth` levels, the bids
// first.
class Ladder {
 public:
  struct Level {
    int tick, size;
  };

  Ladder(std::uint32_t depth, unsigned seed) : random_(seed), depth_(static_cast<int>(depth)) {
    for (int i = 0; i < depth_; ++i) {
      sides_[0].push_back({1000 - 2 * i, 1 + below(50)});
      sides_[1].push_back({1002 + 2 * i, 1 + below(50)});
    }
  }

  int below(int n) { return static_cast<int>(random_() >> 8) % n; }

  void change() {
    std::vector<Level>& side = sides_[below(2)];
    const int sign = &side == &sides_[0] ? -1 : 1, at = below(depth_);
    const auto place = side.begin() + at;
    switch (below(5)) {
      case 0:  // a better best level pushes the last one out
        side.insert(side.begin(), {side.front().tick - sign, 1 + below(50)});
        gone_.push_back(side.back());
        side.pop_back();
        break;
      case 1:  // a level goes, and the one that was pushed out returns
        side.erase(place);
        side.push_back({side.back().tick + 2 * sign, gone_.empty() ? 7 : gone_.back().size});
        break;
      case 2:  // a level goes, another comes
        side.erase(place);
        side.insert(side.begin() + below(depth_), {1001 + sign * (1 + below(40)), 1 + below(50)});
        break;
      case 3:
        place->tick += sign;
        break;
      default:
        place->size = below(3) == 0 ? 10 : place->size + below(9) - 4;
    }
  }

  // item(tick, size, feature) for each.
  template <class T, class Item>
  void put(std::vector<T>& rows, int features, Item item) const {
    for (const auto& side : sides_) {
      for (const Level& level : side) {
        for (int f = 0; f < features; ++f) rows.push_back(item(level.tick, level.size, f));
      }
    }
  }

 private:
  std::minstd_rand random_;
  int depth_;
  std::vector<Level> sides_[2], gone_;
};

template <class T, class Item>
Golden levels_golden(const char* name, Kind kind, std::uint32_t n_rows, int depth, int features, int changes,
                     Item item) {
  Ladder ladder(static_cast<std::uint32_t>(depth), n_rows);
  std::vector<T> rows;
  for (std::uint32_t r = 0; r < n_rows; ++r) {
    ladder.put(rows, features, item);
    for (int k = ladder.below(changes + 1); k > 0; --k) ladder.change();
  }
  const auto dims = {static_cast<std::uint32_t>(2 * depth), static_cast<std::uint32_t>(features)};
  return {name, "levels", layout_of(kind, dims), n_rows, bytes_of_items(rows), {}, true};
}

// The events and full layouts of LEVELS: decimals, bits of one and two lanes, specials, one segment and
// several.
std::vector<Golden> levels_goldens() {
  const auto decimals = [](int tick, int size, int f) {
    if (f == 0) return static_cast<float>(tick * 0.1);
    return f == 1 ? static_cast<float>(size * 0.25) : static_cast<float>(size % 7);
  };
  const auto specials = [=](int tick, int size, int f) {
    if (f == 0 && tick == 1007) return std::numeric_limits<float>::infinity();
    if (f == 1 && size == 10) return std::numeric_limits<float>::quiet_NaN();
    return f == 2 && size == 11 ? -0.0f : decimals(tick, size, f);
  };
  const auto bits = [](int tick, int size, int f) {
    return f == 0 ? static_cast<float>(tick) : std::sqrt(static_cast<float>(size));
  };
  const auto wide = [](int tick, int size, int f) { return f == 0 ? tick / 100.0 : std::sqrt(size + tick); };
  const auto whole = [](int tick, int, int) { return static_cast<std::int64_t>(tick) << 33; };
  return {
      levels_golden<float>("levels_events", Kind::Float32, 60, 6, 3, 3, decimals),
      levels_golden<float>("levels_specials", Kind::Float32, 50, 6, 3, 3, specials),
      levels_golden<float>("levels_bits", Kind::Float32, 50, 8, 2, 3, bits),
      levels_golden<float>("levels_full", Kind::Float32, 40, 5, 3, 40, specials),
      levels_golden<float>("levels_segments", Kind::Float32, 200, 5, 2, 8, decimals),
      levels_golden<double>("levels_wide", Kind::Float64, 40, 6, 2, 3, wide),
      levels_golden<std::int64_t>("levels_whole", Kind::Int64, 50, 7, 1, 2, whole),
      levels_golden<float>("levels_many_slots", Kind::Float32, 20, 40, 2, 3, decimals),
  };
}

// The ladder layout of LEVELS: each side's places, levels that no row shows, one segment and several.
std::vector<Golden> ladder_goldens() {
  using levels_rig::Order;
  const auto golden = [](const char* name, std::uint32_t n_rows, std::uint32_t depth, Order order) {
    levels_rig::Book book = levels_rig::sorted_book(n_rows, depth, order, n_rows);
    return Golden{name, "levels", book.layout, n_rows, std::move(book.data), {}, true};
  };
  return {golden("levels_ladder", 50, 8, Order::Rising),
          golden("levels_ladder_best_first", 40, 6, Order::BestFirst),
          golden("levels_ladder_one_side", 60, 9, Order::OneSide),
          golden("levels_ladder_segments", 400, 2, Order::Falling)};
}

// Coded segments of LEVELS: every layout and every form of a stream, one segment and several.
std::vector<Golden> coded_goldens() {
  const auto coded = [](Golden golden, const char* name) {
    golden.name = name;
    golden.coded = true;
    return golden;
  };
  const auto decimals = [](int tick, int size, int f) {
    if (f == 0) return static_cast<float>(tick * 0.1);
    return f == 1 ? static_cast<float>(size * 0.25) : static_cast<float>(size % 7);
  };
  const auto specials = [=](int tick, int size, int f) {
    return f == 1 && size == 10 ? std::numeric_limits<float>::quiet_NaN() : decimals(tick, size, f);
  };
  // Sizes of many digits that come back.
  const auto wide = [](int tick, int size, int f) { return f == 0 ? tick / 100.0 : size * 1234567.0; };
  const auto ladder = [](std::uint32_t n_rows, std::uint32_t depth, levels_rig::Order order) {
    levels_rig::Book book = levels_rig::sorted_book(n_rows, depth, order, n_rows);
    return Golden{"", "levels", book.layout, n_rows, std::move(book.data), {}, true};
  };
  const Buffer items = item_rows<float>(80000 / 4000);
  Buffer steps(80000 * sizeof(float));
  for (std::size_t i = 0; i < 80000; ++i)
    std::memcpy(steps.data() + i * sizeof(float), items.data() + i / 4000 * sizeof(float), sizeof(float));
  return {coded(levels_golden<float>("", Kind::Float32, 120, 6, 3, 9, decimals), "levels_coded_events"),
          coded(levels_golden<float>("", Kind::Float32, 60, 5, 3, 40, specials), "levels_coded_full"),
          coded(levels_golden<double>("", Kind::Float64, 150, 6, 2, 6, wide), "levels_coded_lookup"),
          coded(ladder(160, 8, levels_rig::Order::Rising), "levels_coded_ladder"),
          coded({"", "levels", layout_of(Kind::Float32, {2, 1}), 40000, std::move(steps)},
                "levels_coded_segments")};
}

std::vector<Golden> goldens() {
  const RowLayout okx = layout_of(Kind::Float32, {50, 3});
  const RowLayout book = layout_of(Kind::Float32, {6, 2});
  std::vector<Golden> all = {
      {"raw", "raw", layout_of(Kind::Int16, {}), 50, item_rows<std::int16_t>(50)},
      {"lz4", "lz4", layout_of(Kind::Int32, {}), 300, item_rows<std::int32_t>(300)},
      {"zstd", "zstd", layout_of(Kind::UInt8, {7}), 100, item_rows<std::uint8_t>(700)},
      {"planes_lz4", "planes+lz4", layout_of(Kind::Float64, {5}), 60, item_rows<double>(300)},
      {"planes_zstd", "planes+zstd", layout_of(Kind::Complex64, {3}), 50, item_rows<float>(300)},
      {"okx_ob_f32_lz4", "okx_ob_f32+lz4", okx, 34, book_rows(34, 50, 3)},
      {"okx_ob_f32_zstd", "okx_ob_f32+zstd", okx, 34, book_rows(34, 50, 3)},
      {"okx_ob_f16_lz4", "okx_ob_f16+lz4", okx, 4, book_rows(4, 50, 3), {true, Normalise::None, 1}},
      {"okx_ob_f16_zstd", "okx_ob_f16+zstd", okx, 4, book_rows(4, 50, 3), {true, Normalise::Mid, 3}},
      {"generic_ob_lz4", "generic_ob+lz4", layout_of(Kind::Int16, {4, 3}), 70, item_rows<std::int16_t>(840)},
      {"generic_ob_zstd", "generic_ob+zstd", layout_of(Kind::Float64, {4, 2}), 70, item_rows<double>(560)},
      {"generic_ob_f16_lz4", "generic_ob+lz4", book, 40, book_rows(40, 6, 2), {true, Normalise::Mid, 0.7f}},
      {"generic_ob_f16_zstd", "generic_ob+zstd", book, 40, book_rows(40, 6, 2), {true, Normalise::None, 7}},
  };
  for (const auto& some :
       {numeric_goldens(), more_numeric_goldens(), levels_goldens(), ladder_goldens(), coded_goldens()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void write_new(const std::filesystem::path& path, Bytes bytes) {
  if (std::filesystem::exists(path)) return;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

TEST(Golden, OldRecordsDecodeToTheirRows) {
  const std::filesystem::path folder = std::filesystem::path(CDD_SOURCE_DIR) / "tests" / "golden";
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(golden.name);
    const std::filesystem::path path = folder / (std::string(golden.name) + ".record");
    const std::filesystem::path rows_path = folder / (std::string(golden.name) + ".rows");
    if (std::getenv("CDD_WRITE_GOLDEN") != nullptr) {
      Scheme scheme = schemes_for(golden.codec, golden.layout, 3, golden.float16).at(0);
      scheme.smallest = scheme.coded = golden.coded;
      const Buffer record = encode_record(golden.layout, golden.rows, golden.n_rows, scheme);
      write_new(path, record);
      if (golden.float16.enabled || golden.keeps_rows)
        write_new(rows_path, decode_record(golden.layout, golden.n_rows, record, {0, golden.n_rows}));
    }
    const Buffer record = read_file(path);
    EXPECT_LT(record.size(), 3072u);
    const Buffer expected = golden.float16.enabled || golden.keeps_rows ? read_file(rows_path) : golden.rows;
    Bytes payload;
    const RecordHeader header = parse_record(record, &payload);
    EXPECT_EQ(codec_name(header.type, header.flags), golden.codec);
    for (const RowRange range : ranges_of(golden.n_rows)) {
      for (const Verify verify : {Verify::Stored, Verify::Full}) {
        EXPECT_TRUE(same(decode_record(golden.layout, golden.n_rows, record, range, verify),
                         slice(expected, golden.layout, range)));
      }
    }
  }
}

}  // namespace
}  // namespace cdd::test
