// Counts the allocations of this program's own code. Calls made inside shared libraries are not
// counted: oneDNN allocates 5 to 8 times in every execute, which this project cannot change.
#pragma once

#include <cstdint>
#include <string>

namespace syncopate {

// An AllocationCount counts allocations while it lives. There is at most one object at a time. The
// program must be linked with allocation_count.cc, and without a sanitizer, which has its own
// allocator.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  std::int64_t calls() const;
  // Returns the return addresses of the first calls of an allocation function, as offsets for
  // addr2line -e.
  std::string callers() const;
};

}  // namespace syncopate
