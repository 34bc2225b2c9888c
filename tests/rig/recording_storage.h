// A Storage in memory that records every write, resize and sync, and CrashStates: what a power cut may leave
// of them. The model: until a sync, every granule (8 bytes, a 512-byte sector, a 4096-byte page) may hold any
// version it had since the last one, independently of all others; the size may be any value it passed through
// or over; bytes that were never stored before and got lost read as zeros or as garbage. After a sync all is
// on disk.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/storage/storage.h"

namespace cdd {

using Image = std::vector<std::byte>;
using Random = std::mt19937_64;

struct Operation {
  enum class Kind { Write, Truncate, Sync };
  Kind kind = Kind::Sync;
  std::uint64_t offset = 0;  // of a write; the new size of a truncate
  Image bytes;
};

inline void redo(const Operation& operation, Image& image) {
  const auto at = static_cast<std::size_t>(operation.offset);
  if (operation.kind == Operation::Kind::Truncate) image.resize(at);
  if (operation.kind != Operation::Kind::Write) return;
  image.resize(std::max(image.size(), at + operation.bytes.size()));
  std::copy(operation.bytes.begin(), operation.bytes.end(), image.begin() + static_cast<std::ptrdiff_t>(at));
}

class RecordingStorage final : public WritableStorage {
 public:
  explicit RecordingStorage(Image image = {}) : image_(std::move(image)) {}
  // With operations that another process issued on `durable` and did not sync.
  RecordingStorage(Image durable, std::span<const Operation> unsynced) : image_(std::move(durable)) {
    for (const Operation& operation : unsynced) record(operation);
  }

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override {
    const std::size_t at = std::min<std::uint64_t>(offset, image_.size());
    const MutableBytes out = scratch.get(std::min(n, image_.size() - at));
    if (!out.empty()) std::memcpy(out.data(), image_.data() + at, out.size());
    return out;
  }
  using WritableStorage::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override {
    Operation write{Operation::Kind::Write, offset, {}};
    for (const Bytes part : parts) write.bytes.insert(write.bytes.end(), part.begin(), part.end());
    if (writes_until_failure_ == 0) {
      writes_until_failure_ = -1;
      write.bytes.resize(std::min(write.bytes.size(), bytes_before_failure_));
      record(std::move(write));
      fail_io(EIO, name_, "write to %s");
    }
    if (writes_until_failure_ > 0) --writes_until_failure_;
    record(std::move(write));
  }
  std::uint64_t size() const override { return image_.size(); }
  void truncate(std::uint64_t size) override {
    if (size != image_.size()) record({Operation::Kind::Truncate, size, {}});
  }
  void sync() override { record({Operation::Kind::Sync, 0, {}}); }
  const std::string& name() const noexcept override { return name_; }

  // The write after `writes` more fails with EIO, after its first `bytes` bytes are written.
  void fail_write(int writes, std::size_t bytes) {
    writes_until_failure_ = writes;
    bytes_before_failure_ = bytes;
  }

  const Image& image() const noexcept { return image_; }
  const std::vector<Operation>& operations() const noexcept { return operations_; }
  void forget_operations() { operations_.clear(); }

 private:
  void record(Operation operation) {
    redo(operation, image_);
    operations_.push_back(std::move(operation));
  }

  Image image_;
  std::vector<Operation> operations_;
  std::string name_ = "<recording>";
  int writes_until_failure_ = -1;
  std::size_t bytes_before_failure_ = 0;
};

// What may be on disk after `pending`, which followed the sync that made `base` durable.
class CrashStates {
 public:
  CrashStates(const Image& base, std::span<const Operation> pending, std::size_t granule_bytes)
      : base_(base), granule_bytes_(granule_bytes), operations_(pending.size()) {
    Image now = base;
    sizes_.push_back(base.size());
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const std::size_t before = now.size();
      redo(pending[i], now);
      if (now.size() != before) sizes_.push_back(now.size());
      const auto at = static_cast<std::size_t>(pending[i].offset);
      const bool write = pending[i].kind == Operation::Kind::Write;
      const std::size_t end = write ? at + pending[i].bytes.size() : std::max(at, before);
      if (end > at) note_versions(now, at, end, static_cast<std::uint32_t>(i) + 1);
    }
    max_bytes_ = *std::max_element(sizes_.begin(), sizes_.end());
    min_bytes_ = *std::min_element(sizes_.begin(), sizes_.end());
  }

