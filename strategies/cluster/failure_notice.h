// Reports the failure of a task of the job to other code in this process. ps/net/peer_silence.h
// detects such a failure.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace syncopate {

// Stores the reason of the first failure of a task of the job, and calls one subscriber once with
// this reason. Thread-safe.
class FailureNotice {
 public:
  using Callback = std::function<void(const std::string& reason)>;

  // If no reason is stored yet, stores `reason` and calls the subscriber; otherwise does nothing.
  // No lock is held during the call; exceptions of the subscriber are not caught.
  void set(const std::string& reason);
  std::optional<std::string> get() const;

  // Replaces the subscriber, and calls the new subscriber at once if a reason is stored. When
  // subscribe() returns, the previous subscriber is not running and will not be called again. (If
  // the previous subscriber itself calls subscribe(), it is still running.)
  void subscribe(const Callback& callback);

 private:
  void set_returned();

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  // The reason of the first failure, and the subscriber, guarded by mutex_.
  std::optional<std::string> reason_;
  Callback callback_;
  std::thread::id caller_;  // the thread that runs a callback
};

}  // namespace syncopate
