// On what a comparison ran: a verdict on time holds for that machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syncopate::bench {

struct Machine {
  std::string host;
  std::string processor;  // empty: the kernel does not tell
  int cpus = 0;           // that may be used
  std::vector<std::string> gpus;
  std::string version;  // of the program
  std::string date;     // when it began here, local time: "2026-11-23 14:05"

  bool is_same_as(const Machine& other) const;  // whatever the date
};

// This one, now.
Machine machine_here(std::string version);

// "Intel(R) Xeon(R) Platinum 8481C"; empty where the kernel does not tell.
std::string processor_name();

// "node7: 2 CPUs (Intel(R) Xeon(R)), no GPU; syncopate 0.1.0, 2026-11-23 14:05"
std::string describe(const Machine& machine);

struct Comparison;
// Of the machine's CPUs, by the variant with the most workers: "4 workers of 1 thread shared 2
// CPUs". Nothing where it is not told, or the clock is virtual.
struct CpuUse {
  std::string words;
  bool is_shared = false;  // there were more threads than CPUs
};
std::optional<CpuUse> cpu_use(const Comparison& comparison);

// Lines beneath a table: the machines, and how their CPUs were used.
std::vector<std::string> machine_lines(const Comparison& comparison);

}  // namespace syncopate::bench
