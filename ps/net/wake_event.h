// An event and a timer that wake a thread which waits in poll(2) on several descriptors. Other
// threads set the event.
#pragma once

#include <chrono>
#include <cstdint>

#include "models/base/file_descriptor.h"

namespace syncopate {

// An event that wakes poll(2). Thread-safe. Source: eventfd(2).
class WakeEvent {
 public:
  WakeEvent();  // throws FileError

  void notify() noexcept;
  // Resets the event, and returns whether it was set. The receiver calls clear() before it reads
  // the data about which it was notified; otherwise it could miss a notification.
  bool clear() noexcept;
  // Returns the event's descriptor, which is readable from notify() to clear().
  int descriptor() const noexcept { return event_.get(); }

 private:
  FileDescriptor event_;
};

// A timer that wakes poll(2). One thread only. Source: timerfd_create(2).
class WakeTimer {
 public:
  WakeTimer();  // throws FileError

  // Makes the timer's descriptor readable once `from_now` has passed, until the next set() or
  // clear(). 0 makes the descriptor readable at once. A new time replaces the previous time.
  void set(std::chrono::nanoseconds from_now) noexcept;
  void clear() noexcept;
  int descriptor() const noexcept { return timer_.get(); }

 private:
  enum class State : std::uint8_t { kOff, kExpired, kSet };
  void write(std::chrono::nanoseconds from_now) noexcept;

  FileDescriptor timer_;
  State state_ = State::kOff;  // of the timer; avoids needless system calls
};

}  // namespace syncopate
