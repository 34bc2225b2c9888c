// A store's reader and writer to be awaited.
//
// A read of little whose chunks were read before, or stand in the page cache, is done by the awaiting thread
// at once: waking another one costs more than such a read. Whatever else may wait for the disk is done by a
// thread of Jobs, in which the coroutine then goes on, unless resume_with() names another place; it should
// not keep that thread for long.
//
// Cancelling takes back what has not begun, which then throws Error{Cancelled}; what has begun ends first. So
// once an await is over nobody writes to its `out`. Memory is borrowed until then.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>

#include "core/async/warm_chunks.h"
#include "core/os/process.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "core/threads/jobs.h"

namespace cdd {

// Where a coroutine goes on: gets it resumed in some other thread.
using ResumeWith = std::function<void(std::coroutine_handle<>)>;

// Work to be awaited: done at once where `ready` says so, else by a thread. It is called once, or not at all
// where the stop came before. Lives in the frame of the coroutine that awaits it; nothing is allocated.
class AsyncWork : private Job {
 public:
  AsyncWork(bool ready, Strand* strand, const ResumeWith* resume_with, std::stop_token stop)
      : ready_(ready), strand_(strand), resume_with_(resume_with), stop_(std::move(stop)) {}

  bool await_ready() noexcept;
  bool await_suspend(std::coroutine_handle<> waiting);
  void await_resume() const;

 protected:
  ~AsyncWork() = default;

 private:
  struct Stop {
    void operator()() const noexcept { work->stopped(); }
    AsyncWork* work;
  };
  virtual void work() = 0;
  void run() noexcept override;
  void do_work() noexcept;
  void stopped() noexcept;
  void go_on() noexcept;

  const bool ready_;
  Strand* const strand_;
  const ResumeWith* const resume_with_;
  const std::stop_token stop_;
  std::optional<std::stop_callback<Stop>> on_stop_;
  std::coroutine_handle<> waiting_;
  std::atomic<bool> met_{false};
  std::exception_ptr error_;
};

template <class Work>
class [[nodiscard]] AsyncCall final : public AsyncWork {
 public:
  AsyncCall(Work work, bool ready, Strand* strand, const ResumeWith* resume_with, std::stop_token stop)
      : AsyncWork(ready, strand, resume_with, std::move(stop)), work_(work) {}

 private:
  void work() override { work_(); }

  const Work work_;
};

class AsyncReader {
 public:
  enum class Inline { WhenWarm, Never };

  // Shares the reader with what is under way.
  explicit AsyncReader(std::shared_ptr<const Reader> reader, Inline inlined = Inline::WhenWarm)
      : reader_(std::move(reader)), inline_(inlined) {}

  void resume_with(ResumeWith place) { resume_with_ = std::move(place); }

  const Reader& reader() const noexcept { return *reader_; }

  // Reader::read_into and read_windows, to be awaited. `cells` and `starts` must live until then, too.
  auto read(RowRange range, MutableBytes out, const Cells* cells = nullptr, std::stop_token stop = {}) {
    const auto work = [this, range, out, cells] { read_now(range, out, cells); };
    const bool warm = begin(range);
    return AsyncCall(work, warm, nullptr, &resume_with_, std::move(stop));
  }
  auto read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                    const Cells* cells = nullptr, std::stop_token stop = {}) {
    const auto work = [this, starts, rows, out, cells] { read_windows_now(starts, rows, out, cells); };
    return AsyncCall(work, false, nullptr, &resume_with_, std::move(stop));
  }

  // What the awaited calls do, here and now. Every chunk of several windows is on its way from the disk
  // before the first one is decoded.
  void read_now(RowRange range, MutableBytes out, const Cells* cells) const;
  void read_windows_now(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                        const Cells* cells) const;

 private:
  bool begin(RowRange range) const;

  std::shared_ptr<const Reader> reader_;
  const Inline inline_;
  ResumeWith resume_with_;
  mutable WarmChunks warm_;
};

// Appends, flushes and closes in the order of the calls, each by a thread.
class AsyncWriter {
 public:
  explicit AsyncWriter(std::shared_ptr<Writer> writer) : writer_(std::move(writer)) {}
  ~AsyncWriter() { wait(); }  // the writer closes with its last owner

  void resume_with(ResumeWith place) { resume_with_ = std::move(place); }

  Writer& writer() const noexcept { return *writer_; }
  Strand& strand() noexcept { return strand_; }

  // Writer's functions, to be awaited. `rows` must live until then.
  auto append(const RowLayout& layout, Bytes rows, std::uint64_t n_rows, std::stop_token stop = {}) {
    return in_order([this, layout, rows, n_rows] { writer_->append(layout, rows, n_rows); }, std::move(stop));
  }
  auto flush(std::stop_token stop = {}) {
    return in_order([this] { writer_->flush(); }, std::move(stop));
  }
  auto close() {
    return in_order([this] { writer_->close(); }, {});
  }

  // Returns when nothing is under way. In a forked child at once: what is under way is the parent's.
  void wait() noexcept;

 private:
  template <class Work>
  AsyncCall<Work> in_order(Work work, std::stop_token stop) {
    return {work, false, &strand_, &resume_with_, std::move(stop)};
  }

  const std::uint64_t process_ = process_id();
  std::shared_ptr<Writer> writer_;
  Strand strand_;
  ResumeWith resume_with_;
};

}  // namespace cdd
