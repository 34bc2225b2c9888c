#include "core/store/rescue/salvage.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/hash.h"
#include "core/codec/chunk_codec.h"
#include "core/store/rescue/damaged_index.h"
#include "core/store/rescue/lost_chunks.h"

namespace cdd {
namespace {

struct RecordBytes {};
struct SalvagedRows {};

constexpr std::size_t kWindowBytes = std::size_t{1} << 20;  // looked through per read
constexpr std::size_t kDtypeAt = 4 + 2;
constexpr std::size_t kHeadBytes = record_header_bytes(kMaxRowDims);
constexpr std::uint64_t kLargestChunks = 2;  // so much work for what claims to be one

// Whether a record can begin with `head`: few of 2^100 random bytes pass, and zeros fail at once.
bool may_begin_record(Bytes head, const RowLayout& layout, std::uint64_t left) {
  const auto size = load<std::uint32_t>(head.data());
  if (size < kMinRecordBytes || size > left) return false;
  const auto flags = load<std::uint64_t>(head.data() + kRecordFlagsAt);
  const std::uint64_t always = chunk_flags::kRecordCheck | chunk_flags::kLittleEndian;
  if ((flags & always) != always || (flags & ~chunk_flags::kKnown) != 0) return false;
  if (!layout.is_set()) return true;
  std::byte expected[kHeadBytes];
  RecordHeader like;
  like.layout = layout;
  like.n_rows = load<std::uint32_t>(head.data() + kRecordFixedBytes);
  const std::size_t bytes = put_record_header(like, expected);
  // dtype, rows, dimensions and the zero behind them.
  return like.n_rows > 0 && bytes <= head.size() &&
         load<std::uint16_t>(head.data() + kDtypeAt) == layout.dtype().code() &&
         std::equal(expected + kRecordFixedBytes, expected + bytes, head.data() + kRecordFixedBytes);
}

// The numbers of chunks that no record has yet, as runs [first, end), the last of which is endless.
class FreeNumbers {
 public:
  bool has(std::uint64_t number) const { return at_or_after(number) == number; }

  std::uint64_t at_or_after(std::uint64_t number) const {
    const auto above = runs_.upper_bound(number);
    return above != runs_.begin() && number < std::prev(above)->second ? number : above->first;
  }

  std::optional<std::uint64_t> before(std::uint64_t number) const {
    const auto above = runs_.lower_bound(number);
    if (above == runs_.begin()) return std::nullopt;
    return std::min(number, std::prev(above)->second) - 1;
  }

  void take(std::uint64_t number) {
    const auto run = std::prev(runs_.upper_bound(number));
    const std::uint64_t end = run->second;
    run->second = number;
    if (run->first == number) runs_.erase(run);
    if (number + 1 < end) runs_.emplace(number + 1, end);
  }

 private:
  std::map<std::uint64_t, std::uint64_t> runs_{{0, ~std::uint64_t{0}}};
};

class Scan {
 public:
  Scan(const Storage& storage, std::uint64_t max_raw_bytes, const Progress& progress)
      : storage_(storage), file_bytes_(storage.size()), progress_(progress) {
    found_.header = read_header(storage);
    found_.layout = found_.header.metadata.layout;
    salt_ = found_.header.metadata.check_salt();
    max_raw_bytes_ = std::min(max_raw_bytes, found_.header.metadata.max_chunk_raw_bytes);
    work_left_ = kWorkPerFileByte * file_bytes_ + kLargestChunks * max_raw_bytes_;
    end_ = found_.header.first_block;
  }

  Salvage run() {
    take_indexed();
    const std::vector<WholeRecord> indexed = found_.records;
    std::uint64_t at = found_.header.first_block;
    for (const WholeRecord& record : indexed) {
      look_between(at, record.offset);
      at = follow(record);
    }
    look_between(at, file_bytes_);
    take_strays();
    check_addressable(most_raw_bytes_, 0);  // what this build cannot decode is not for it to call lost
    std::ranges::sort(found_.records, {}, &WholeRecord::chunk);
    found_.lost = lost_chunks(storage_, found_.header, found_.records);
    return std::move(found_);
  }

