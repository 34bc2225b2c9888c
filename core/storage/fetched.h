// Bytes of an object that lies on another machine, got by whoever made the storage: nothing here knows of
// networks. What its holder keeps handing over for good, as an index, is kept here.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "core/storage/storage.h"

namespace cdd {

class FetchedStorage final : public Storage {
 public:
  // Bytes from `offset` on that stay with the storage.
  struct Held {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  // Who gets the bytes. Called by any thread, by several at once; what it throws comes out of the read.
  class Source {
   public:
    virtual ~Source() = default;
    // How many bytes there are. Asked once.
    virtual std::uint64_t size() = 0;
    // As Storage::ask().
    virtual void ask(std::span<const ByteRange> ranges) = 0;
    // Fills `out` with the bytes at `offset` and returns nothing; or returns what is to be held, which may be
    // these, and is called again if it is not.
    virtual std::vector<Held> read(std::uint64_t offset, MutableBytes out) = 0;
  };

  FetchedStorage(std::string name, std::unique_ptr<Source> source)
      : name_(std::move(name)), source_(std::move(source)) {}

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override;
  bool is_cached(std::uint64_t offset, std::size_t n) const noexcept override;
  bool is_far() const noexcept override { return true; }
  void ask(std::span<const ByteRange> ranges) const override { source_->ask(ranges); }
  std::uint64_t size() const override;
  const std::string& name() const noexcept override { return name_; }

 private:
  std::optional<Bytes> held(std::uint64_t offset, std::size_t n) const;
  void hold(std::vector<Held> ranges) const;

  std::string name_;
  mutable std::atomic<std::uint64_t> size_{~std::uint64_t{0}};  // until it is known
  std::unique_ptr<Source> source_;
  mutable std::shared_mutex mutex_;
  mutable std::list<Held> held_;  // with kScratchPadding bytes behind each; never changed, never moved
};

}  // namespace cdd
