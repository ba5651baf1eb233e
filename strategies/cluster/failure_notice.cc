#include "strategies/cluster/failure_notice.h"

#include <utility>

namespace syncopate {

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