 private:
  // What slots point at comes first, so that nothing that was moved can take its number or its place.
  void take_indexed() {
    const DamagedIndex index(storage_, found_.header, {});
    for (std::uint64_t k = 0; k < index.blocks(); ++k) {
      std::uint64_t position = 0;
      for (std::vector<std::optional<Slot>> slots; !(slots = index.slots(k, position)).empty();) {
        for (const auto& slot : slots) {
          if (slot && slot->is_chunk()) take_named(index.geometry().first_chunk(k) + position, *slot);
          ++position;
        }
      }
    }
  }

  void take_named(std::uint64_t chunk, const Slot& slot) {
    named_ = std::max(named_, chunk);
    if (slot.offset < end_ || slot.offset >= file_bytes_ || slot.size < kMinRecordBytes) return;
    const Bytes record = record_at(slot.offset, slot.size);
    if (record.empty() || !spend(slot.size)) return;
    if (!holds(record, chunk) || !may_begin_record(record, found_.layout, slot.size)) return;
    const std::optional<RecordHeader> header = decode(record);
    if (!header) return;
    work_left_ += slot.size + raw_bytes(*header);
    place(chunk, slot.offset, *header);
  }

  // Records in [begin, end), where no slot leads to one.
  void look_between(std::uint64_t begin, std::uint64_t end) {
    Bytes window;
    std::uint64_t window_at = 0;
    for (std::uint64_t at = align_up(begin, kRecordAlignment); at + kMinRecordBytes <= end;) {
      at_ = at;
      if (window.empty() ||
          (at + kHeadBytes > window_at + window.size() && window_at + window.size() < end)) {
        window_at = at;
        tell(progress_, at_, file_bytes_);
        window = storage_.read_at(
            at, static_cast<std::size_t>(std::min<std::uint64_t>(kWindowBytes, end - at)), window_);
      }
      if (at + kMinRecordBytes > window_at + window.size()) break;
      const Bytes head = window.subspan(static_cast<std::size_t>(at - window_at));
      const bool taken = may_begin_record(head, found_.layout, end - at) && take(at, head);
      at = align_up(at + (taken ? load<std::uint32_t>(head.data()) : 1), kRecordAlignment);
    }
  }

  // False where there is none, or its rows are not whole.
  bool take(std::uint64_t at, Bytes head) {
    const Bytes record = record_at(at, load<std::uint32_t>(head.data()));
    const std::optional<RecordHeader> header = record.empty() ? std::nullopt : decode(record);
    if (!header) {
      ++refused_;
      return false;
    }
    const std::uint64_t guess = follows_ + (at - follows_at_) / mean_record_bytes(record.size());
    if (const auto number = number_of(record, guess, highest_at(at))) {
      work_left_ += header->size + raw_bytes(*header);
      follow(place(*number, at, *header));
    } else {
      ++refused_;
      strays_.push_back({0, at, header->size, header->n_rows});
    }
    return true;
  }

  // Those that stand before their neighbours: how many there are is known now.
  void take_strays() {
    for (const WholeRecord& stray : strays_) {
      const Bytes record = record_at(stray.offset, stray.size);
      if (record.empty() || !may_begin_record(record, found_.layout, stray.size)) continue;
      refused_ = 0;
      Bytes payload;
      if (const auto number = number_of(record, follows_, highest_at(file_bytes_)))
        follow(place(*number, stray.offset, parse_record(record, &payload)));
    }
  }

  const WholeRecord& place(std::uint64_t number, std::uint64_t at, const RecordHeader& header) {
    found_.layout = header.layout;
    found_.records.push_back({number, at, header.size, header.n_rows});
    found_.rows += header.n_rows;
    record_bytes_ += header.size;
    free_.take(number);
    if (number >= next_) {
      next_ = number + 1;
      end_ = at + header.size;
    }
    if ((header.flags & chunk_flags::kBatchCont) == 0)
      found_.whole_end = std::max(found_.whole_end, number + 1);
    return found_.records.back();
  }

  // The records behind this one are expected to be the next ones. Returns where it ends.
  std::uint64_t follow(const WholeRecord& record) {
    follows_ = record.chunk + 1;
    follows_at_ = record.offset + record.size;
    refused_ = 0;
    return follows_at_;
  }

  Bytes record_at(std::uint64_t at, std::uint32_t size) const {
    const Bytes record = storage_.read_at(at, size, scratch<RecordBytes>());
    return record.size() == size ? record : Bytes{};
  }

