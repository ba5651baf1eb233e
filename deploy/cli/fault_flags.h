// The flags of fault injection: slow links of `train` and `serve`, compute delays of `train`.
#pragma once

#include <string>
#include <vector>

#include "deploy/cli/flag_set.h"
#include "ps/net/link.h"
#include "strategies/strategy.h"
#include "worker/run/train_options.h"

namespace syncopate {

struct LinkFlags {
  std::string delay;  // "": none
  std::string rate;   // "": unlimited
};

struct FaultFlags {
  std::string service_time;  // "": none
  std::vector<std::string> slow;
  std::vector<std::string> pauses;
  LinkFlags link;
};

// --link-delay, --link-rate.
void add_link_flags(FlagSet& flags, LinkFlags& link);
// --service-time, --slow, --pause and those of the link.
void add_fault_flags(FlagSet& flags, FaultFlags& faults);

// Throws UsageError.
Link link_of(const LinkFlags& flags);

// Fills options.link; with a slow link --transport auto means TCP. Throws UsageError where the
// strategy has no link that could be slowed.
void check_link(const LinkFlags& flags, StrategyOptions& options);

// Fills options.loop.service_time. options.cluster is known. Throws UsageError, also for a worker
// that the job does not have.
void check_compute_delays(const FlagSet& flags, const FaultFlags& faults, TrainOptions& options);

}  // namespace syncopate
