#include "core/format/cdd/record.h"

namespace cdd {
namespace {

constexpr std::size_t kDtypeAt = 6;
constexpr std::size_t kHashAt = 8;
constexpr std::size_t kDimsAt = kRecordFixedBytes;

}  // namespace

std::size_t put_record_header(const RecordHeader& header, std::byte* out) noexcept {
  store<std::uint32_t>(out, header.size);
  store<std::uint16_t>(out + kRecordTypeAt, header.type);
  store<std::uint16_t>(out + kDtypeAt, header.layout.dtype().code());
  store<std::uint64_t>(out + kHashAt, header.hash[0]);
  store<std::uint64_t>(out + kHashAt + 8, header.hash[1]);
  store<std::uint64_t>(out + kRecordFlagsAt, header.flags);
  std::byte* p = out + kDimsAt;
  store<std::uint32_t>(p, header.n_rows);
  for (const std::uint32_t dim : header.layout.dims()) store<std::uint32_t>(p += 4, dim);
  store<std::uint32_t>(p += 4, 0);
  return static_cast<std::size_t>(p + 4 - out);
}

RecordHeader parse_record(Bytes record, Bytes* payload) {
  if (record.size() < kMinRecordBytes) {
    fail(ErrorCode::Corrupt, "record of %zu bytes, at least %u expected", record.size(), kMinRecordBytes);
  }
  const std::byte* p = record.data();
  RecordHeader header;
  header.size = load<std::uint32_t>(p);
  if (header.size != record.size()) {
    fail(ErrorCode::Corrupt, "record says it has %u bytes, its slot says %zu", header.size, record.size());
  }
  header.type = load<std::uint16_t>(p + kRecordTypeAt);
  header.hash = {load<std::uint64_t>(p + kHashAt), load<std::uint64_t>(p + kHashAt + 8)};
  header.flags = load<std::uint64_t>(p + kRecordFlagsAt);
  const DType dtype(load<std::uint16_t>(p + kDtypeAt));
  if (!dtype.is_known())
    fail(ErrorCode::Unsupported, "record has unknown dtype code 0x%04x", unsigned{dtype.code()});

  ByteReader rest(record.first(record.size() - kRecordCheckBytes).subspan(kDimsAt));
  header.n_rows = rest.take<std::uint32_t>();
  if (header.n_rows == 0) fail(ErrorCode::Corrupt, "record has no rows");
  std::array<std::uint32_t, kMaxRowDims> dims;
  std::size_t ndim = 0;
  while (const std::uint32_t dim = rest.take<std::uint32_t>()) {
    if (ndim == kMaxRowDims) fail(ErrorCode::Corrupt, "record has more than %zu dimensions", kMaxRowDims + 1);
    dims[ndim++] = dim;
  }
  header.layout = RowLayout(dtype, {dims.data(), ndim}, ErrorCode::Corrupt);
  if (std::uint64_t{header.n_rows} * header.layout.row_bytes() > kMaxChunkRawBytes) {
    fail(ErrorCode::Corrupt, "record of %u rows of %u bytes exceeds 2 GiB", header.n_rows,
         header.layout.row_bytes());
  }
  *payload = rest.rest();
  return header;
}

}  // namespace cdd
