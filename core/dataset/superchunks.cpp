#include "core/dataset/superchunks.h"

#include <algorithm>

#include "core/os/fork_gate.h"

namespace cdd {
namespace {

std::string hexadecimal(const Salt& salt) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : salt) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

bool is_free(const std::pair<Superchunks::File*, std::unique_ptr<Reader>>& closing) {
  return closing.first->users.load(std::memory_order_seq_cst) == 0;
}

std::atomic<std::uint64_t> openings{0};

std::string key_of(const std::string& path, const Salt& salt) {
  return path + std::string(reinterpret_cast<const char*>(salt.data()), salt.size());
}

}  // namespace

Superchunks::~Superchunks() {
  for (File* const file : open_) delete file->reader.load(std::memory_order_relaxed);
}

Superchunks::File& Superchunks::file(const std::string& path, const std::shared_ptr<Storage>& memory,
                                     const Salt& salt) {
  std::string key = key_of(path, salt);
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(key);
  if (found != by_name_.end()) return *found->second;
  File& made = *files_.emplace_back(std::make_unique<File>());
  made.path = path;
  made.memory = memory;
  made.salt = salt;
  by_name_.emplace(std::move(key), &made);
  return made;
}

// What is in memory or far away is opened before anything is held: it may take messages, and Python.
Reader* Superchunks::open(File& file) {
  std::unique_ptr<Reader> opened;
  if (file.memory) opened = std::make_unique<Reader>(file.memory, options_.reader);
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  if (Reader* const other = file.reader.load(std::memory_order_relaxed)) return other;
  close_some();
  if (!opened) {
    opened = std::make_unique<Reader>(open_for_reading(file.path, options_.mapping), options_.reader);
  }
  const Salt& salt = opened->header().metadata.salt;
  if (salt != file.salt) {
    fail(ErrorCode::Corrupt, "%s is another file than the dataset's: its id is %s, not %s", file.path.c_str(),
         hexadecimal(salt).c_str(), hexadecimal(file.salt).c_str());
  }
  open_.push_back(&file);
  file.opening.store(openings.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  file.reader.store(opened.get(), std::memory_order_seq_cst);
  return opened.release();
}

// Makes room for one more. Those in use go on until they are not.
void Superchunks::close_some() {
  std::erase_if(closing_, is_free);
  for (std::size_t looks = 2 * open_.size(); open_.size() >= options_.max_open && looks > 0; --looks) {
    hand_ = hand_ < open_.size() ? hand_ : 0;
    File& file = *open_[hand_];
    if (file.is_touched.exchange(false, std::memory_order_relaxed)) {
      ++hand_;
      continue;
    }
    close(file);
    open_[hand_] = open_.back();
    open_.pop_back();
  }
}

void Superchunks::close(File& file) {
  std::unique_ptr<Reader> opened(file.reader.exchange(nullptr, std::memory_order_seq_cst));
  if (opened && file.users.load(std::memory_order_seq_cst) > 0)
    closing_.emplace_back(&file, std::move(opened));
}

void Superchunks::let_go(const std::vector<std::pair<std::string, Salt>>& files) {
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  std::erase_if(closing_, is_free);
  for (const auto& [path, salt] : files) {
    const auto found = by_name_.find(key_of(path, salt));
    if (found != by_name_.end()) close(*found->second);
  }
  std::erase_if(open_, [](const File* file) { return !file->reader.load(std::memory_order_relaxed); });
}

void Superchunks::close() {
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  for (File* const file : open_) close(*file);
  open_.clear();
  std::erase_if(closing_, is_free);
}

std::size_t Superchunks::open_files() const {
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  return open_.size() + closing_.size();
}

}  // namespace cdd
