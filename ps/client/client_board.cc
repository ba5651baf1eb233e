#include "ps/client/client_board.h"

#include "models/base/errors.h"

namespace syncopate::ps {

void ClientBoard::throw_if_failed() const {
  if (!failure) return;
  if (is_usage_error) throw UsageError(*failure);
  throw PeerError(*failure);
}

void ClientBoard::require_current(std::unique_lock<std::mutex>& lock) {
  if (!is_void()) return;
  changed.wait(lock, [&] { return failure.has_value() || !is_rewinding; });
  throw_if_failed();
  throw RolledBack(*start);
}

void ClientBoard::wait_values(std::unique_lock<std::mutex>& lock, Bucket& bucket) {
  struct Waiting {
    explicit Waiting(int& of) : count(of) { ++count; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { --count; }
    int& count;
  };
  const Waiting waiting(bucket.waiting);
  wait(lock, [&] { return !bucket.awaited; });
}

void ClientBoard::fail(const std::string& reason, bool is_usage) {
  {
    const std::lock_guard lock(mutex);
    if (failure) return;
    failure = reason;
    is_usage_error = is_usage;
  }
  changed.notify_all();
}

}  // namespace syncopate::ps
