// Which CPUs a process may use, and their sharing out.
#pragma once

#include <sched.h>

#include <vector>

namespace syncopate {

// The CPUs the calling thread may run on, ascending; never empty.
std::vector<int> usable_cpus();

// Part `part` of `parts` of these CPUs, contiguous and of about equal size; all of them when there
// are fewer than parts, since two that are bound to one CPU would only wait for each other.
std::vector<int> cpu_share(const std::vector<int>& cpus, int part, int parts);

cpu_set_t to_cpu_set(const std::vector<int>& cpus);

// Binds the calling thread, and those it starts from now on. What the system refuses stays as it
// is: it costs speed and nothing else.
void bind_this_thread(const std::vector<int>& cpus) noexcept;

}  // namespace syncopate
