// Queues output of the launcher until the reader of the output, such as a pager or a terminal,
// takes it. A stopped terminal takes no output.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace syncopate {

// Writes to a descriptor without waiting, and queues the bytes that cannot be written yet. One
// thread only.
class OutputQueue {
 public:
  explicit OutputQueue(int descriptor) : descriptor_(descriptor) {}

  // Writes as much as possible now and queues the rest. Drops all lines after a write has failed.
  void add(std::string_view lines);
  // Writes queued lines; waits up to `timeout` until they can be written.
  void write_kept(std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

  bool is_blocked() const noexcept { return !kept_.empty(); }
  // True if lines were lost, because a write failed.
  bool has_failed() const noexcept { return has_failed_; }
  // Returns the descriptor to pass to poll(2) with POLLOUT; -1 if no lines are queued.
  int blocked_descriptor() const noexcept { return is_blocked() ? descriptor_ : -1; }

 private:
  int descriptor_;
  std::string kept_;
  bool has_failed_ = false;
};

// True if `queue` is not null and has queued lines.
inline bool is_blocked(const OutputQueue* queue) { return queue != nullptr && queue->is_blocked(); }

}  // namespace syncopate
