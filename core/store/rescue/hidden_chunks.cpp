#include "core/store/rescue/hidden_chunks.h"

#include <cerrno>
#include <memory>

#include "core/storage/file.h"
#include "core/store/reader.h"
#include "core/store/rescue/salvage.h"

namespace cdd {
namespace {

bool ends_with_last_chunk(const Reader& reader) {
  if (reader.chunks() == 0) return false;
  try {
    const ChunkInfo last = reader.chunk_info(reader.chunks() - 1);
    return last.offset + last.stored_bytes == reader.storage().size();
  } catch (const Error& error) {  // it is damaged
    if (error.code() == ErrorCode::Io) throw;
    return false;
  }
}

// Null while a writer has the file.
std::shared_ptr<Storage> open_alone(const std::string& path) {
  try {
    return FileStorage::open(path, FileStorage::Access::ReadAlone);
  } catch (const Error& error) {
    if (error.os_errno() == EAGAIN) return nullptr;
    throw;
  }
}

}  // namespace

ShownChunks count_chunks(const std::string& path, std::uint64_t max_chunk_raw_bytes,
                         const Progress& progress) {
  ReaderOptions options;
  options.verify = Verify::None;
  const Reader reader(FileStorage::open(path, FileStorage::Access::Read), options);
  if (ends_with_last_chunk(reader)) return {reader.chunks(), 0};
  const std::shared_ptr<Storage> alone = open_alone(path);
  if (!alone) return {reader.chunks(), 0};
  const std::uint64_t shown = Reader(alone, options).chunks();  // a writer may have been at work before
  const std::uint64_t found = salvage(*alone, max_chunk_raw_bytes, progress).whole_end;
  return {shown, found > shown ? found - shown : 0};
}

}  // namespace cdd
