// Requests to stop. The signals of stop_signals.h are queued, and the train loop polls for them
// between steps, so that it can write a checkpoint before the process ends.
#pragma once

#include <atomic>
#include <csignal>
#include <optional>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Receives requests to stop. One thread only, except was_asked(). Source: signalfd(2).
class StopSignal {
 public:
  // Blocks the signals for this thread and the threads that it starts later; construct it before
  // any other thread exists. Signals that the parent process ignored stay ignored. further: another
  // signal to receive, or 0. Throws FileError.
  explicit StopSignal(int further = 0);
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();  // restores the signal mask and drops signals that were not polled

  // Returns the name of a signal that arrived since the last call, or nothing. Does not wait.
  std::optional<std::string_view> poll();
  // Returns the last polled signal as a number, for a caller that passes it on to a child process.
  std::optional<int> poll_number();

  // Whether a signal has arrived, polled or not. Any thread may call this.
  bool was_asked() const noexcept;

  // Returns a descriptor that is readable when a signal has arrived, for poll(2).
  int descriptor() const noexcept { return descriptor_.get(); }
  // Returns the signal mask before construction. A child process starts with it.
  const sigset_t& previous_mask() const noexcept { return previous_mask_; }

 private:
  sigset_t previous_mask_{};
  FileDescriptor descriptor_;
  std::atomic<bool> was_polled_ = false;
};

}  // namespace syncopate
