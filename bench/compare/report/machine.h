// The machine on which a comparison ran. Measured times are valid only for this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syncopate::bench {

struct Machine {
  std::string host;
  std::string processor;  // name of the processor; "" if unknown
  int cpus = 0;           // number of CPUs that the process may use
  int cores = 0;          // number of cores that have these CPUs; 0 if unknown
  std::vector<std::string> gpus;
  std::string version;  // version of syncopate
  // The commit of syncopate (program_commit()), the instruction set of the CPU kernels, and the
  // version of oneDNN; "" if unknown.
  std::string commit{};
  std::string instruction_set{};
  std::string onednn{};
  std::string date;  // start of the comparison, local time: "2026-11-23 14:05"

  bool operator==(const Machine&) const = default;
};

// Returns a description of this machine, with the current time as its date.
Machine machine_here();

// Returns the name of the processor, such as "Intel(R) Xeon(R) Platinum 8481C"; "" if the kernel
// does not provide the name.
std::string processor_name();

// Returns text such as "node7: 2 CPUs on 1 core (Intel(R) Xeon(R)), no GPU; syncopate 0.1.0 (commit
// 50825c1e0b3a), x86-64-v4, oneDNN 3.1.0, 2026-11-23 14:05". Unknown parts are left out. The number
// of cores is left out if each CPU has a core of its own.
std::string describe(const Machine& machine);

struct Comparison;

// Returns the number of machines of the comparison. Machines that differ only in the commit and the
// date count once: their times may be compared.
int count_machines(const Comparison& comparison);

// How the variant with the most threads used the CPUs, such as "4 workers of 1 thread shared 2
// CPUs". Returned by cpu_use(), which returns nullopt if the machines or the number of threads are
// unknown, or if the clock is virtual.
struct CpuUse {
  std::string words;
  bool is_shared = false;  // whether there are more threads than CPUs
};
std::optional<CpuUse> cpu_use(const Comparison& comparison);

}  // namespace syncopate::bench
