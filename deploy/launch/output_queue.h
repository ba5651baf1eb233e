// Output of the launcher that its reader has not taken yet, such as a pager or a stopped terminal.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace syncopate {

// An OutputQueue writes to a descriptor without a wait, and keeps what finds no room. One thread
// only may use it.
class OutputQueue {
 public:
  explicit OutputQueue(int descriptor) : descriptor_(descriptor) {}

  // Writes what finds room now, and keeps the rest. After a write has failed, drops all lines.
  void add(std::string_view lines);
  // Writes kept lines, and waits up to `timeout` for room.
  void write_kept(std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

  bool is_blocked() const noexcept { return !kept_.empty(); }
  // True if lines were lost, because a write failed.
  bool has_failed() const noexcept { return has_failed_; }
  // Returns the descriptor to poll(2) for room, or -1 if no lines are kept.
  int blocked_descriptor() const noexcept { return is_blocked() ? descriptor_ : -1; }

 private:
  int descriptor_;
  std::string kept_;
  bool has_failed_ = false;
};

// True if there is a queue and it keeps lines.
inline bool is_blocked(const OutputQueue* queue) { return queue != nullptr && queue->is_blocked(); }

}  // namespace syncopate
