// The files of an array in memory, each change written down: so that a test can look at what there was after
// any of them, with the last one torn, with what was not synced gone; and can let one of them fail.
#pragma once

#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tiles/files.h"

namespace cdd::test {

struct FileChange {
  enum class Kind { Write, Truncate, Publish, Replace, Remove, Sync };
  Kind kind;
  std::string key;
  std::uint64_t offset = 0;  // of a write; the size of a truncation
  std::vector<std::byte> bytes;
  std::string from = {};  // which key gave way to `key`
};

using FileContents = std::map<std::string, std::vector<std::byte>>;

inline void apply_change(const FileChange& change, FileContents& files, std::size_t most = ~std::size_t{0}) {
  std::vector<std::byte>& file = files[change.key];
  const std::size_t n = std::min(most, change.bytes.size());
  switch (change.kind) {
    case FileChange::Kind::Write:
      if (file.size() < change.offset + n) file.resize(change.offset + n);
      std::copy_n(change.bytes.begin(), n, file.begin() + static_cast<std::ptrdiff_t>(change.offset));
      break;
    case FileChange::Kind::Truncate:
      file.resize(change.offset);
      break;
    case FileChange::Kind::Publish:
      file = change.bytes;
      break;
    case FileChange::Kind::Replace:
      file = std::move(files[change.from]);
      files.erase(change.from);
      break;
    case FileChange::Kind::Remove:
      files.erase(change.key);
      break;
    case FileChange::Kind::Sync:
      break;
  }
}

class RecordedFiles {
 public:
  RecordedFiles() = default;
  explicit RecordedFiles(FileContents contents) : start_(contents), contents_(std::move(contents)) {}

  // Change number `at` (from 0) fails with this errno, before it does anything; those after it do not.
  void fail_at(std::size_t at, int error) {
    fail_at_ = at;
    error_ = error;
  }
  // The same, and all that follow it, until heal().
  void fail_from(std::size_t at, int error) {
    fail_at(at, error);
    keeps_failing_ = true;
  }
  void heal() {
    const std::lock_guard lock(mutex_);
    keeps_failing_ = false;
  }
  std::size_t changes() const {
    const std::lock_guard lock(mutex_);
    return log_.size();
  }
  bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return has_failed_;
  }

  // What a killed process leaves after its first `n` changes; of the one after them `torn` bytes.
  FileContents after(std::size_t n, std::size_t torn = 0) const {
    FileContents files = start_;
    for (std::size_t i = 0; i < n; ++i) apply_change(log_[i], files);
    if (torn != 0 && n < log_.size() && log_[n].kind == FileChange::Kind::Write)
      apply_change(log_[n], files, torn);
    return files;
  }

  // What a power cut leaves: of the changes of a file after its last sync some are gone.
  FileContents after_power_cut(std::size_t n, unsigned seed) const {
    std::mt19937 random(seed);
    std::map<std::string, std::size_t> synced;
    for (std::size_t i = 0; i < n; ++i) {
      if (log_[i].kind == FileChange::Kind::Sync) synced[log_[i].key] = i;
    }
    FileContents files = start_;
    for (std::size_t i = 0; i < n; ++i) {
      const auto found = synced.find(log_[i].key);
      const bool is_durable =
          (found != synced.end() && i < found->second) || log_[i].kind == FileChange::Kind::Publish ||
          log_[i].kind == FileChange::Kind::Replace || log_[i].kind == FileChange::Kind::Remove;
      if (is_durable || random() % 2 == 0) apply_change(log_[i], files);
    }
    return files;
  }

  const FileContents& contents() const { return contents_; }
  std::unique_ptr<tiles::ArrayFiles> files();

 private:
  friend class RecordedFile;
  friend class RecordedArrayFiles;

  void change(FileChange change) {
    const std::lock_guard lock(mutex_);
    if (log_.size() == fail_at_ && (!has_failed_ || keeps_failing_)) {
      has_failed_ = true;
      fail_io(error_, change.key, "cannot write %s");
    }
    apply_change(change, contents_);
    log_.push_back(std::move(change));
  }

  mutable std::mutex mutex_;
  FileContents start_, contents_;
  std::vector<FileChange> log_;
  std::size_t fail_at_ = ~std::size_t{0};
  int error_ = 0;
  bool has_failed_ = false, keeps_failing_ = false;
};

class RecordedFile final : public tiles::ArrayFile {
 public:
  RecordedFile(RecordedFiles& all, std::string key) : all_(all), key_(std::move(key)) {}

  using tiles::ArrayFile::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override {
    FileChange change{FileChange::Kind::Write, key_, offset, {}};
    for (const Bytes part : parts) change.bytes.insert(change.bytes.end(), part.begin(), part.end());
    all_.change(std::move(change));
  }
  std::size_t read_at(std::uint64_t offset, MutableBytes out) const override {
    const std::lock_guard lock(all_.mutex_);
    const std::vector<std::byte>& file = all_.contents_[key_];
    if (offset >= file.size()) return 0;
    const std::size_t n = std::min<std::size_t>(out.size(), file.size() - offset);
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
    return n;
  }
  std::uint64_t size() const override {
    const std::lock_guard lock(all_.mutex_);
    return all_.contents_[key_].size();
  }
  void truncate(std::uint64_t size) override { all_.change({FileChange::Kind::Truncate, key_, size, {}}); }
  void sync() override { all_.change({FileChange::Kind::Sync, key_, 0, {}}); }

 private:
  RecordedFiles& all_;
  const std::string key_;
};

class RecordedArrayFiles final : public tiles::ArrayFiles {
 public:
  explicit RecordedArrayFiles(RecordedFiles& all) : all_(all) {}

  void publish(const std::string& key, Bytes bytes) override {
    all_.change({FileChange::Kind::Publish, key, 0, {bytes.begin(), bytes.end()}});
  }
  std::unique_ptr<tiles::ArrayFile> open(const std::string& key, bool) const override {
    const std::lock_guard lock(all_.mutex_);
    if (all_.contents_.count(key) == 0) return nullptr;
    return std::make_unique<RecordedFile>(all_, key);
  }
  std::unique_ptr<tiles::ArrayFile> lock(const std::string& key) override {
    return std::make_unique<RecordedFile>(all_, key);
  }
  void replace(const std::string& from, const std::string& to) override {
    all_.change({FileChange::Kind::Replace, to, 0, {}, from});
  }
  void remove(const std::string& key) override { all_.change({FileChange::Kind::Remove, key, 0, {}}); }
  std::string name_of(const std::string& key) const override { return "memory/" + key; }

 private:
  RecordedFiles& all_;
};

inline std::unique_ptr<tiles::ArrayFiles> RecordedFiles::files() {
  return std::make_unique<RecordedArrayFiles>(*this);
}

}  // namespace cdd::test
