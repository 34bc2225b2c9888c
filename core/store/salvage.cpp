#include "core/store/salvage.h"

#include <algorithm>

#include "core/base/hash.h"
#include "core/codec/chunk_codec.h"
#include "core/store/lost_chunks.h"

namespace cdd {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{1} << 20;  // looked through per read
constexpr std::size_t kDtypeAt = 4 + 2;
constexpr std::size_t kHeadBytes = record_header_bytes(kMaxRowDims);
constexpr std::uint64_t kKnownFlagBits = 2 * chunk_flags::kBytePlanes - 1;
constexpr std::uint64_t kWorkPerFileByte = 16;

// Whether a record can begin with `head`: few of 2^100 random bytes pass, and zeros fail at once.
bool may_begin_record(Bytes head, const RowLayout& layout, std::uint64_t left) {
  const auto size = load<std::uint32_t>(head.data());
  if (size < kMinRecordBytes || size > left) return false;
  const auto flags = load<std::uint64_t>(head.data() + kRecordFlagsAt);
  const std::uint64_t always = chunk_flags::kRecordCheck | chunk_flags::kLittleEndian;
  if ((flags & always) != always || flags > kKnownFlagBits) return false;
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

class Scan {
 public:
  Scan(const Storage& storage, std::uint64_t max_raw_bytes) : storage_(storage), file_bytes_(storage.size()) {
    found_.header = read_header(storage);
    found_.layout = found_.header.metadata.layout;
    salt_ = found_.header.metadata.check_salt();
    max_raw_bytes_ = std::min(max_raw_bytes, found_.header.metadata.max_chunk_raw_bytes);
    work_left_ = kWorkPerFileByte * (file_bytes_ + max_raw_bytes_);
  }

  Salvage run() {
    end_ = found_.header.first_block;
    Scratch buffer;
    Bytes window;
    std::uint64_t window_at = 0;
    for (std::uint64_t at = align_up(end_, kRecordAlignment); at + kMinRecordBytes <= file_bytes_;) {
      if (window.empty() || at + kHeadBytes > window_at + window.size()) {
        if (window.empty() || window_at + window.size() < file_bytes_) {
          window_at = at;
          window = storage_.read_at(at, kWindowBytes, buffer);
        }
      }
      if (at >= window_at + window.size()) break;
      const Bytes head = window.subspan(static_cast<std::size_t>(at - window_at));
      if (head.size() < kMinRecordBytes) break;
      const bool taken = may_begin_record(head, found_.layout, file_bytes_ - at) && take(at, head);
      at = taken ? align_up(end_, kRecordAlignment) : at + kRecordAlignment;
    }
    check_addressable(most_raw_bytes_, 0);  // what this build cannot decode is not for it to call lost
    found_.lost = lost_chunks(storage_, found_.header, found_.records);
    return std::move(found_);
  }

 private:
  bool take(std::uint64_t at, Bytes head) {
    const auto size = load<std::uint32_t>(head.data());
    const Bytes record = storage_.read_at(at, size, scratch(Stage::Record));
    if (record.size() != size) return false;
    const std::optional<RecordHeader> header = decode(record);
    const std::optional<std::uint64_t> number = header ? number_of(record, at) : std::nullopt;
    if (!number) {
      ++refused_;
      return false;
    }
    found_.layout = header->layout;
    found_.records.push_back({*number, at, size, header->n_rows});
    found_.rows += header->n_rows;
    record_bytes_ += size;
    end_ = at + size;
    next_ = *number + 1;
    if ((header->flags & chunk_flags::kBatchCont) == 0) found_.whole_end = next_;
    refused_ = 0;
    return true;
  }

  // The header of a record whose rows are what their hash says.
  std::optional<RecordHeader> decode(Bytes record) {
    try {
      Bytes payload;
      const RecordHeader header = parse_record(record, &payload);
      const std::uint64_t bytes = std::uint64_t{header.n_rows} * header.layout.row_bytes();
      most_raw_bytes_ = std::max(most_raw_bytes_, std::min(bytes, max_raw_bytes_));
      if (bytes > std::min(max_raw_bytes_, kAddressableChunkBytes) || !spend(record.size() + bytes))
        return std::nullopt;
      const MutableBytes rows =
          scratch(Stage::Rows).get(static_cast<std::size_t>(bytes)).first(static_cast<std::size_t>(bytes));
      decode_chunk_rows(header.layout, record, {}, Verify::None, header.n_rows, {0, header.n_rows},
                        rows.data());
      if (hash128(rows) == header.hash) return header;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Io) throw;
    }
    return std::nullopt;
  }

  // The number for which the record's check holds: the one after the last record, or, where records are
  // damaged or gone, one of as many as fit between. Those are tried from the most likely outwards.
  std::optional<std::uint64_t> number_of(Bytes record, std::uint64_t at) {
    const std::uint64_t gap = at - end_;
    const std::uint64_t most = next_ + gap / kMinRecordBytes;
    if (holds(record, next_ + refused_)) return next_ + refused_;
    const std::size_t n = found_.records.size();
    const std::uint64_t mean = n == 0 ? record.size() : std::max<std::uint64_t>(record_bytes_ / n, 1);
    const std::uint64_t guess = std::min(next_ + gap / mean, most);
    for (std::uint64_t step = 0; step <= std::max(guess - next_, most - guess); ++step) {
      if (!spend(2 * record.size())) break;
      if (guess - next_ >= step && holds(record, guess - step)) return guess - step;
      if (most - guess >= step && holds(record, guess + step)) return guess + step;
    }
    return std::nullopt;
  }

  bool holds(Bytes record, std::uint64_t number) const {
    const Bytes checked = record.first(record.size() - kRecordCheckBytes);
    return load<std::uint32_t>(record.data() + checked.size()) ==
           check32(CheckDomain::Record, salt_, number, checked);
  }

  // Honest files, however damaged, need a part of this: it ends what would go on for hours.
  bool spend(std::uint64_t work) {
    if (work > work_left_) {
      found_.complete = false;
      return false;
    }
    work_left_ -= work;
    return true;
  }

  const Storage& storage_;
  const std::uint64_t file_bytes_;
  std::uint64_t salt_ = 0;
  std::uint64_t max_raw_bytes_ = 0;
  std::uint64_t most_raw_bytes_ = 0;  // of what looked like a record
  std::uint64_t work_left_ = 0;
  Salvage found_;
  std::uint64_t end_ = 0;           // of the last record found
  std::uint64_t next_ = 0;          // the number after its
  std::uint64_t refused_ = 0;       // what looked like records since
  std::uint64_t record_bytes_ = 0;  // of all found
};

}  // namespace

Salvage salvage(const Storage& storage, std::uint64_t max_chunk_raw_bytes) {
  return Scan(storage, max_chunk_raw_bytes).run();
}

}  // namespace cdd
