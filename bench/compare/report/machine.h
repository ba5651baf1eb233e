// The machine that a comparison ran on: measured times are valid for that machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syncopate::bench {

struct Machine {
  std::string host;
  std::string processor;  // name of the processor; empty if the kernel does not tell
  int cpus = 0;           // CPUs that the process may use
  int cores = 0;          // that these CPUs are threads of; 0 if the kernel does not tell
  std::vector<std::string> gpus;
  std::string version;  // version of syncopate
  std::string date;     // start of the comparison, local time: "2026-11-23 14:05"
};

// Returns this machine, with the time of the call as its date.
Machine machine_here(std::string version);

// Returns such as "Intel(R) Xeon(R) Platinum 8481C"; empty if the kernel does not tell.
std::string processor_name();

// Returns "node7: 2 CPUs on 1 core (Intel(R) Xeon(R)), no GPU; syncopate 0.1.0, 2026-11-23 14:05".
// The cores are left out where each CPU has its own.
std::string describe(const Machine& machine);

struct Comparison;
// Describes how the variant with the most threads used the CPUs: "4 workers of 1 thread shared 2
// CPUs". Empty if machines or threads are unknown, or if the clock is virtual.
struct CpuUse {
  std::string words;
  bool is_shared = false;  // whether there are more threads than CPUs
};
std::optional<CpuUse> cpu_use(const Comparison& comparison);

}  // namespace syncopate::bench
