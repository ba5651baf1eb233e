// Passes values from any thread to one receiving thread, which waits in poll(2), and wakes the
// receiving thread.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "ps/net/wake_event.h"

namespace syncopate {

// The values on their way to the receiving thread. Thread-safe, but only one thread may call
// take(). The constructor throws FileError if no descriptor is left.
template <typename T>
class Mailbox {
 public:
  // Returns a descriptor for poll(2) that is readable from post() or wake() to take().
  int descriptor() const noexcept { return wake_.descriptor(); }
  void post(T value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    wake();
  }
  // Wakes the receiver without a value.
  void wake() noexcept {
    is_awake_ = true;
    wake_.notify();
  }
  // Returns, without a system call, whether take() may return values. A receiver that finds the
  // descriptor readable must call take() even if this is false, since take() resets the descriptor.
  bool is_awake() const noexcept { return is_awake_; }
  // Returns the values that were posted since the last call, in order.
  std::vector<T> take() {
    is_awake_ = false;
    wake_.clear();
    const std::lock_guard lock(mutex_);
    return std::exchange(values_, {});
  }

 private:
  WakeEvent wake_;
  std::atomic<bool> is_awake_ = false;  // since the last take()
  std::mutex mutex_;
  std::vector<T> values_;  // GUARDED_BY(mutex_)
};

}  // namespace syncopate
