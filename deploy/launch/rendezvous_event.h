// Tells the launcher when the roles (processes of workers and servers) of a job have met at their
// rendezvous. Before the rendezvous nothing is trained, and if a role fails, the other roles wait
// for it.
#pragma once

#include "deploy/launch/role_process.h"
#include "ps/net/wake_event.h"

namespace syncopate {

// An event that the roles of a job share with the launcher. A role sets the event when all roles
// have met at the rendezvous, and the launcher reads it. Used by the launcher's thread only.
class RendezvousEvent {
 public:
  // Makes the role that `command` starts inherit the descriptor of the event. The variable
  // SYNCOPATE_MET_FD gives the descriptor to the role, which reports through it that it has met the
  // other roles.
  void share_with(RoleCommand& command) const;
  // Returns whether a role has reported that all roles have met.
  bool is_over() noexcept;

 private:
  WakeEvent event_;
  bool is_over_ = false;
};

}  // namespace syncopate
