// A clock that poll(2) can wait for: its descriptor is readable once it rings.
#pragma once

#include <chrono>

#include "models/base/file_descriptor.h"

namespace syncopate::ps::wire {

// One thread only.
class Alarm {
 public:
  // Throws FileError.
  Alarm();

  int descriptor() const noexcept { return timer_.get(); }
  // Once, so long from now; 0: it rings at once and goes on until it is set anew. The last word
  // counts.
  void set(std::chrono::nanoseconds from_now) noexcept;
  void clear() noexcept;

 private:
  enum class State { kOff, kRinging, kSet };
  void write(std::chrono::nanoseconds from_now) noexcept;

  FileDescriptor timer_;
  State state_ = State::kOff;  // saves system calls
};

}  // namespace syncopate::ps::wire
