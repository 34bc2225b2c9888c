// Parts of rows: each codec, with and without its own way to them, against the rows themselves; and a reader
// of them, from chunks and windows, with every check.
#include "core/codec/cells.h"

#include <set>

#include "core/codec/scheme.h"
#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "core/threads/for_each.h"
#include "tests/rig/codec_rig.h"

namespace cdd::test {
namespace {

// The same by item numbers, one at a time.
Buffer picked(const RowLayout& layout, Bytes rows, RowRange range, const Cells& cells) {
  Buffer out;
  const std::size_t bytes = layout.item_bytes();
  for (std::uint64_t row = range.first; row < range.first + range.count; ++row) {
    for (std::size_t level = cells.level_begin; level < cells.level_end; level += cells.level_step) {
      for (std::size_t feature = cells.feature_begin; feature < cells.feature_end; ++feature) {
        const std::size_t item = (row * layout.levels() + level) * layout.features() + feature;
        const Bytes found = rows.subspan(item * bytes, bytes);
        out.insert(out.end(), found.begin(), found.end());
      }
    }
  }
  return out;
}

std::vector<Cells> some_cells(const RowLayout& layout) {
  const std::uint32_t levels = layout.levels(), features = layout.features();
  std::vector<Cells> all{{0, levels, 0, 1},
                         {0, 1, 0, features},
                         {levels - 1, levels, features - 1, features},
                         {levels / 2, levels, 0, features},
                         {0, levels, features / 2, features},
                         {levels / 3, levels / 3 + 1, features / 2, features / 2 + 1},
                         {0, levels, 0, features, levels - 1},
                         {levels / 3, levels, features / 2, features, 2},
                         {0, levels - 1, 0, 1, 3}};
  std::erase_if(all, [&](const Cells& cells) { return cells_bytes(layout, &cells) == layout.row_bytes(); });
  return all;
}

Buffer rows_of(const RowLayout& layout, std::uint32_t n_rows) {
  Buffer rows = random_bytes(std::size_t{n_rows} * layout.row_bytes(), n_rows);
  for (std::size_t i = layout.row_bytes(); i < rows.size(); ++i) {
    if (i % 7 != 0) rows[i] = rows[i - layout.row_bytes()];
  }
  return rows;
}

std::vector<RowLayout> layouts() {
  const std::uint32_t book[] = {50, 3}, other[] = {7, 4}, cube[] = {3, 2, 5}, line[] = {9};
  return {{Kind::Float32, book},   {Kind::Float64, other},    {Kind::Int16, other},  {Kind::UInt8, line},
          {Kind::Complex64, cube}, {Kind::Complex128, other}, {Kind::Float64, line}, {Kind::UInt32, book}};
}

// The lossless ones: "auto" and the books of XORed rows, which are only had by name.
std::vector<Scheme> all_schemes(const RowLayout& layout) {
  std::vector<Scheme> schemes = schemes_for("auto", layout);
  for (const char* name : {"okx_ob_f32", "generic_ob"}) {
    try {
      for (const Scheme& scheme : schemes_for(name, layout)) schemes.push_back(scheme);
    } catch (const Error&) {
      continue;  // it does not suit these rows
    }
  }
  return schemes;
}

TEST(Cells, EveryCodecGivesThoseOfItsRows) {
  constexpr std::uint32_t kRows = 150;
  std::set<CodecId> seen;
  for (const RowLayout& layout : layouts()) {
    const Buffer rows = rows_of(layout, kRows);
    for (const Scheme& scheme : all_schemes(layout)) {
      const Buffer record = encode_record(layout, rows, kRows, scheme);
      if (record.empty()) continue;
      seen.insert(scheme.codec->id);
      Buffer padded = record;
      padded.resize(record.size() + kScratchPadding);
      for (const Cells& cells : some_cells(layout)) {
        for (const RowRange range : ranges_of(kRows)) {
          for (const Verify verify : {Verify::None, Verify::Full}) {
            const Buffer expected = picked(layout, rows, range, cells);
            Buffer out(expected.size());
            decode_chunk_rows(layout, Bytes(padded).first(record.size()), {7, 3}, verify, kRows, range,
                              out.data(), &cells);
            ASSERT_EQ(out, expected) << to_string(layout) << " by " << scheme.codec->name;
          }
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), codecs().size() - 1) << "all but the lossy one";
}

// Chunks longer than a block of rows, of codecs that make rows only.
TEST(Cells, OfManyBlocks) {
  const std::uint32_t dims[] = {50, 3};
  const RowLayout layout(Kind::Float32, dims);
  constexpr std::uint32_t kRows = 9000;  // 5.4 MB
  const Buffer rows = rows_of(layout, kRows);
  for (const char* name : {"okx_ob_f32+lz4", "planes+lz4"}) {
    const Buffer record = encode_record(layout, rows, kRows, schemes_for(name, layout).front());
    Buffer padded = record;
    padded.resize(record.size() + kScratchPadding);
    for (const RowRange range : {RowRange{0, kRows}, RowRange{17, 5000}}) {
      const Cells cells{20, 30, 1, 3};
      const Buffer expected = picked(layout, rows, range, cells);
      Buffer out(expected.size());
      decode_chunk_rows(layout, Bytes(padded).first(record.size()), {7, 3}, Verify::Stored, kRows, range,
                        out.data(), &cells);
      ASSERT_EQ(out, expected) << name;
    }
  }
}

class CellsOfAStore : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override { set_threads(GetParam()); }
  void TearDown() override { set_threads(0); }
};
INSTANTIATE_TEST_SUITE_P(Threads, CellsOfAStore, ::testing::Values(1, 3));

TEST_P(CellsOfAStore, RangesAndWindows) {
  const std::uint32_t dims[] = {50, 3};
  const RowLayout layout(Kind::Float32, dims);
  constexpr std::uint32_t kRows = 8000;  // 4.8 MB: worth several threads
  const Buffer rows = rows_of(layout, kRows);
  for (const char* codec : {"auto", "raw", "planes+zstd"}) {
    const auto memory = std::make_shared<MemoryStorage>();
    WriterOptions options;
    options.codec = codec;
    const auto writer = Writer::create(memory, options);
    writer->append(layout, rows, kRows);
    writer->close();
    for (const Verify verify : {Verify::Stored, Verify::Full}) {
      const Reader reader(memory, {verify});
      for (const Cells& cells : some_cells(layout)) {
        for (const RowRange range :
             {RowRange{0, kRows}, RowRange{5, 1}, RowRange{77, 3000}, RowRange{9, 0}}) {
          const Buffer expected = picked(layout, rows, range, cells);
          Buffer out(expected.size());
          reader.read_into(range, out, &cells);
          ASSERT_EQ(out, expected) << codec;
        }
        const std::uint64_t starts[] = {400, 7, 7, 390, kRows - 100, 2000};
        Buffer expected;
        for (const std::uint64_t start : starts) {
          const Buffer window = picked(layout, rows, {start, 100}, cells);
          expected.insert(expected.end(), window.begin(), window.end());
        }
        Buffer out(expected.size());
        reader.read_windows(starts, 100, out, &cells);
        ASSERT_EQ(out, expected) << codec;
      }
    }
  }
}

TEST(Cells, OutsideOfARowAreRefused) {
  const std::uint32_t dims[] = {4, 3};
  const RowLayout layout(Kind::Float32, dims);
  const auto memory = std::make_shared<MemoryStorage>();
  const auto writer = Writer::create(memory, {});
  writer->append(layout, rows_of(layout, 10), 10);
  writer->close();
  const Reader reader(memory);
  Buffer out(10 * layout.row_bytes());
  const Cells all{0, 4, 0, 3};
  reader.read_into({0, 10}, out, &all);
  EXPECT_EQ(out, rows_of(layout, 10));
  const std::uint64_t starts[] = {0};
  for (const Cells& cells : {Cells{0, 5, 0, 3}, Cells{0, 4, 0, 4}, Cells{2, 2, 0, 3}, Cells{3, 2, 0, 3},
                             Cells{0, 4, 1, 0}, Cells{0, ~0u, 0, 3}, Cells{0, 4, 0, 3, 0}}) {
    EXPECT_THROW(reader.read_into({0, 10}, out, &cells), Error);
    EXPECT_THROW(reader.read_windows(starts, 10, out, &cells), Error);
  }
  const Cells some{0, 2, 0, 3};
  EXPECT_THROW(reader.read_into({0, 10}, out, &some), Error);  // out is longer
}

}  // namespace
}  // namespace cdd::test
