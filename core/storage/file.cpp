#include "core/storage/file.h"

#include <cerrno>

namespace cdd {

std::unique_ptr<FileStorage> FileStorage::open(const std::string& path, Access access) {
  using How = OpenFile::How;
  using LockKind = OpenFile::LockKind;
  const bool writes = access == Access::Append;
  for (;;) {
    std::unique_ptr<FileStorage> file(new FileStorage(path, writes ? How::ReadWrite : How::Read));
    if (access == Access::Read) return file;
    file->file_.lock(writes ? LockKind::Exclusive : LockKind::Shared);
    // Another writer may have replaced the file between open and lock: then this handle is to a dead one.
    if (file->file_.is_named(path)) return file;
  }
}

std::unique_ptr<FileStorage> FileStorage::create(const std::string& path, bool replace) {
  auto name = std::make_unique<NewName>(path);
  if (name->is_taken() && !replace) fail_io(EEXIST, path, "cannot create %s");
  std::unique_ptr<FileStorage> old;
  if (name->has_old_file()) old = open(path, Access::Append);
  auto file = create(path, std::move(name));
  file->replace_ = replace;
  file->replaced_ = std::move(old);
  return file;
}

std::unique_ptr<FileStorage> FileStorage::create_instead_of(std::unique_ptr<FileStorage> old) {
  auto file = create(old->name(), std::make_unique<NewName>(old->name()));
  file->replace_ = true;
  file->replaced_ = std::move(old);
  return file;
}

std::unique_ptr<FileStorage> FileStorage::create(const std::string& path, std::unique_ptr<NewName> name) {
  std::unique_ptr<FileStorage> file(new FileStorage(path, std::move(name)));
  file->new_name_->keep_attributes(file->file_);
  file->file_.lock(OpenFile::LockKind::Exclusive);
  return file;
}

// Whatever has the name by now is replaced only if it was to be, and while no writer has it.
void FileStorage::publish() {
  if (!new_name_) return;
  if (replaced_ && !replaced_->file_.is_named(new_name_->target())) replaced_.reset();
  if (replaced_ || !new_name_->take(file_)) {
    if (!replace_) fail_io(EEXIST, name(), "cannot create %s");
    if (!replaced_) replaced_ = open(new_name_->target(), Access::Append);
    if (!kReplacesOpenFiles) replaced_.reset();
    new_name_->replace(file_);
  }
  new_name_.reset();
  replaced_.reset();
}

Bytes FileStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  const MutableBytes out = scratch.get(n);
  return out.first(file_.read_at(offset, out));
}

}  // namespace cdd
