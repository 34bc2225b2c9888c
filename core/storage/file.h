// A file on disk: positional reads and writes, a lock for the one writer, creation that is all or nothing.
// Paths are UTF-8 (on POSIX: the bytes the OS takes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/os/open_file.h"
#include "core/os/publish.h"
#include "core/storage/storage.h"

namespace cdd {

class FileStorage final : public WritableStorage {
 public:
  enum class Access { Read, ReadAlone, Append };

  // Opens an existing file; anything but a regular file is refused (EISDIR, EINVAL). Access::Append also
  // takes the writer's lock and makes sure that the path still names the locked file, Access::ReadAlone keeps
  // writers out; Error{Io, EAGAIN} says that a writer has the file open. A forked child of who has a lock
  // closes the file.
  static std::unique_ptr<FileStorage> open(const std::string& path, Access access);

  // Creates a file that becomes visible under `path` only by publish(), already locked for this writer.
  // Until then it lives beside `path` under a temporary name, which the destructor removes.
  // A link at `path` stays, and what it leads to is created or replaced, by a file with the old one's group,
  // owner, permissions and extended attributes as far as the system lets.
  // `replace` false: Error{Io, EEXIST} when something is there, now or at publish(). `replace` true: refused
  // like open(Append) while another writer holds the old file, at publish() too when it came since.
  static std::unique_ptr<FileStorage> create(const std::string& path, bool replace);
  // The same, to replace a file that is open with Access::Append.
  static std::unique_ptr<FileStorage> create_instead_of(std::unique_ptr<FileStorage> old);
  void publish();

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override;
  bool is_cached(std::uint64_t offset, std::size_t n) const noexcept override {
    return file_.is_cached(offset, n);
  }
  void prefetch(std::uint64_t offset, std::size_t n) const noexcept override { file_.prefetch(offset, n); }
  bool is_replaced() const override { return !file_.is_named(name()); }
  using WritableStorage::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override {
    file_.write_at(offset, parts);
  }
  std::uint64_t size() const override { return file_.size(); }
  void truncate(std::uint64_t size) override { file_.truncate(size); }
  void sync() override { file_.sync_bytes(); }
  const std::string& name() const noexcept override { return file_.name(); }

  const OpenFile& file() const noexcept { return file_; }

 private:
  FileStorage(const std::string& path, OpenFile::How how) : file_(path, how) {}
  static std::unique_ptr<FileStorage> create(const std::string& path, std::unique_ptr<NewName> name);
  FileStorage(const std::string& path, std::unique_ptr<NewName> name)
      : new_name_(std::move(name)), file_(new_name_->temporary(), new_name_->how(), path) {}

  std::unique_ptr<NewName> new_name_;      // until publish(); outlives the open file
  std::unique_ptr<FileStorage> replaced_;  // the old file, locked until the new one has its name
  bool replace_ = false;
  OpenFile file_;
};

}  // namespace cdd
