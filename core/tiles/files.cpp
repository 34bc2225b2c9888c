#include "core/tiles/files.h"

#include <cerrno>

#include "core/base/error.h"
#include "core/os/folders.h"
#include "core/os/open_file.h"
#include "core/os/publish.h"

namespace cdd::tiles {
namespace {

class DiskFile final : public ArrayFile {
 public:
  DiskFile(const std::string& path, OpenFile::How how) : file_(path, how) {}

  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override {
    file_.write_at(offset, parts);
  }
  std::size_t read_at(std::uint64_t offset, MutableBytes out) const override {
    return file_.read_at(offset, out);
  }
  std::uint64_t size() const override { return file_.size(); }
  void truncate(std::uint64_t size) override { file_.truncate(size); }
  void sync() override { file_.sync_bytes(); }
  OpenFile& file() noexcept { return file_; }

 private:
  OpenFile file_;
};

class DiskFiles final : public ArrayFiles {
 public:
  explicit DiskFiles(std::string folder) : folder_(std::move(folder)) {}

  void publish(const std::string& key, Bytes bytes) override {
    const std::string path = name_of(key);
    try {
      cdd::publish(path, bytes, true);
    } catch (const Error& error) {
      if (error.os_errno() != ENOENT) throw;
      make_folders(path.substr(0, path.rfind('/')));
      cdd::publish(path, bytes, true);
    }
  }

  std::unique_ptr<ArrayFile> open(const std::string& key, bool to_write) const override {
    try {
      return std::make_unique<DiskFile>(name_of(key),
                                        to_write ? OpenFile::How::ReadWrite : OpenFile::How::Read);
    } catch (const Error& error) {
      if (error.os_errno() == ENOENT || error.os_errno() == ENOTDIR) return nullptr;
      throw;
    }
  }

  // Between its opening and its lock the file may have been removed: then it is the lock of nothing.
  std::unique_ptr<ArrayFile> lock(const std::string& key) override {
    const std::string path = name_of(key);
    for (;;) {
      auto file = std::make_unique<DiskFile>(path, OpenFile::How::Create);
      file->file().lock(OpenFile::LockKind::Exclusive);
      if (file->file().is_named(path)) return file;
    }
  }

  void replace(const std::string& from, const std::string& to) override {
    replace_file(name_of(from), name_of(to));
  }
  void remove(const std::string& key) override { remove_file(name_of(key)); }
  std::string name_of(const std::string& key) const override { return folder_ + "/" + key; }

 private:
  const std::string folder_;
};

}  // namespace

std::unique_ptr<ArrayFiles> files_in(const std::string& folder) {
  return std::make_unique<DiskFiles>(folder);
}

std::optional<std::vector<std::byte>> read_whole(const ArrayFiles& files, const std::string& key,
                                                 std::uint64_t most) {
  const std::unique_ptr<ArrayFile> file = files.open(key, false);
  if (!file) return std::nullopt;
  const std::uint64_t size = file->size();
  if (size > most) {
    fail(ErrorCode::Corrupt, "%s has %llu bytes, the limit is %llu", files.name_of(key).c_str(),
         static_cast<unsigned long long>(size), static_cast<unsigned long long>(most));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  bytes.resize(file->read_at(0, bytes));
  return bytes;
}

}  // namespace cdd::tiles
