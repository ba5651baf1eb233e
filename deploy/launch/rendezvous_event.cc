#include "deploy/launch/rendezvous_event.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <string>

#include "models/base/errors.h"

namespace syncopate {

RendezvousEvent::RendezvousEvent() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw FileError(describe_errno("create", "an eventfd", errno));
}

void RendezvousEvent::share_with(RoleCommand& command) const {
  command.shared = event_.get();
  command.environment["SYNCOPATE_MET_FD"] = std::to_string(event_.get());
}

bool RendezvousEvent::is_over() noexcept {
  eventfd_t count = 0;
  is_over_ = is_over_ || eventfd_read(event_.get(), &count) == 0;
  return is_over_;
}

}  // namespace syncopate
