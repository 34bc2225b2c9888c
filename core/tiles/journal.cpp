#include "core/tiles/journal.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "core/base/error.h"
#include "core/simd/crc32c.h"

namespace cdd::tiles {
namespace {

constexpr char kMagic[8] = {'c', 'd', 'd', 't', 'i', 'l', 'e', 's'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 64, kRecordBytes = 40;
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;

std::uint32_t keyed_check(const std::array<std::byte, 16>& id, const std::byte* bytes, std::size_t n) {
  return simd::crc32c(bytes, n, simd::crc32c(id.data(), id.size()));
}

std::array<std::byte, 16> random_id() {
  std::random_device random;
  std::array<std::byte, 16> id;
  for (std::size_t i = 0; i < id.size(); i += 4) store<std::uint32_t>(id.data() + i, random());
  return id;
}

void put_header(const JournalHeader& header, std::byte* at) {
  std::memset(at, 0, kHeaderBytes);
  std::memcpy(at, kMagic, sizeof kMagic);
  store<std::uint32_t>(at + 8, kVersion);
  store<std::uint32_t>(at + 12, header.fingerprint);
  std::memcpy(at + 16, header.id.data(), header.id.size());
  store<std::uint64_t>(at + 32, header.bound);
  store<std::uint64_t>(at + 40, header.frames);
  store<std::uint32_t>(at + 60, keyed_check(header.id, at, 60));
}

void put_record(const JournalHeader& header, const JournalRecord& record, std::byte* at) {
  store<std::uint64_t>(at, record.tile);
  store<std::uint64_t>(at + 8, record.offset);
  store<std::uint64_t>(at + 16, record.bytes);
  // Frames of a layer are below 2^32: a tile is, of at least a byte each.
  store<std::uint32_t>(at + 24, static_cast<std::uint32_t>(record.frames));
  store<std::uint32_t>(at + 28, record.check);
  store<std::uint32_t>(at + 32, 0);
  store<std::uint32_t>(at + 36, keyed_check(header.id, at, 36));
}

}  // namespace

std::optional<JournalContents> parse_journal(Bytes bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return std::nullopt;
  JournalContents out;
  const std::byte* at = bytes.data();
  std::memcpy(out.header.id.data(), at + 16, out.header.id.size());
  if (load<std::uint32_t>(at + 60) != keyed_check(out.header.id, at, 60)) return std::nullopt;
  if (load<std::uint32_t>(at + 8) != kVersion) {
    fail(ErrorCode::Unsupported, "the journal has version %u, read is %u", load<std::uint32_t>(at + 8),
         kVersion);
  }
  out.header.fingerprint = load<std::uint32_t>(at + 12);
  out.header.bound = load<std::uint64_t>(at + 32);
  out.header.frames = load<std::uint64_t>(at + 40);
  const std::size_t n = (bytes.size() - kHeaderBytes) / kRecordBytes;
  for (std::size_t i = 0; i < n; ++i) {
    at = bytes.data() + kHeaderBytes + i * kRecordBytes;
    if (load<std::uint32_t>(at + 36) != keyed_check(out.header.id, at, 36)) {
      ++out.dropped;
      continue;
    }
    out.records.push_back({load<std::uint64_t>(at), load<std::uint64_t>(at + 8), load<std::uint64_t>(at + 16),
                           load<std::uint32_t>(at + 24), load<std::uint32_t>(at + 28)});
  }
  return out;
}

Journal::Journal(ArrayFiles& files) : file_(files.lock(kJournalKey)) {
  const std::uint64_t size = file_->size();
  if (size > kMostBytes) {
    fail(ErrorCode::Corrupt, "%s has %llu bytes, the limit is %llu", files.name_of(kJournalKey).c_str(),
         static_cast<unsigned long long>(size), static_cast<unsigned long long>(kMostBytes));
  }
  bytes_.resize(static_cast<std::size_t>(size));
  bytes_.resize(file_->read_at(0, bytes_));
  found_ = parse_journal(bytes_);
  is_damaged_ = !found_ && bytes_.size() >= kHeaderBytes &&
                std::any_of(bytes_.begin(), bytes_.end(), [](std::byte b) { return b != std::byte{0}; });
  bytes_.clear();
}

void Journal::begin(std::uint64_t bound, std::uint64_t frames, std::uint32_t fingerprint) {
  header_ = {random_id(), bound, frames, fingerprint};
  bytes_.resize(kHeaderBytes);
  put_header(header_, bytes_.data());
  file_->truncate(0);
  file_->write_at(0, Bytes(bytes_));
  file_->sync();  // records without a header would look like damage
  end_ = kHeaderBytes;
  found_.reset();
}

void Journal::go_on(std::uint64_t bound, std::uint64_t frames) {
  header_ = found_->header;
  frames = std::min(frames, header_.frames);
  if (header_.bound != bound || header_.frames != frames) {
    header_.bound = bound;
    header_.frames = frames;
    bytes_.resize(kHeaderBytes);
    put_header(header_, bytes_.data());
    file_->write_at(0, Bytes(bytes_));
  }
  end_ = kHeaderBytes + (found_->records.size() + found_->dropped) * kRecordBytes;
  file_->truncate(end_);
  found_.reset();
}

void Journal::append(std::span<const JournalRecord> records) {
  if (records.empty()) return;
  bytes_.resize(records.size() * kRecordBytes);
  for (std::size_t i = 0; i < records.size(); ++i)
    put_record(header_, records[i], bytes_.data() + i * kRecordBytes);
  file_->write_at(end_, Bytes(bytes_));
  end_ += bytes_.size();
}

void Journal::clear() {
  file_->truncate(kHeaderBytes);
  end_ = kHeaderBytes;
}

void Journal::remove(ArrayFiles& files) {
#if defined(_WIN32)
  file_.reset();  // a file that is open cannot be removed there
#endif
  files.remove(kJournalKey);
  file_.reset();
}

}  // namespace cdd::tiles
