// Requests to stop, which arrive as the signals of stop_signals.h. The signals are queued, and the
// training loop polls for them between steps, so that it can write a checkpoint before the process
// ends.
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
  // Blocks the signals for this thread and the threads that this thread starts later, so the object
  // must be made before any other thread exists. Signals that the parent process ignored stay
  // ignored. further: another signal to receive, or 0. Throws FileError.
  explicit StopSignal(int further = 0);
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();  // restores the signal mask and drops signals that were not polled

  // Returns the name of a queued signal and removes it from the queue; nullopt if there is none.
  // Does not wait.
  std::optional<std::string_view> poll();
  // Like poll(), but returns the number of the signal, for a caller that passes it on to a child
  // process.
  std::optional<int> poll_number();

  // Whether a signal has arrived, polled or not. Any thread may call this.
  bool was_asked() const noexcept;

  // Returns a descriptor for poll(2) that is readable while a signal is queued.
  int descriptor() const noexcept { return descriptor_.get(); }
  // Returns the signal mask that this thread had before the construction. Child processes are
  // started with this mask.
  const sigset_t& previous_mask() const noexcept { return previous_mask_; }

 private:
  sigset_t previous_mask_{};
  FileDescriptor descriptor_;
  std::atomic<bool> was_polled_ = false;
};

}  // namespace syncopate
