// Tells launch when the roles of a job have met. Until then nothing is trained, and a failed role
// leaves the others waiting.
#pragma once

#include "deploy/launch/role_process.h"
#include "models/base/file_descriptor.h"

namespace syncopate {

// Used by launch's thread only.
class RendezvousEvent {
 public:
  // Throws FileError when the system has no descriptor left.
  RendezvousEvent();

  // Lets the role report that it has met the others: it inherits the event, and SYNCOPATE_MET_FD
  // names the descriptor.
  void share_with(RoleCommand& command) const;
  // Returns whether a role has reported that all have met.
  bool is_over() noexcept;

 private:
  FileDescriptor event_;
  bool is_over_ = false;
};

}  // namespace syncopate
