// The descriptors that one thread waits for, each with a number that the caller chose. A wait costs
// time in proportion to the readable descriptors, unlike poll(2). Source: epoll(7).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "models/base/file_descriptor.h"

namespace syncopate {

// One thread only. The level counts: a descriptor is reported as long as it is readable.
class ReadableSet {
 public:
  // Keeps descriptors in the set. Destroy it before the set and before the descriptors are closed.
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

  // Waits until a descriptor is readable or the timeout has passed. Returns the numbers that
  // readable descriptors were registered with: ascending, each once.
  std::vector<std::uint32_t> wait(std::chrono::milliseconds timeout);

 private:
  FileDescriptor epoll_;
};

}  // namespace syncopate
