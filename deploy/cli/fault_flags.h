// Parses the flags of fault injection: slow links for `train` and `serve`, compute delays for
// `train`.
#pragma once

#include <string>
#include <vector>

#include "deploy/cli/flag_set.h"
#include "ps/net/slow_link.h"
#include "strategies/strategy_options.h"
#include "worker/run/train_options.h"

namespace syncopate {

struct LinkFlags {
  std::string delay;  // delay of the link, such as "5ms"; "" adds no delay
  std::string rate;   // rate of the link, such as "1gbit"; "" sets no limit
};

struct FaultFlags {
  std::string service_time;  // "" adds no compute delay
  std::vector<std::string> slow;
  std::vector<std::string> pauses;
  LinkFlags link;
};

// Adds the flags --link-delay and --link-rate.
void add_link_flags(FlagSet& flags, LinkFlags& link);
// Adds the flags --service-time, --slow and --pause, and the flags of add_link_flags().
void add_fault_flags(FlagSet& flags, FaultFlags& faults);

// Returns the link that the flags describe. Throws UsageError for a wrong value.
Link link_of(const LinkFlags& flags);

// Fills options.link; with a slow link, --transport auto means TCP. Throws UsageError if the
// strategy has no link that could be slowed.
void check_link(const LinkFlags& flags, StrategyOptions& options);

// Fills options.loop.service_time; options.cluster must be filled before. Throws UsageError for a
// wrong value and, unless the number of replicas follows from the GPUs, for a worker that the job
// does not have.
void check_compute_delays(const FlagSet& flags, const FaultFlags& faults, TrainOptions& options);

}  // namespace syncopate
