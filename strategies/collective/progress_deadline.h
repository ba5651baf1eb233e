// The end of a wait for ranks that are alive. The wait gives up when the slowest rank has made no
// progress for the timeout, however long the wait lasts. Between the exchanges of local updates, a
// slow rank may need longer than the timeout.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "models/base/deadline.h"

namespace syncopate {

// A number that changes while the slowest rank makes progress. Any thread may call the function.
using PeerProgress = std::function<std::int64_t()>;

// One thread only.
class ProgressDeadline {
 public:
  // progress: empty if nothing is known about the other ranks; outlives the object.
  ProgressDeadline(std::chrono::nanoseconds timeout, const PeerProgress& progress)
      : progress_(progress), seen_(progress ? progress() : 0), end_(Deadline::after(timeout)) {}

  // Whether the timeout has passed without progress. Must be called after each remaining() time, to
  // notice progress.
  bool passed() {
    if (progress_) {
      const std::int64_t now = progress_();
      if (now != seen_) end_ = Deadline::after(end_.timeout());
      seen_ = now;
    }
    return end_.passed();
  }
  // Returns how long to wait before the next call of passed().
  std::chrono::nanoseconds remaining() const {
    constexpr int kLooks = 8;
    return progress_ ? std::min(end_.remaining(), end_.timeout() / kLooks) : end_.remaining();
  }
  // Returns this time as the timeout argument of poll(2), rounded up.
  int remaining_milliseconds() const {
    return Deadline::after(remaining()).remaining_milliseconds();
  }

 private:
  const PeerProgress& progress_;
  std::int64_t seen_;
  Deadline end_;
};

}  // namespace syncopate
