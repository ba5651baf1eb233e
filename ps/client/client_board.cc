#include "ps/client/client_board.h"

#include "models/base/errors.h"
#include "ps/client/job_over.h"

namespace syncopate::ps {

void ClientBoard::throw_if_failed() const {
  if (!failure) return;
  if (failure_kind == FailureKind::kUsage) throw UsageError(*failure);
  if (failure_kind == FailureKind::kJobOver) throw JobOver(*failure);
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

void ClientBoard::fail(const std::string& reason, FailureKind kind) {
  {
    const std::lock_guard lock(mutex);
    if (failure) return;
    failure = reason;
    failure_kind = kind;
  }
  changed.notify_all();
}

}  // namespace syncopate::ps
