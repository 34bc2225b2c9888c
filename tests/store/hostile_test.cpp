// Files whose checks hold and whose numbers lie: what a stranger can write who knows the format. They may
// carry wrong rows, but must not crash, hang, read or write outside, or allocate for more than the limits.
#include <gtest/gtest.h>

#include "core/store/reader.h"
#include "core/store/writer.h"
#include "tests/rig/small_store.h"

namespace cdd {
namespace {

constexpr std::uint64_t kSalt = 0x5a5a5a5a5a5a5a5a;  // make_small_store's
constexpr std::uint32_t kCommit = slot_flags::kCommit | slot_flags::kSynced;

RowLayout layout() {
  static const std::uint32_t kDims[] = {4};
  return RowLayout(Kind::Int32, kDims);
}

// Writes a slot with a good check at position `at` of block 0.
void forge(SmallStore& store, std::uint64_t at, const Slot& slot, std::uint64_t key) {
  put_slot(slot, kSalt, key, store.image.data() + store.first_block + kBlockHeaderBytes + kSlotBytes * at);
}

// Everything a reader can be asked. Errors are fine.
void exercise(const SmallStore& made) {
  ReaderOptions options;
  options.max_chunk_raw_bytes = 1 << 20;
  const auto ignore_errors = [](auto&& call) {
    try {
      call();
    } catch (const Error&) {
    }
  };
  ignore_errors([&] {
    Reader reader(std::make_shared<ViewStorage>(made.image, "hostile"), options);
    const std::uint64_t row_bytes = std::max(1u, reader.layout().row_bytes());
    std::vector<std::byte> out(5 * row_bytes);
    const std::uint64_t rows = reader.rows();
    for (const std::uint64_t first : {std::uint64_t{0}, rows / 2, rows - std::min<std::uint64_t>(rows, 5)}) {
      ignore_errors([&] { reader.read_into({first, 5}, out); });
      const std::uint64_t starts[] = {first};
      ignore_errors([&] { reader.read_windows(starts, 5, out); });
    }
    // A range whose size in bytes wraps around to that of the buffer.
    ignore_errors([&] { reader.read_into({0, ~std::uint64_t{0} / row_bytes + 1}, {}); });
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(reader.chunks(), 100); ++i) {
      ignore_errors([&] { reader.chunk_info(i); });
      ignore_errors([&] { reader.verify_chunk(i); });
    }
    reader.refresh();
  });
  ignore_errors([&] {
    const auto storage = std::make_shared<MemoryStorage>();
    storage->write_at(0, Bytes(made.image));
    Writer::open(storage, {});
  });
}

// Row numbers that no index type of Python or of C has, in a chunk's slot, a link and a clean close.
TEST(Hostile, MoreRowsThanThereAreNumbers) {
  for (const std::uint64_t rows : {kMaxRows + 1, ~std::uint64_t{0} - 3, ~std::uint64_t{0}}) {
    for (const bool link : {false, true}) {
      SmallStore made = make_small_store(layout(), 10, 6, true);
      if (link) forge(made, 4, {0, rows, 0, 0, slot_flags::kLink | slot_flags::kSynced}, kLinkKey);
      const PendingChunk& last = made.chunks[3];
      forge(made, 3, {last.record_offset, rows, last.record_bytes, last.record_check, slot_flags::kEnd}, 3);
      exercise(made);
      try {
        const Reader reader(std::make_shared<ViewStorage>(made.image, "hostile"));
        EXPECT_LE(reader.rows(), 60u);
      } catch (const Error&) {
      }
    }
    SmallStore made = make_small_store(layout(), 10, 3, true);
    forge(made, 3, {made.image.size(), rows, 0, 3, kCommit}, 3);
    exercise(made);
    EXPECT_EQ(Reader(std::make_shared<ViewStorage>(made.image, "hostile")).rows(), 30u);
  }
  SmallStore made = make_small_store(layout(), 10, 3, true);
  const PendingChunk& last = made.chunks[2];
  forge(made, 2, {last.record_offset, kMaxRows, last.record_bytes, last.record_check, slot_flags::kEnd}, 2);
  EXPECT_EQ(Reader(std::make_shared<ViewStorage>(made.image, "hostile")).rows(), kMaxRows);
}

TEST(Hostile, ACleanCloseOfRowsWithoutChunks) {
  for (const std::uint64_t rows : {std::uint64_t{1}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    SmallStore made = make_small_store(layout(), 2, 1, true, 8);
    for (std::uint64_t at = 0; at < 9; ++at)
      std::memset(made.image.data() + made.first_block + 22 + 32 * at, 0, 32);
    forge(made, 0, {made.image.size(), rows, 0, 0, kCommit}, 0);
    Reader reader(std::make_shared<ViewStorage>(made.image, "hostile"));
    EXPECT_EQ(reader.rows(), 0u);
    exercise(made);
  }
}

TEST(Hostile, ACleanCloseOfMoreRowsThanTheChunksHave) {
  for (const std::uint64_t rows : {std::uint64_t{7}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    SmallStore made = make_small_store(layout(), 2, 3, true, 8);
    forge(made, 3, {made.image.size(), rows, 0, 3, kCommit}, 3);
    exercise(made);
    Reader reader(std::make_shared<ViewStorage>(made.image, "hostile"));
    std::vector<std::byte> out(7 * layout().row_bytes());
    const std::uint64_t starts[] = {0};
    EXPECT_THROW(reader.read_windows(starts, 7, out), Error);
    EXPECT_THROW(reader.read_into({0, 7}, out), Error);
  }
}

TEST(Hostile, SlotsThatPointAnywhere) {
  const std::uint64_t odd[] = {0,
                               1,
                               43,
                               64,
                               1u << 20,
                               std::uint64_t{1} << 31,
                               std::uint64_t{1} << 62,
                               ~std::uint64_t{0} - 100,
                               ~std::uint64_t{0}};
  for (const std::uint64_t offset : odd) {
    for (const std::uint64_t row_end : odd) {
      for (const std::uint64_t size : {0u, 44u, 100u, 0x80000000u, 0xffffffffu}) {
        SmallStore made = make_small_store(layout(), 2, 5, false, 8);
        forge(made, 2,
              {offset, row_end, static_cast<std::uint32_t>(size), 1, slot_flags::kEnd | slot_flags::kSynced},
              2);
        exercise(made);
      }
    }
  }
}

TEST(Hostile, LinksThatPointAnywhere) {
  const SmallStore good = make_small_store(layout(), 2, 5, true, 4);
  for (const std::uint64_t offset :
       {std::uint64_t{0}, good.first_block, good.first_block + 22 + 32 * 5, std::uint64_t{good.image.size()},
        ~std::uint64_t{0}, ~std::uint64_t{0} - 200}) {
    for (const std::uint64_t rows : {std::uint64_t{0}, ~std::uint64_t{0}}) {
      SmallStore made = good;
      forge(made, 4, {offset, rows, 0, 0, slot_flags::kLink}, kLinkKey);
      exercise(made);
    }
  }
}

// A header may allow smaller chunks than this writer makes, and ask for larger ones than it allows.
TEST(Hostile, AWriterMakesNoChunksThatTheHeaderForbids) {
  for (const std::uint32_t hint : {0u, 1u << 31}) {
    Metadata metadata;
    metadata.salt.fill(std::byte{0x5a});
    metadata.layout = layout();
    metadata.chunk_rows = hint;
    metadata.max_chunk_raw_bytes = 1000;
    const auto storage = std::make_shared<MemoryStorage>();
    const auto header = encode_header(metadata, {});
    storage->write_at(0, Bytes(header));
    IndexWriter::create(*storage, metadata, header.size()).close();
    const auto rows = small_rows(layout(), 5000, 3);
    const auto writer = Writer::open(storage, {});
    writer->append(layout(), rows, 5000);
    writer->close();
    std::vector<std::byte> found(rows.size());
    Reader(storage).read_into({0, 5000}, found);
    EXPECT_EQ(found, rows);
    WriterOptions options;
    options.chunk_rows = 100;
    EXPECT_THROW(Writer::open(storage, options), Error);
  }
}

// Another process may cut the file between any two looks at it, as one does that takes an append back.
class ShrinkingStorage final : public ViewStorage {
 public:
  ShrinkingStorage(Bytes bytes, int whole_reads) : ViewStorage(bytes, "shrinking"), left_(whole_reads) {}
  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override {
    const std::uint64_t size = left_-- > 0 ? ViewStorage::size() : 1000;
    return ViewStorage::read_at(
        offset, static_cast<std::size_t>(std::min<std::uint64_t>(n, size - std::min(offset, size))), scratch);
  }

 private:
  mutable int left_;
};

TEST(Hostile, AFileThatIsCutWhileItIsOpened) {
  SmallStore made = make_small_store(layout(), 2, 30, false, 8);
  made.image.resize(made.image.size() + 100'000);
  forge(made, 5, {}, 0);  // no slot: what follows is looked for
  for (int reads = 0; reads < 60; ++reads) {
    const auto storage = std::make_shared<ShrinkingStorage>(Bytes(made.image), reads);
    try {
      Reader reader(storage);
      reader.refresh();
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace cdd
