// A file on disk: positional reads and writes, a lock for the one writer, creation that is all or nothing.
// Implemented in file_posix.cpp and file_win32.cpp. Paths are UTF-8 (on POSIX: the bytes the OS takes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/os/process.h"
#include "core/storage/storage.h"

namespace cdd {

#if defined(_WIN32)
using FileHandle = void*;
#else
using FileHandle = int;
#endif

class FileStorage final : public Storage {
 public:
  enum class Access { Read, ReadAlone, Append };

  // Opens an existing file; anything but a regular file is refused (EISDIR, EINVAL). Access::Append also
  // takes the writer's lock and makes sure that the path still names the locked file, Access::ReadAlone keeps
  // writers out; Error{Io, EAGAIN} says that a writer has the file open.
  static std::unique_ptr<FileStorage> open(const std::string& path, Access access);

  // Creates a file that becomes visible under `path` only by publish(), already locked for this writer.
  // Until then it lives beside `path` under a temporary name, which the destructor removes.
  // A link at `path` stays and what it leads to is replaced, by a file with the same permissions.
  // `replace` false: Error{Io, EEXIST} when something is there, now or at publish(). `replace` true: refused
  // like open(Append) while another writer holds the old file, at publish() too when it came since.
  static std::unique_ptr<FileStorage> create(const std::string& path, bool replace);
  void publish();

  ~FileStorage() override;
  FileStorage(const FileStorage&) = delete;
  FileStorage& operator=(const FileStorage&) = delete;

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override;
  using Storage::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override;
  std::uint64_t size() const override;
  void truncate(std::uint64_t size) override;
  void sync() override;
  const std::string& name() const noexcept override { return path_; }

  FileHandle handle() const noexcept { return handle_; }

 private:
  FileStorage(FileHandle handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void lock_what_is_there(int error);

  FileHandle handle_;
  std::string path_;
  const std::uint64_t process_ = process_id();  // whose lock and temporary name these are
  std::string target_;                          // the name it gets: path_ with links followed
  std::string temporary_;                       // not empty until publish()
  bool replace_ = false;
  std::unique_ptr<FileStorage> replaced_;  // the old file, locked until the new one has its name
};

}  // namespace cdd
