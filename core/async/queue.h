// Work that ends in a queue: what event loops, the C interface and other runtimes build on.
//
// A Request is done by a thread of Jobs, and afterwards waits in its Queue until somebody takes it. The
// threads run nothing of the taker's: he sleeps on handle(), alone or in a loop, and an empty queue that gets
// a request signals once, however many follow. So many requests cost one wake-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/os/process.h"
#include "core/os/wake.h"
#include "core/threads/jobs.h"

namespace cdd {

class Queue;

// One piece of work. Its maker keeps alive what it points to until it is taken.
class Request {
 public:
  virtual ~Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // What work() threw; Error{Cancelled} where it was taken back; null: it is done.
  const std::exception_ptr& error() const noexcept { return error_; }
  std::uint64_t ticket() const noexcept { return ticket_; }

  // Says before it is submitted that work() takes some microseconds and waits for nothing. A thread does
  // several such one after the other and hands them over together.
  void set_short() noexcept { is_short_ = true; }

 protected:
  Request() = default;

 private:
  friend class Queue;
  virtual void work() {}  // in a thread of Jobs; nothing for what is expected

  bool is_short_ = false;

  std::exception_ptr error_;
  std::uint64_t ticket_ = 0;
};

class Queue {
 public:
  static constexpr std::size_t kMostRequests = 65536;

  // `wake` is called besides, in whichever thread ends a request: it may do no more than signal.
  explicit Queue(std::size_t most_requests = kMostRequests, std::function<void()> wake = {});
  ~Queue();  // finish(), and lets go of everything; in a forked child of its handle alone
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Has it done, on a strand after what was submitted there before. Returns its ticket, never 0. Throws
  // Limit when so many are under way or wait to be taken, Closed in a forked child.
  std::uint64_t submit(std::unique_ptr<Request> request, Strand* strand = nullptr);

  // Takes in a request that somebody else does, who then calls end(). To cancel() and finish() it has not
  // begun. Throws as submit().
  std::uint64_t expect(std::unique_ptr<Request> request);

  // Ends what was expected, with an error or without. False: it had ended before.
  bool end(std::uint64_t ticket, std::exception_ptr error) noexcept;

  // True: it had not begun, and ends with Error{Cancelled}. False: it runs, or is done, or was never there.
  bool cancel(std::uint64_t ticket);

  // Up to `at_most` requests that have ended, in the order of their ends. Waits for the first one, at most
  // so many milliseconds (negative: however long). One thread at a time. Throws Closed in a forked child.
  std::vector<std::unique_ptr<Request>> take(std::size_t at_most, std::int64_t timeout_ms);

  // Takes back what has not begun and waits for what has; all of it can then be taken. In a forked child:
  // nothing.
  void finish() noexcept;

  // Whether something is to be taken, after at most so many milliseconds (negative: however long).
  bool wait(std::int64_t timeout_ms) const noexcept { return wake_.wait(timeout_ms); }

  // Readable while something is to be taken; on Windows an event.
  std::intptr_t handle() const noexcept { return wake_.handle(); }

  // Under way or waiting to be taken; 0 in a forked child.
  std::size_t size() const noexcept;

  // Signals that an empty queue got something: wake-ups of a loop, for tests. 0 in a forked child.
  std::uint64_t wakes() const noexcept;

 private:
  struct Entry;
  struct State;
  using Entries = std::unordered_map<std::uint64_t, std::unique_ptr<Entry>>;
  std::uint64_t add(std::unique_ptr<Request> request, bool is_expected, Entry** added = nullptr);
  bool take_back(Entry& entry) noexcept;
  void ended(std::span<Entry* const> entries) noexcept;
  void move_to_done(Entries::iterator at) noexcept;
  void check_process() const;

  const std::size_t most_requests_;
  const std::function<void()> on_wake_;
  const std::uint64_t process_ = process_id();
  Wake wake_;
  std::unique_ptr<State> state_;
};

}  // namespace cdd
