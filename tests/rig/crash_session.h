// A writer at work on a RecordingStorage, and what it promised at every moment: the oracle of the crash
// simulation.
//
// Rows are bytes that depend on their number and on the history they belong to, so rows of another history,
// or at another place, are never equal by chance.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/store/writer.h"
#include "tests/rig/recording_storage.h"

namespace cdd {

// What a crash may leave when `operations` operations (or more, until the next Promise) were issued.
struct Promise {
  std::size_t operations = 0;
  std::uint64_t durable_rows = 0;         // survive a power cut
  std::uint64_t written_rows = 0;         // survive a kill
  std::vector<std::uint64_t> whole_rows;  // row counts that end a whole append: no other may be seen
  std::vector<std::uint64_t> found_rows;  // what recovery may find, where that is less than whole_rows
  Image rows;                             // of all appends, the one under way included
};

class Session {
 public:
  static constexpr std::uint32_t kRowBytes = 248;

  // Appends after `start`, which is what an earlier history left on `storage`.
  Session(std::shared_ptr<RecordingStorage> storage, const WriterOptions& options, std::uint64_t history,
          Promise start = {})
      : storage_(std::move(storage)), options_(options), history_(history), now_(std::move(start)) {
    now_.operations = storage_->operations().size();
    tail_start_ = rows();
  }

  // Whether rows, and so records, differ in how long they get.
  void vary_lengths() { varied_ = true; }

  static RowLayout layout() {
    static constexpr std::uint32_t kDims[] = {kRowBytes};
    return RowLayout(Kind::UInt8, kDims);
  }

  // A file is published only after a sync, so nothing of its creation is ever seen half done.
  void create() {
    now_.whole_rows = {0};
    writer_ = Writer::create(storage_, options_);
    storage_->sync();
    keep();
  }
  void open() {
    promises_.push_back(now_);
    writer_ = Writer::open(storage_, options_);
    now_.durable_rows = now_.written_rows = tail_start_ = writer_->rows();
    now_.rows.resize(static_cast<std::size_t>(tail_start_ * kRowBytes));
    now_.whole_rows = {tail_start_};
    now_.found_rows.clear();
    keep();
  }
  void append(std::uint64_t n) {
    begin(n);
    writer_->append(layout(), Bytes(now_.rows).last(n * kRowBytes), n);
    keep_append();
  }
  // An append whose write number `write` fails after `bytes` bytes.
  void failing_append(std::uint64_t n, int write, std::size_t bytes) {
    const Promise before = now_;
    begin(n);
    storage_->fail_write(write, bytes);
    try {
      writer_->append(layout(), Bytes(now_.rows).last(n * kRowBytes), n);
    } catch (const Error&) {
      now_ = before;
      now_.durable_rows = now_.written_rows;  // the undoing ends with a sync
      keep();
      return;
    }
    storage_->fail_write(-1, 0);
    keep_append();
  }
  void flush() {
    begin(0);
    writer_->flush();
    tail_start_ = rows();
    note_written();
    if (options_.durability != Durability::None) sync_promise();
    keep();
  }
  void close() {
    begin(0);
    writer_->close();
    tail_start_ = rows();
    note_written();
    sync_promise();
    keep();
  }

  std::uint64_t rows() const { return now_.rows.size() / kRowBytes; }
  const Promise& now() const { return now_; }
  const std::vector<Promise>& promises() const { return promises_; }
  const RecordingStorage& storage() const { return *storage_; }

 private:
  // Rows that are in chunks once `total` rows were appended: chunks start anew after every flush.
  std::uint64_t in_chunks(std::uint64_t total) const {
    if (options_.durability == Durability::Always) return total;
    return total - (total - tail_start_) % options_.chunk_rows;
  }
  void begin(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) put_row(rows());
    Promise attempt = now_;
    attempt.operations = storage_->operations().size();
    attempt.whole_rows.push_back(in_chunks(rows()));
    attempt.whole_rows.push_back(rows());  // a flush writes the tail, too
    if (n > 0 && options_.durability != Durability::Always) attempt.whole_rows.pop_back();
    promises_.push_back(std::move(attempt));
  }
  void keep_append() {
    note_written();
    // A batch is committed once 64 chunks wait.
    const std::uint64_t waiting = (now_.written_rows - now_.durable_rows) / options_.chunk_rows;
    const bool committed = options_.durability == Durability::Always ||
                           (options_.durability == Durability::Batch && waiting >= 64);
    if (committed) sync_promise();
    keep();
  }
  void note_written() {
    now_.written_rows = std::max(now_.written_rows, in_chunks(rows()));
    now_.whole_rows.push_back(now_.written_rows);
  }
  void sync_promise() { now_.durable_rows = now_.written_rows; }
  void keep() {
    now_.operations = storage_->operations().size();
    promises_.push_back(now_);
  }
  // Most varied rows compress, others do not: a history of them is soon longer than the one before, so that
  // what was not scrubbed of that lies within the file again.
  void put_row(std::uint64_t number) {
    Random random(number * 1000 + history_);
    for (std::uint32_t i = 0; i < kRowBytes; ++i) {
      const bool noise = i < 8 || !varied_ || number % 8 == 5;
      now_.rows.push_back(noise ? static_cast<std::byte>(random()) : std::byte{7});
    }
  }

  std::shared_ptr<RecordingStorage> storage_;
  WriterOptions options_;
  std::uint64_t history_;
  Promise now_;
  bool varied_ = false;
  std::uint64_t tail_start_ = 0;  // rows before the last flush, all of them in chunks
  std::vector<Promise> promises_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace cdd
