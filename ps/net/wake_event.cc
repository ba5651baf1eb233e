#include "ps/net/wake_event.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "models/base/errors.h"

namespace syncopate {

WakeEvent::WakeEvent() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw FileError(describe_errno("create", "an eventfd", errno));
}

void WakeEvent::notify() noexcept { (void)eventfd_write(event_.get(), 1); }

void WakeEvent::clear() noexcept {
  eventfd_t count = 0;
  (void)eventfd_read(event_.get(), &count);
}

}  // namespace syncopate
