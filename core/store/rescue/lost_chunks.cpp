#include "core/store/rescue/lost_chunks.h"

#include <algorithm>

#include "core/store/rescue/damaged_index.h"

namespace cdd {
namespace {

struct FileBytes {};

// Whether bytes that are not zero follow what the file is known to hold.
bool more_follows(const Storage& storage, const Header& header, const std::vector<WholeRecord>& records) {
  const BlockGeometry geometry = header.metadata.geometry();
  std::uint64_t at = header.first_block + geometry.block_bytes(0);
  if (!records.empty()) {
    // One that is out of place may stand behind the last.
    const auto end_of = [](const WholeRecord& record) { return record.offset + record.size; };
    at = end_of(*std::ranges::max_element(records, {}, end_of));
    const WholeRecord& last = records.back();
    const std::uint64_t k = geometry.block_of(last.chunk + 1);
    if (geometry.first_chunk(k) == last.chunk + 1 && at == end_of(last))
      at = align_block(at) + geometry.block_bytes(k);
  }
  for (Bytes bytes; !(bytes = storage.read_at(at, 1 << 16, scratch<FileBytes>())).empty();) {
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; }))
      return true;
    at += bytes.size();
  }
  return false;
}

// The first row of each record in the file as it was, as far as slots or records beside it tell.
std::vector<std::optional<std::uint64_t>> first_rows(const DamagedIndex& index,
                                                     const std::vector<WholeRecord>& records) {
  std::vector<std::optional<std::uint64_t>> begins(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto slot = index.chunk(records[i].chunk);
    if (slot && slot->row_end >= records[i].n_rows) {
      begins[i] = slot->row_end - records[i].n_rows;
    } else if (records[i].chunk == 0) {
      begins[i] = 0;
    } else if (i > 0 && begins[i - 1] && records[i].chunk == records[i - 1].chunk + 1) {
      begins[i] = *begins[i - 1] + records[i - 1].n_rows;
    }
  }
  for (std::size_t i = records.size(); i-- > 1;) {
    if (!begins[i - 1] && begins[i] && records[i].chunk == records[i - 1].chunk + 1 &&
        *begins[i] >= records[i - 1].n_rows) {
      begins[i - 1] = *begins[i] - records[i - 1].n_rows;
    }
  }
  return begins;
}

}  // namespace

std::vector<LostChunks> lost_chunks(const Storage& storage, const Header& header,
                                    const std::vector<WholeRecord>& records) {
  const DamagedIndex index(storage, header, records);
  const auto begins = first_rows(index, records);
  std::vector<LostChunks> lost;
  std::uint64_t next = 0;
  std::optional<std::uint64_t> row = 0;  // of the file as it was, where chunk `next` begins
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].chunk > next) lost.push_back({next, records[i].chunk - next, row, begins[i]});
    row = begins[i];
    if (row) *row += records[i].n_rows;
    next = records[i].chunk + 1;
  }
  const DamagedIndex::End end = index.end();
  const bool named = end.chunks > next;
  if (named) {
    lost.push_back({next, end.chunks - next, row, end.rows});
    next = end.chunks;
    row = end.rows;
  }
  if (end.cut || (!named && !end.closed && more_follows(storage, header, records)))
    lost.push_back({next, 0, row, std::nullopt});
  return lost;
}

}  // namespace cdd
