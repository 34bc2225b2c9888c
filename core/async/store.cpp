#include "core/async/store.h"

#include <utility>

#include "core/base/error.h"

namespace cdd {

// ---------------------------------------------------------------- work

void AsyncWork::do_work() noexcept {
  try {
    if (stop_.stop_requested()) fail(ErrorCode::Cancelled, "cancelled before it had begun");
    work();
  } catch (...) {
    error_ = std::current_exception();
  }
}

bool AsyncWork::await_ready() noexcept {
  if (ready_) do_work();
  return ready_;
}

// The two sides meet as those of a Task do, so this object is there until both have come. A stop that came
// before the job was submitted could not take it back: it is looked for again afterwards.
bool AsyncWork::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  if (stop_.stop_possible()) on_stop_.emplace(stop_, Stop{this});
  if (strand_ != nullptr) {
    Jobs::shared().submit(*this, *strand_);
  } else {
    Jobs::shared().submit(*this);
  }
  if (stop_.stop_requested() && Jobs::shared().take_back(*this)) {
    do_work();  // sees the stop
    return false;
  }
  if (!met_.exchange(true, std::memory_order_acq_rel)) return true;
  if (resume_with_ == nullptr || !*resume_with_) return false;
  (*resume_with_)(waiting);
  return true;
}

void AsyncWork::run() noexcept {
  do_work();
  go_on();
}

void AsyncWork::stopped() noexcept {
  if (!Jobs::shared().take_back(*this)) return;
  do_work();  // sees the stop
  go_on();
}

void AsyncWork::go_on() noexcept {
  const std::coroutine_handle<> waiting = waiting_;
  if (!met_.exchange(true, std::memory_order_acq_rel)) return;
  if (resume_with_ != nullptr && *resume_with_) return (*resume_with_)(waiting);
  waiting.resume();
}

void AsyncWork::await_resume() const {
  if (error_) std::rethrow_exception(error_);
}

// ---------------------------------------------------------------- reader

// Whether to read at once. What is not has the disk at work before a thread comes to it.
bool AsyncReader::begin(RowRange range) const {
  if (inline_ == Inline::WhenWarm && warm_.is_warm(*reader_, range)) return true;
  const std::uint64_t rows = reader_->rows();
  if (range.first < rows && range.count <= rows - range.first) reader_->prefetch(range);
  return false;
}

void AsyncReader::read_now(RowRange range, MutableBytes out, const Cells* cells) const {
  reader_->read_into(range, out, cells);
  warm_.add(*reader_, range);
}

void AsyncReader::read_windows_now(std::span<const std::uint64_t> starts, std::uint64_t rows,
                                   MutableBytes out, const Cells* cells) const {
  const std::uint64_t there = reader_->rows();
  for (const std::uint64_t start : starts) {
    if (rows > 0 && start < there && rows <= there - start) reader_->prefetch({start, rows});
  }
  reader_->read_windows(starts, rows, out, cells);
}

// ---------------------------------------------------------------- writer

void AsyncWriter::wait() noexcept {
  if (process_ == process_id()) Jobs::shared().wait_until_idle(strand_);
}

}  // namespace cdd
