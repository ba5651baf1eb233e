#include "models/base/affinity.h"

namespace syncopate {

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> cpu_share(const std::vector<int>& cpus, int part, int parts) {
  const auto count = static_cast<long>(cpus.size());
  if (count < parts) return cpus;
  return {cpus.begin() + count * part / parts, cpus.begin() + count * (part + 1) / parts};
}

cpu_set_t to_cpu_set(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

void bind_this_thread(const std::vector<int>& cpus) noexcept {
  const cpu_set_t set = to_cpu_set(cpus);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace syncopate
