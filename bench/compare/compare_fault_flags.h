// The flags of compare for fault injection.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/compare_options.h"
#include "deploy/cli/flag_set.h"

namespace syncopate::bench {

// One thread only.
class CompareFaultFlags {
 public:
  // Declares the flags. This object and `flags` outlive the parsing.
  void declare(FlagSet& flags);
  // Called after the flags are parsed, when clock and variants are known: adds the faults to
  // options.faults and, as text, to options.fault_flags. Throws UsageError, also for a worker
  // that no variant has.
  void apply(CompareOptions& options) const;

 private:
  std::string service_time_;
  std::vector<std::string> slow_;
  std::vector<std::string> pauses_;
  std::vector<std::string> kills_;
  std::vector<std::string> joins_;
  std::string link_delay_;
  std::string link_rate_;
};

}  // namespace syncopate::bench
