#include "strategies/cluster/failure_detector.h"

#include <algorithm>
#include <utility>

namespace syncopate {

std::chrono::nanoseconds FailureDetector::update(Time now, std::chrono::nanoseconds sleep) {
  const std::chrono::nanoseconds delay = now - expected_;
  expected_ = now + sleep;
  if (delay <= kTolerance) return std::chrono::nanoseconds(0);
  for (Time& time : last_message_times_) time += delay;
  return delay;
}

std::optional<int> FailureDetector::silent(Time now) const {
  const auto oldest = std::ranges::min_element(last_message_times_);
  if (now - *oldest < timeout_) return std::nullopt;
  return static_cast<int>(oldest - last_message_times_.begin());
}

std::chrono::nanoseconds FailureDetector::time_left(Time now) const {
  return std::max(std::chrono::nanoseconds(0),
                  timeout_ - (now - std::ranges::min(last_message_times_)));
}

void FailureNotice::set(const std::string& reason) {
  Callback callback;
  {
    const std::lock_guard lock(mutex_);
    if (reason_) return;
    reason_ = reason;
    callback = std::exchange(callback_, nullptr);
    if (callback) caller_ = std::this_thread::get_id();
  }
  if (!callback) return;
  try {
    callback(reason);
  } catch (...) {
    // The callback has ended with an exception. Without this call, the next subscribe() would wait
    // for the end of the callback forever.
    set_returned();
    throw;
  }
  set_returned();
}

void FailureNotice::set_returned() {
  {
    const std::lock_guard lock(mutex_);
    caller_ = {};
  }
  returned_.notify_all();
}

std::optional<std::string> FailureNotice::get() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void FailureNotice::subscribe(const Callback& callback) {
  std::optional<std::string> reason;
  {
    std::unique_lock lock(mutex_);
    // Waiting for a running callback is short, since callbacks do not block.
    returned_.wait(lock, [&] {
      return caller_ == std::thread::id() || caller_ == std::this_thread::get_id();
    });
    reason = reason_;
    callback_ = reason ? Callback() : callback;
  }
  if (reason && callback) callback(*reason);
}

}  // namespace syncopate
