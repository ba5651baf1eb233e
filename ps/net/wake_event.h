// Wakes a thread that waits in poll(2) for other things too.
#pragma once

#include "models/base/file_descriptor.h"

namespace syncopate {

// Thread-safe. Source: eventfd(2).
class WakeEvent {
 public:
  WakeEvent();  // throws FileError

  void notify() noexcept;
  // Forgets what was notified: before looking at what it was about.
  void clear() noexcept;
  // Readable from notify() to clear().
  int descriptor() const noexcept { return event_.get(); }

 private:
  FileDescriptor event_;
};

}  // namespace syncopate
