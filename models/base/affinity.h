// Finds the CPUs that a process may use, and divides them among replicas or tasks.
#pragma once

#include <sched.h>

#include <vector>

namespace syncopate {

// Returns the CPUs that the calling thread may run on, in ascending order; never empty.
std::vector<int> usable_cpus();

// Divides the CPUs into `parts` contiguous, nearly equal shares and returns share `part`, counted
// from 0. Returns all CPUs when there are fewer CPUs than parts, because two threads bound to one
// CPU would wait for each other.
std::vector<int> cpu_share(const std::vector<int>& cpus, int part, int parts);

cpu_set_t to_cpu_set(const std::vector<int>& cpus);

// Binds the calling thread, and the threads it starts later, to `cpus`. A refusal by the system is
// ignored because binding affects speed only.
void bind_this_thread(const std::vector<int>& cpus) noexcept;

}  // namespace syncopate
