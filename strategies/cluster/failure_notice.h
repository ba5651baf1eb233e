// Distributes the failure of a task of the job within this process. ps/net/peer_silence.h detects
// it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace syncopate {

// Stores the first failure of a task of the job and passes it to one subscriber, once.
// Thread-safe.
class FailureNotice {
 public:
  using Callback = std::function<void(const std::string& reason)>;

  // Stores the failure's reason unless one is stored. Calls the subscriber without holding a lock;
  // exceptions of the subscriber pass through.
  void set(const std::string& reason);
  std::optional<std::string> get() const;

  // Replaces the subscriber of the failure, and calls it at once if a reason is set. After this
  // returns, the former subscriber is not running and is never called, except that a callback may
  // call subscribe() itself.
  void subscribe(const Callback& callback);

 private:
  void set_returned();

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  // The stored failure and its subscriber, guarded by mutex_.
  std::optional<std::string> reason_;
  Callback callback_;
  std::thread::id caller_;  // the thread that runs a callback
};

}  // namespace syncopate
