#include "core/store/header.h"

#include <random>

#include "core/codec/compressor.h"
#include "core/format/cdd/constants.h"

namespace cdd {
namespace {

struct HeaderBytes {};

constexpr int kLevel = 3;
constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kMinPadding = 8;  // the smallest zstd skippable frame

std::vector<std::byte> compress_frame(Bytes bytes) {
  std::vector<std::byte> frame(compress_bound(Compressor::Zstd, bytes.size()));
  frame.resize(compress(Compressor::Zstd, bytes, frame, kLevel, true));
  return frame;
}

void append(std::vector<std::byte>& out, Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

void append_blob(std::vector<std::byte>& out, Bytes blob) {
  std::byte length[kLengthBytes];
  store<std::uint32_t>(length, static_cast<std::uint32_t>(blob.size()));
  append(out, length);
  append(out, blob);
}

// A length and as many bytes, copied: reads share one scratch.
std::vector<std::byte> read_blob(const Storage& storage, std::uint64_t at, std::uint32_t limit,
                                 const char* what) {
  const Bytes length = copy_exactly(storage, at, kLengthBytes, scratch<HeaderBytes>());
  const auto bytes = load<std::uint32_t>(length.data());
  if (bytes > limit) {
    fail(ErrorCode::Corrupt, "%s: %s of %u bytes exceeds %u", storage.name().c_str(), what, bytes, limit);
  }
  if (at + kLengthBytes + bytes > storage.size()) {
    fail(ErrorCode::Truncated, "%s: the file ends within its %s", storage.name().c_str(), what);
  }
  const Bytes blob = copy_exactly(storage, at + kLengthBytes, bytes, scratch<HeaderBytes>());
  return {blob.begin(), blob.end()};
}

// A frame that zstd does not take is damaged, as one whose hash does not hold.
void decompress_blob(Bytes blob, MutableBytes out, const char* what) {
  try {
    decompress(Compressor::Zstd, blob, out);
  } catch (const Error& error) {
    fail(ErrorCode::Checksum, "%s does not decompress: %s", what, error.what());
  }
}

// All of the header but where the index begins.
Header parse_blobs(Bytes metadata_blob, Bytes user_blob) {
  Header header;
  std::byte raw[kMetadataBytes];
  decompress_blob(metadata_blob, raw, "metadata");
  header.metadata = parse_metadata(raw, user_blob);
  if (user_blob.empty()) return header;
  const std::uint64_t bytes = zstd_content_bytes(user_blob);
  if (bytes > kMaxUserMetaBytes) {
    fail(ErrorCode::Corrupt, "user metadata of %llu bytes, at most %u",
         static_cast<unsigned long long>(bytes), kMaxUserMetaBytes);
  }
  header.user_meta.resize(static_cast<std::size_t>(bytes));
  decompress_blob(user_blob, header.user_meta, "user metadata");
  return header;
}

// Errors say that it is the header's, and which file's.
Header parse_blobs_of(const Storage& storage, Bytes metadata_blob, Bytes user_blob) {
  try {
    return parse_blobs(metadata_blob, user_blob);
  } catch (const Error& error) {
    fail(error.code(), "%s: the file's header: %s", storage.name().c_str(), error.what());
  }
}

Header read_parts(const Storage& storage) {
  const char* const name = storage.name().c_str();
  const Bytes start = storage.copy_at(0, kMetadataAt, scratch<HeaderBytes>());
  if (start.empty()) {
    fail(ErrorCode::Truncated, "%s has 0 bytes, which is no store: mode \"a\" makes a file one", name);
  }
  if (start.size() < kMetadataAt) {
    fail(ErrorCode::Truncated, "%s: %zu bytes are too few for a cdd file", name, start.size());
  }
  if (load<std::uint32_t>(start.data()) != kMagic) {
    fail(ErrorCode::Corrupt, "%s is not a cdd file: it starts with %02x %02x %02x %02x, not CDDF", name,
         std::to_integer<unsigned>(start[0]), std::to_integer<unsigned>(start[1]),
         std::to_integer<unsigned>(start[2]), std::to_integer<unsigned>(start[3]));
  }
  if (const auto version = load<std::uint16_t>(start.data() + 4); version != kVersion) {
    fail(ErrorCode::Unsupported, "%s has format version %u, this library reads version %u", name,
         unsigned{version}, unsigned{kVersion});
  }
  const auto metadata_blob = read_blob(storage, kMetadataAt, kMaxMetadataBlob, "metadata");
  const std::uint64_t user_at = kMetadataAt + kLengthBytes + metadata_blob.size();
  const auto limit = static_cast<std::uint32_t>(compress_bound(Compressor::Zstd, kMaxUserMetaBytes));
  const auto user_blob = read_blob(storage, user_at, limit, "user metadata");

  Header header = parse_blobs_of(storage, metadata_blob, user_blob);
  header.first_block = user_at + kLengthBytes + user_blob.size();
  if (align_block(header.first_block) != header.first_block) {
    fail(ErrorCode::Corrupt, "%s: the first index block is not aligned", name);
  }
  return header;
}
}  // namespace

std::vector<std::byte> encode_header(const Metadata& metadata, Bytes user_meta) {
  if (user_meta.size() > kMaxUserMetaBytes) {
    fail(ErrorCode::InvalidArgument, "user_meta of %zu bytes, at most %u", user_meta.size(),
         kMaxUserMetaBytes);
  }
  const std::vector<std::byte> user_blob =
      user_meta.empty() ? std::vector<std::byte>{} : compress_frame(user_meta);
  std::byte raw[kMetadataBytes];
  put_metadata(metadata, user_blob, raw);
  std::vector<std::byte> metadata_blob = compress_frame(raw);

  const std::size_t unpadded = kMetadataAt + 2 * kLengthBytes + metadata_blob.size() + user_blob.size();
  const std::size_t padding = static_cast<std::size_t>(align_block(unpadded + kMinPadding)) - unpadded;
  const std::size_t frame_bytes = metadata_blob.size();
  metadata_blob.resize(frame_bytes + padding);
  put_zstd_padding(MutableBytes(metadata_blob).subspan(frame_bytes));

  std::vector<std::byte> out(kMetadataAt);
  store<std::uint32_t>(out.data(), kMagic);
  store<std::uint16_t>(out.data() + 4, kVersion);
  append_blob(out, metadata_blob);
  append_blob(out, user_blob);
  return out;
}

std::array<std::byte, 16> random_salt() {
  std::array<std::byte, 16> salt;
  std::random_device random;
  for (std::size_t i = 0; i < salt.size(); i += 4) store<std::uint32_t>(salt.data() + i, random());
  return salt;
}

Header read_header(const Storage& storage) {
  try {
    return read_parts(storage);
  } catch (Error& error) {
    error.at({Place::Kind::Header});
    throw;
  }
}

}  // namespace cdd
