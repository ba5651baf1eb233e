#include "strategies/collective/end_reason.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "models/base/errors.h"

namespace syncopate {

EndReason::EndReason() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw FileError(describe_errno("create", "an eventfd", errno));
}

void EndReason::set(std::string_view reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (is_set_.load(std::memory_order_relaxed)) return;
    text_ = reason;
    is_set_.store(true, std::memory_order_release);
  }
  (void)eventfd_write(event_.get(), 1);
}

std::string EndReason::text() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

void EndReason::throw_if_set() const {
  if (is_set()) throw PeerError(text());
}

}  // namespace syncopate
