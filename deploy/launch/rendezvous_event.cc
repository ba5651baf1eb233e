#include "deploy/launch/rendezvous_event.h"

#include <string>

namespace syncopate {

void RendezvousEvent::share_with(RoleCommand& command) const {
  command.shared = event_.descriptor();
  command.environment["SYNCOPATE_MET_FD"] = std::to_string(event_.descriptor());
}

bool RendezvousEvent::is_over() noexcept {
  is_over_ = is_over_ || event_.clear();
  return is_over_;
}

}  // namespace syncopate
