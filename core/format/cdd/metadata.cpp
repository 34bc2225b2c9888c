#include "core/format/cdd/metadata.h"

#include <bit>
#include <vector>

namespace cdd {
namespace {

constexpr std::size_t kIncompatibleAt = 4;
constexpr std::size_t kReadonlyCompatibleAt = 8;
constexpr std::size_t kCompatibleAt = 12;
constexpr std::size_t kSaltAt = 16;
constexpr std::size_t kFirstCapacityAt = 32;
constexpr std::size_t kMaxCapacityAt = 36;
constexpr std::size_t kGrowthAt = 40;
constexpr std::size_t kIndexTypeAt = 44;
constexpr std::size_t kDtypeAt = 46;
constexpr std::size_t kRowDimsAt =
    48;  // how many of the 8 dimensions are used; ~0 when the layout is not set
constexpr std::size_t kDimsAt = 52;
constexpr std::size_t kChunkRowsAt = 84;
constexpr std::size_t kMaxChunkRawAt = 88;
constexpr std::size_t kCreatedAt = 96;
constexpr std::size_t kHashAt = 112;
constexpr std::uint32_t kLayoutUnset = ~std::uint32_t{0};

Hash128 metadata_hash(Bytes hashed, Bytes user_meta_blob) {
  std::vector<std::byte> all(6 + hashed.size() + user_meta_blob.size());
  store<std::uint32_t>(all.data(), kMagic);
  store<std::uint16_t>(all.data() + 4, kVersion);
  std::memcpy(all.data() + 6, hashed.data(), hashed.size());
  if (!user_meta_blob.empty()) {
    std::memcpy(all.data() + 6 + hashed.size(), user_meta_blob.data(), user_meta_blob.size());
  }
  return hash128(all);
}

RowLayout parse_layout(const std::byte* p) {
  const DType dtype(load<std::uint16_t>(p + kDtypeAt));
  const auto ndim = load<std::uint32_t>(p + kRowDimsAt);
  if (ndim == kLayoutUnset) return {};
  if (!dtype.is_known())
    fail(ErrorCode::Unsupported, "metadata: unknown dtype code 0x%04x", unsigned{dtype.code()});
  if (ndim > kMaxRowDims)
    fail(ErrorCode::Corrupt, "metadata: %u row dimensions, at most %zu", ndim, kMaxRowDims);
  std::array<std::uint32_t, kMaxRowDims> dims;
  for (std::size_t i = 0; i < ndim; ++i) dims[i] = load<std::uint32_t>(p + kDimsAt + 4 * i);
  return RowLayout(dtype, {dims.data(), ndim}, ErrorCode::Corrupt);
}

}  // namespace

void put_metadata(const Metadata& metadata, Bytes user_meta_blob, std::byte* out) {
  std::memset(out, 0, kMetadataBytes);
  store<std::uint32_t>(out, kMetadataBytes);
  store<std::uint32_t>(out + kIncompatibleAt, metadata.incompatible);
  store<std::uint32_t>(out + kReadonlyCompatibleAt, metadata.readonly_compatible);
  store<std::uint32_t>(out + kCompatibleAt, metadata.compatible);
  std::memcpy(out + kSaltAt, metadata.salt.data(), metadata.salt.size());
  store<std::uint32_t>(out + kFirstCapacityAt, metadata.first_capacity);
  store<std::uint32_t>(out + kMaxCapacityAt, metadata.max_capacity);
  store<std::uint32_t>(out + kGrowthAt, kGrowth);
  store<std::uint16_t>(out + kIndexTypeAt, static_cast<std::uint16_t>(metadata.index_type));
  const auto dims = metadata.layout.dims();
  store<std::uint16_t>(out + kDtypeAt, metadata.layout.dtype().code());
  store<std::uint32_t>(out + kRowDimsAt,
                       metadata.layout.is_set() ? static_cast<std::uint32_t>(dims.size()) : kLayoutUnset);
  for (std::size_t i = 0; i < dims.size(); ++i) store<std::uint32_t>(out + kDimsAt + 4 * i, dims[i]);
  store<std::uint32_t>(out + kChunkRowsAt, metadata.chunk_rows);
  store<std::uint64_t>(out + kMaxChunkRawAt, metadata.max_chunk_raw_bytes);
  store<std::uint64_t>(out + kCreatedAt, metadata.created_ns);
  const Hash128 hash = metadata_hash({out, kHashAt}, user_meta_blob);
  store<std::uint64_t>(out + kHashAt, hash[0]);
  store<std::uint64_t>(out + kHashAt + 8, hash[1]);
}

Metadata parse_metadata(Bytes bytes, Bytes user_meta_blob) {
  if (bytes.size() != kMetadataBytes) {
    fail(ErrorCode::Corrupt, "metadata of %zu bytes, expected %zu", bytes.size(), kMetadataBytes);
  }
  const std::byte* p = bytes.data();
  const Hash128 hash = metadata_hash(bytes.first(kHashAt), user_meta_blob);
  if (load<std::uint64_t>(p + kHashAt) != hash[0] || load<std::uint64_t>(p + kHashAt + 8) != hash[1]) {
    fail(ErrorCode::Checksum, "its hash does not hold: metadata or user metadata are damaged");
  }
  if (load<std::uint32_t>(p) != kMetadataBytes) fail(ErrorCode::Corrupt, "metadata: wrong struct size");
  Metadata m;
  m.incompatible = load<std::uint32_t>(p + kIncompatibleAt);
  m.readonly_compatible = load<std::uint32_t>(p + kReadonlyCompatibleAt);
  m.compatible = load<std::uint32_t>(p + kCompatibleAt);
  if (m.incompatible != 0) {
    fail(ErrorCode::Unsupported, "the file needs features 0x%x that this version does not know",
         m.incompatible);
  }
  m.index_type = static_cast<BlockType>(load<std::uint16_t>(p + kIndexTypeAt));
  if (m.index_type != BlockType::Slots && m.index_type != BlockType::Offsets) {
    fail(ErrorCode::Unsupported, "unknown index type %u", unsigned{load<std::uint16_t>(p + kIndexTypeAt)});
  }
  std::memcpy(m.salt.data(), p + kSaltAt, m.salt.size());
  m.first_capacity = load<std::uint32_t>(p + kFirstCapacityAt);
  m.max_capacity = load<std::uint32_t>(p + kMaxCapacityAt);
  const bool sane = std::has_single_bit(m.first_capacity) && std::has_single_bit(m.max_capacity) &&
                    m.first_capacity <= m.max_capacity && m.max_capacity <= kMaxCapacity &&
                    load<std::uint32_t>(p + kGrowthAt) == kGrowth;
  if (!sane) {
    fail(ErrorCode::Corrupt, "metadata: index blocks of %u to %u chunks", m.first_capacity, m.max_capacity);
  }
  m.layout = parse_layout(p);
  m.chunk_rows = load<std::uint32_t>(p + kChunkRowsAt);
  m.max_chunk_raw_bytes = load<std::uint64_t>(p + kMaxChunkRawAt);
  if (m.max_chunk_raw_bytes == 0 || m.max_chunk_raw_bytes > kMaxChunkRawBytes) {
    fail(ErrorCode::Corrupt, "metadata: chunks of at most %llu raw bytes",
         static_cast<unsigned long long>(m.max_chunk_raw_bytes));
  }
  m.created_ns = load<std::uint64_t>(p + kCreatedAt);
  return m;
}

}  // namespace cdd
