// That a task of the job was lost: known once, told once.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace syncopate {

// Thread-safe.
class FailureNotice {
 public:
  using Callback = std::function<void(const std::string& reason)>;

  // The first one counts. Calls the subscriber, outside of any lock; what it throws passes through.
  void set(const std::string& reason);
  std::optional<std::string> get() const;

  // Replaces the subscription; called at once when it has already happened. When this returns, the
  // former callback is not running (but for a callback that calls this itself) and never will.
  void subscribe(const Callback& callback);

 private:
  void set_returned();

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  // Guarded by mutex_.
  std::optional<std::string> reason_;
  Callback callback_;
  std::thread::id caller_;  // the thread that is in a callback
};

}  // namespace syncopate
