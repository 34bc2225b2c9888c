// libFuzzer target: open, read, recover and append to arbitrary bytes. Its mutator repairs the checks of what
// it changed, so that the numbers behind them get their turn.
#include <random>

#include "core/base/hash.h"
#include "core/store/block_walk.h"
#include "tests/fuzz/open_all.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace cdd {
namespace {

using Random = std::minstd_rand;

std::uint32_t odd_number(Random& random) {
  static constexpr std::uint32_t kOdd[] = {0, 1, 2, 7, 8, 255, 65535, 1u << 20, 1u << 31, ~0u};
  return random() % 2 == 0 ? kOdd[random() % std::size(kOdd)] : static_cast<std::uint32_t>(random());
}

void change_metadata(Metadata& metadata, Random& random) {
  std::uint32_t dims[3] = {1 + static_cast<std::uint32_t>(random()) % 64,
                           1 + static_cast<std::uint32_t>(random()) % 4, 1};
  switch (random() % 4) {
    case 0:
      metadata.first_capacity = 1u << random() % 21;
      break;
    case 1:
      succeeds([&] {
        metadata.layout = RowLayout(DType(static_cast<Kind>(random() % 18)), {dims, random() % 4});
      });
      break;
    case 2:
      metadata.layout = {};
      break;
    default:
      metadata.chunk_rows = odd_number(random);
  }
}

// Makes the check of the slot at `at` hold, and of the record that it names, within `file`.
void repair_slot(std::vector<std::byte>& file, std::uint64_t at, std::uint64_t key, std::uint64_t salt) {
  std::byte* const p = file.data() + at;
  if (is_zero_slot(p)) return;
  Slot slot{load<std::uint64_t>(p), load<std::uint64_t>(p + 8), load<std::uint32_t>(p + 16),
            load<std::uint32_t>(p + 20), load<std::uint32_t>(p + 24)};
  const bool there = slot.is_chunk() && slot.size >= kMinRecordBytes && slot.offset <= file.size() &&
                     slot.size <= file.size() - slot.offset;
  if (there) {
    const Bytes record =
        Bytes(file).subspan(static_cast<std::size_t>(slot.offset), slot.size - kRecordCheckBytes);
    slot.record_check = check32(CheckDomain::Record, salt, key, record);
    store<std::uint32_t>(file.data() + slot.offset + record.size(), slot.record_check);
  }
  put_slot(slot, salt, key, file.data() + at);
}

// Repairs the checks of all slots in blocks that the links lead to.
void repair(std::vector<std::byte>& file, const Header& header) {
  const BlockGeometry geometry = header.metadata.geometry();
  std::uint64_t block = header.first_block;
  for (std::uint64_t k = 0; k < 20; ++k) {
    const std::uint64_t bytes = geometry.block_bytes(k);
    if (block > file.size() || bytes > file.size() - block) return;
    const std::uint32_t capacity = geometry.capacity(k);
    for (std::uint32_t i = 0; i <= capacity; ++i) {
      const std::uint64_t key = i == capacity ? kLinkKey | k : geometry.first_chunk(k) + i;
      repair_slot(file, block + kBlockHeaderBytes + kSlotBytes * i, key, header.metadata.check_salt());
    }
    const std::uint64_t next =
        load<std::uint64_t>(file.data() + block + kBlockHeaderBytes + kSlotBytes * capacity);
    if (next <= block) return;
    block = next;
  }
}

std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  Random random(seed);
  std::vector<std::byte> file(as_bytes(data), as_bytes(data) + size);
  Header header;
  const ViewStorage view(file, "fuzzed");
  const bool known = succeeds([&] { header = read_header(view); });
  if (!known || random() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);

  std::vector<std::byte> body(
      file.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(header.first_block, size)),
      file.end());
  if (random() % 16 == 0) {
    change_metadata(header.metadata, random);
  } else if (!body.empty() && random() % 2 == 0) {
    // One number of one slot or record.
    const std::size_t at = random() % body.size() / 4 * 4 + 2;
    if (at + 4 <= body.size()) store<std::uint32_t>(body.data() + at, odd_number(random));
  } else {
    const std::size_t room =
        max_size > header.first_block ? max_size - static_cast<std::size_t>(header.first_block) : 0;
    body.resize(std::max(body.size(), room));
    const std::size_t bytes =
        size > header.first_block ? size - static_cast<std::size_t>(header.first_block) : 0;
    body.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(body.data()), bytes, body.size()));
  }
  file = encode_header(header.metadata, header.user_meta);
  header.first_block = file.size();
  file.insert(file.end(), body.begin(), body.end());
  if (random() % 8 != 0) repair(file, header);
  file.resize(std::min(file.size(), max_size));
  std::copy(file.begin(), file.end(), as_bytes(static_cast<void*>(data)));
  return file.size();
}

}  // namespace
}  // namespace cdd

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return cdd::mutate(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cdd::open_all({cdd::as_bytes(data), size});
  return 0;
}