  static std::uint64_t raw_bytes(const RecordHeader& header) {
    return std::uint64_t{header.n_rows} * header.layout.row_bytes();
  }

  // The header of a record whose rows are what their hash says.
  std::optional<RecordHeader> decode(Bytes record) {
    try {
      Bytes payload;
      const RecordHeader header = parse_record(record, &payload);
      const std::uint64_t bytes = raw_bytes(header);
      most_raw_bytes_ = std::max(most_raw_bytes_, std::min(bytes, max_raw_bytes_));
      if (bytes > std::min(max_raw_bytes_, kAddressableChunkBytes) || !spend(record.size() + bytes))
        return std::nullopt;
      const MutableBytes rows =
          scratch<SalvagedRows>().get(static_cast<std::size_t>(bytes)).first(static_cast<std::size_t>(bytes));
      decode_chunk_rows(header.layout, record, {}, Verify::None, header.n_rows, {0, header.n_rows},
                        rows.data());
      if (hash128(rows) == header.hash) return header;
    } catch (const Error& error) {
      // Of no damage: the disk failed, or progress() ended the work, which spend() asks.
      if (error.code() == ErrorCode::Io || error.code() == ErrorCode::Cancelled) throw;
    }
    return std::nullopt;
  }

  // The number for which the record's check holds, of those that are not taken: the one after the last
  // record, or, where records are damaged, gone or out of place, any up to `most`, from the most likely
  // outwards.
  std::optional<std::uint64_t> number_of(Bytes record, std::uint64_t guess, std::uint64_t most) {
    const std::uint64_t expected = follows_ + refused_;
    if (expected <= most && free_.has(expected) && holds(record, expected)) return expected;
    guess = std::min(guess, most);
    std::optional<std::uint64_t> below = free_.before(guess);
    for (std::uint64_t above = free_.at_or_after(guess); above <= most || below;) {
      if (!spend(2 * record.size())) break;
      if (above <= most) {
        if (holds(record, above)) return above;
        above = free_.at_or_after(above + 1);
      }
      if (below) {
        if (holds(record, *below)) return below;
        below = free_.before(*below);
      }
    }
    return std::nullopt;
  }

  // The highest number that a record can have which ends before `at` and is not out of place: slots tell, or
  // as many records as fit behind the highest that was found.
  std::uint64_t highest_at(std::uint64_t at) const {
    return std::max(named_, next_ + (at > end_ ? (at - end_) / kMinRecordBytes : 0));
  }

  std::uint64_t mean_record_bytes(std::uint64_t otherwise) const {
    const std::size_t n = found_.records.size();
    return n == 0 ? otherwise : record_bytes_ / n;
  }

  bool holds(Bytes record, std::uint64_t number) const { return record_holds(record, salt_, number); }

  // Honest files, however damaged, need a part of this: it ends what would go on for hours. The work for
  // records that are found is given back: a file has only so many.
  bool spend(std::uint64_t work) {
    tell(progress_, at_, file_bytes_);
    if (work > work_left_) {
      found_.complete = false;
      return false;
    }
    work_left_ -= work;
    return true;
  }

  const Storage& storage_;
  const std::uint64_t file_bytes_;
  const Progress& progress_;
  std::uint64_t at_ = 0;  // how far the file was looked through
  Scratch window_;
  std::uint64_t salt_ = 0;
  std::uint64_t max_raw_bytes_ = 0;
  std::uint64_t most_raw_bytes_ = 0;  // of what looked like a record
  std::uint64_t work_left_ = 0;
  Salvage found_;
  std::vector<WholeRecord> strays_;  // whole, but of no number that could be where they were found
  FreeNumbers free_;
  std::uint64_t named_ = 0;         // the highest number that a slot is there for
  std::uint64_t next_ = 0;          // the number after the highest found
  std::uint64_t end_ = 0;           // of the record that has that
  std::uint64_t follows_ = 0;       // the number after the last record before
  std::uint64_t follows_at_ = 0;    // where that one ends
  std::uint64_t refused_ = 0;       // what looked like records since
  std::uint64_t record_bytes_ = 0;  // of all found
};

}  // namespace

Salvage salvage(const Storage& storage, std::uint64_t max_chunk_raw_bytes, const Progress& progress) {
  return Scan(storage, max_chunk_raw_bytes, progress).run();
}

}  // namespace cdd
