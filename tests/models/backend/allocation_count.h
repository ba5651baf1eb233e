// Counts what this program itself allocates. Calls made inside shared libraries are not counted:
// oneDNN allocates 5 to 8 times in every execute, and that is not ours to change.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace syncopate {

// While it lives, allocations are counted; at most one at a time. Needs a program linked with
// allocation_count.cc, and no sanitizer, which brings an allocator of its own.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  std::int64_t calls() const;
  // Where the first ones were made, as offsets for addr2line -e.
  std::string callers() const;
};

}  // namespace syncopate
