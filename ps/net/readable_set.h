// The descriptors that one thread waits for. Each descriptor has a number, which the caller
// chooses. The cost of a wait is proportional to the number of readable descriptors, not of all
// descriptors as with poll(2). Source: epoll(7).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "models/base/file_descriptor.h"

namespace syncopate {

// A set of descriptors that a thread waits for. Every wait() reports a descriptor again as long as
// the descriptor is readable (level-triggered). One thread only.
class ReadableSet {
 public:
  // The constructor adds descriptors to the set, and the destructor removes them. A registration
  // must be destroyed before the set, and before the descriptors are closed.
  class Registration {
   public:
    Registration(ReadableSet& set, std::vector<int> descriptors, std::uint32_t number);
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration();

   private:
    ReadableSet& set_;
    const std::vector<int> descriptors_;
  };

  ReadableSet();  // throws FileError

  // Waits until a descriptor is readable or the timeout has passed. Returns the numbers under which
  // the readable descriptors were registered, ascending and without duplicates.
  std::vector<std::uint32_t> wait(std::chrono::milliseconds timeout);

 private:
  FileDescriptor epoll_;
};

}  // namespace syncopate
