// Asks politely: SIGINT, SIGTERM and SIGUSR1 become something the train loop looks at between
// steps, so that a checkpoint is written before the process ends. What to do about it is the loop's
// affair.
#pragma once

#include <atomic>
#include <csignal>
#include <optional>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// One thread only, but for was_asked(). Source: signalfd(2).
class StopSignal {
 public:
  // Blocks the signals for this thread and for the threads it starts from now on: make it before
  // any other thread exists. A signal that the parent process had us ignore stays ignored. Throws
  // FileError.
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();  // signals are as before; those that nobody polled are forgotten

  // The name of a signal that arrived since the last call, if one did. Never waits.
  std::optional<std::string_view> poll();
  // The same signal as a number: for who passes it on.
  std::optional<int> poll_number();

  // Whether one has arrived, polled or not. Any thread.
  bool was_asked() const noexcept;

  // Readable when one has arrived: for who waits for other things too.
  int descriptor() const noexcept { return descriptor_.get(); }
  // What was blocked before us: what a child process is to start with.
  const sigset_t& previous_mask() const noexcept { return previous_mask_; }

 private:
  sigset_t previous_mask_{};
  FileDescriptor descriptor_;
  std::atomic<bool> was_polled_ = false;
};

}  // namespace syncopate