  // One state, drawn so that likely troubles are frequent: some moment of the past as a whole, and then
  // single granules, a stretch of them, or all of them from other moments.
  Image draw(Random& random) const {
    const auto moment = [&] { return static_cast<std::uint32_t>(random() % (operations_ + 1)); };
    const std::uint32_t most = random() % 3 == 0   ? moment()
                               : random() % 3 == 0 ? 0u
                                                   : static_cast<std::uint32_t>(operations_);
    std::vector<std::uint32_t> moments(granules_.size(), most);
    if (!moments.empty()) disturb(moments, random, moment);
    return build(moments, draw_size(random), random() % 3, random);
  }

 private:
  struct Version {
    std::uint32_t moment;  // operations done by then
    Image bytes;
  };
  struct Granule {
    std::size_t offset;
    std::vector<Version> versions;  // the first is the durable one
  };

  Image granule_of(const Image& image, std::size_t offset) const {
    Image bytes(granule_bytes_);
    if (offset < image.size()) {
      std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(offset),
                  std::min(granule_bytes_, image.size() - offset), bytes.begin());
    }
    return bytes;
  }

  void note_versions(const Image& now, std::size_t begin, std::size_t end, std::uint32_t moment) {
    for (std::size_t at = begin / granule_bytes_ * granule_bytes_; at < end; at += granule_bytes_) {
      auto found = std::lower_bound(
          granules_.begin(), granules_.end(), at,
          [](const Granule& granule, std::size_t offset) { return granule.offset < offset; });
      const bool known = found != granules_.end() && found->offset == at;
      Image bytes = granule_of(now, at);
      if (!known) {
        Image durable = granule_of(base_, at);
        if (durable == bytes) continue;
        found = granules_.insert(found, Granule{at, {{0, std::move(durable)}}});
      }
      if (found->versions.back().bytes != bytes) found->versions.push_back({moment, std::move(bytes)});
    }
  }

  template <class Moment>
  void disturb(std::vector<std::uint32_t>& moments, Random& random, Moment&& moment) const {
    const std::size_t n = moments.size();
    switch (random() % 4) {
      case 0:  // few
        for (std::size_t i = random() % 3; i-- > 0;) moments[random() % n] = moment();
        break;
      case 1: {  // a stretch
        const std::size_t first = random() % n;
        const std::size_t count = 1 + random() % std::min<std::size_t>(n - first, 64);
        std::fill_n(moments.begin() + static_cast<std::ptrdiff_t>(first), count, moment());
        break;
      }
      case 2: {  // each with some probability
        const std::uint64_t one_in = 2 + random() % 16;
        for (auto& m : moments) {
          if (random() % one_in == 0) m = moment();
        }
        break;
      }
      default:  // all
        for (auto& m : moments) m = moment();
    }
  }

  std::size_t draw_size(Random& random) const {
    switch (random() % 4) {
      case 0:
        return sizes_[random() % sizes_.size()];
      case 1:
        return min_bytes_ + random() % (max_bytes_ - min_bytes_ + 1);
      default:
        return sizes_.back();
    }
  }

  Image build(const std::vector<std::uint32_t>& moments, std::size_t size, std::uint64_t lost,
              Random& random) const {
    Image image = base_;
    image.resize(max_bytes_ + granule_bytes_);
    for (std::size_t i = 0; i < granules_.size(); ++i) {
      const Granule& granule = granules_[i];
      const auto after = std::find_if(granule.versions.begin(), granule.versions.end(),
                                      [&](const Version& version) { return version.moment > moments[i]; });
      const auto out = image.begin() + static_cast<std::ptrdiff_t>(granule.offset);
      const bool never_stored = after - 1 == granule.versions.begin() && granule.offset >= base_.size();
      if (never_stored && lost != 0) {
        std::generate_n(out, granule_bytes_,
                        [&] { return static_cast<std::byte>(lost == 1 ? 0xA5 : random()); });
      } else {
        std::copy((after - 1)->bytes.begin(), (after - 1)->bytes.end(), out);
      }
    }
    image.resize(size);
    return image;
  }

  const Image& base_;
  std::size_t granule_bytes_;
  std::size_t operations_;
  std::vector<Granule> granules_;  // those that changed, by offset
  std::vector<std::size_t> sizes_;
  std::size_t min_bytes_ = 0;
  std::size_t max_bytes_ = 0;
};

}  // namespace cdd
