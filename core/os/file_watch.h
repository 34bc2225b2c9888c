// Tells when a file may have changed: by the system's events where it has them, and always by time, since
// network mounts send no events, nor do some overlays, and a user's watches may be used up. An event only
// means "look".
#pragma once

#include <cstdint>
#include <string>

namespace cdd {

class FileWatch {
 public:
  // Never throws for want of events: then time alone tells.
  explicit FileWatch(const std::string& path);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Sleeps until an event, or for the next step of the timer; at most `most_ms` (negative: no limit). Whether
  // there was an event. Steps begin anew with each event and double as long as there is none: from 1 to 250
  // ms, to 2 s where events are sure to come. Short ones at first keep a core from sleeping so deeply that
  // the next event of a busy file finds it late.
  bool wait(std::int64_t most_ms);

  // For event loops: a descriptor that is readable when there are events, -1 where there is none. After it
  // was, clear() takes them; step_ms() is how long to sleep else, and grows with each call.
  std::intptr_t handle() const noexcept { return handle_; }
  void clear() noexcept;
  std::int64_t step_ms() noexcept;

 private:
  std::intptr_t handle_ = -1;
  std::intptr_t file_ = -1;  // watched by the handle, where the system wants it open
  struct Steps {
    std::int64_t first_ms, most_ms;
  };
  static constexpr Steps kTimerAlone{1, 250};
  static constexpr Steps kEventsCome{1, 2000};  // the timer is there for what nobody thought of

  Steps steps_ = kTimerAlone;
  std::int64_t step_ms_ = kTimerAlone.first_ms;
};

}  // namespace cdd
