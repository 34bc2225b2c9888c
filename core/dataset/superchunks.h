// The files of a dataset, opened when they are first read. No more than a limit stay open: of those that no
// call is using, the one that was not touched for long is closed first.
//
// A file that is open is found without a lock; opening and closing take a mutex. It goes on in a forked
// child.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/os/shared_pages.h"
#include "core/storage/mapped_file.h"
#include "core/store/reader.h"

namespace cdd {

using Salt = std::array<std::byte, 16>;

class Superchunks {
 public:
  struct Options {
    ReaderOptions reader;
    Mapping mapping = Mapping::Preferred;
    std::size_t max_open = 1024;
    // Told the text of the error for a file that is not there; may throw another in its place. Any thread.
    std::function<void(const std::string& text)> on_missing = {};
  };
  // One file, open or not. It lives as long as the Superchunks. What each read needs stands in a line of its
  // own, which no other file's users write to.
  struct alignas(64) File : InSharedPages {
    std::atomic<Reader*> reader{nullptr};   // while it is open
    std::atomic<std::uint64_t> opening{0};  // number of the last one, which no other has had
    std::atomic<std::uint32_t> users{0};
    std::atomic<bool> is_touched{false};
    Salt salt{};  // of the file that is meant
    std::string path;
    std::shared_ptr<Storage> memory;  // instead of a path
  };
  // A file that stays open as long as this lives.
  class Use {
   public:
    Use(Use&& other) noexcept : file_(std::exchange(other.file_, nullptr)), reader_(other.reader_) {}
    Use& operator=(Use&&) = delete;
    ~Use() { end(); }
    void end() noexcept {
      if (file_ != nullptr) file_->users.fetch_sub(1, std::memory_order_release);
      file_ = nullptr;
    }
    const File* file() const noexcept { return file_; }
    Reader& reader() const noexcept { return *reader_; }
    std::uint64_t opening() const noexcept { return file_->opening.load(std::memory_order_relaxed); }

   private:
    friend class Superchunks;
    explicit Use(File& file) noexcept : file_(&file) { file.users.fetch_add(1, std::memory_order_seq_cst); }

    File* file_;
    Reader* reader_ = nullptr;
  };

  explicit Superchunks(Options options) : options_(std::move(options)) {}
  ~Superchunks();
  Superchunks(const Superchunks&) = delete;
  Superchunks& operator=(const Superchunks&) = delete;

  // The file at a path, or in memory under that name, which has this salt.
  File& file(const std::string& path, const std::shared_ptr<Storage>& memory, const Salt& salt);

  // Throws as Reader, Io where it cannot be opened, and Corrupt where it is another file than is meant.
  Use use(File& file) {
    // A user counts itself first and looks for the reader then; close_some() takes the reader away first and
    // counts users then. So either the user finds none, or it is counted.
    Use use(file);
    use.reader_ = file.reader.load(std::memory_order_seq_cst);
    if (use.reader_ == nullptr) use.reader_ = open(file);
    if (!file.is_touched.load(std::memory_order_relaxed)) {
      file.is_touched.store(true, std::memory_order_relaxed);
    }
    return use;
  }

  void tell_missing(const std::string& text) const {
    if (options_.on_missing) options_.on_missing(text);
  }

  std::size_t open_files() const;

  // Closes files that are needed no more, by paths and salts, where they are open; in use each goes on until
  // that is over. One that is used all the same is opened again.
  void let_go(const std::vector<std::pair<std::string, Salt>>& files);

  // Closes all files; those in use when that is over, and this goes. Whatever is used later is opened again.
  void close();

 private:
  Reader* open(File& file);
  void close(File& file);
  void close_some();

  const Options options_;
  mutable std::mutex mutex_;  // guards all below, and the opening of files
  std::unordered_map<std::string, File*> by_name_;
  std::vector<std::unique_ptr<File>> files_;
  std::vector<File*> open_;  // those with a reader
  std::size_t hand_ = 0;     // where the search for one to close goes on
  std::vector<std::pair<File*, std::unique_ptr<Reader>>> closing_;  // still in use when they were closed
};

}  // namespace cdd
