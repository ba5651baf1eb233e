// The CPUs that a process may use, and dividing them among replicas or tasks.
#pragma once

#include <sched.h>

#include <vector>

namespace syncopate {

// Returns the CPUs the calling thread may run on, ascending; never empty.
std::vector<int> usable_cpus();

// Returns share `part` (0-based) of `parts` contiguous, nearly equal shares of the CPUs. Returns
// all CPUs when there are fewer CPUs than parts: two threads bound to one CPU would only wait.
std::vector<int> cpu_share(const std::vector<int>& cpus, int part, int parts);

cpu_set_t to_cpu_set(const std::vector<int>& cpus);

// Binds the calling thread, and the threads it starts later, to `cpus`. A refusal by the system is
// ignored because binding affects speed only.
void bind_this_thread(const std::vector<int>& cpus) noexcept;

}  // namespace syncopate
