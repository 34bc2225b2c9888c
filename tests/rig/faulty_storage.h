// A Storage whose k-th call of one kind fails: with an error, or after half of a write, once or from then on.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "core/format/cdd/constants.h"
#include "core/storage/storage.h"

namespace cdd {

struct Fault {
  enum class Call { Read, Write, Sync, Truncate };
  Call call = Call::Read;
  int os_errno = EIO;
  bool half = false;  // a write leaves its first half behind
  bool for_good = false;
};

class FaultyStorage final : public WritableStorage {
 public:
  explicit FaultyStorage(std::shared_ptr<WritableStorage> inner) : inner_(std::move(inner)) {}

  // Call number `nth` from now, of fault.call, counted from 0.
  void fail(const Fault& fault, int nth) {
    fault_ = fault;
    left_ = nth;
    armed_ = true;
  }
  void repair() { armed_ = false; }
  bool has_failed() const { return failures_ > 0; }
  // Whether the last write that failed was that of a clean-close slot.
  bool has_failed_at_proof() const { return failed_at_proof_; }

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override {
    if (fails(Fault::Call::Read)) fail_io(fault_.os_errno, name(), "cannot read %s");
    return inner_->read_at(offset, n, scratch);
  }
  using WritableStorage::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override {
    if (!fails(Fault::Call::Write)) return inner_->write_at(offset, parts);
    failed_at_proof_ =
        parts.size() == 1 && parts[0].size() == kSlotBytes &&
        load<std::uint32_t>(parts[0].data() + 24) == (slot_flags::kCommit | slot_flags::kSynced);
    if (fault_.half) {
      std::vector<std::byte> all;
      for (const Bytes part : parts) all.insert(all.end(), part.begin(), part.end());
      inner_->write_at(offset, Bytes(all).first(all.size() / 2));
    }
    fail_io(fault_.os_errno, name(), "cannot write %s");
  }
  std::uint64_t size() const override {
    if (fails(Fault::Call::Read)) fail_io(fault_.os_errno, name(), "cannot stat %s");
    return inner_->size();
  }
  void truncate(std::uint64_t size) override {
    if (fails(Fault::Call::Truncate)) fail_io(fault_.os_errno, name(), "cannot resize %s");
    inner_->truncate(size);
  }
  void sync() override {
    if (fails(Fault::Call::Sync)) fail_io(fault_.os_errno, name(), "cannot sync %s");
    inner_->sync();
  }
  const std::string& name() const noexcept override { return inner_->name(); }

 private:
  bool fails(Fault::Call call) const {
    if (!armed_ || call != fault_.call) return false;
    if (left_ > 0) {
      --left_;
      return false;
    }
    ++failures_;
    armed_ = fault_.for_good;
    return true;
  }

  std::shared_ptr<WritableStorage> inner_;
  Fault fault_;
  mutable bool armed_ = false;
  mutable int left_ = 0;
  mutable int failures_ = 0;
  bool failed_at_proof_ = false;
};

}  // namespace cdd
