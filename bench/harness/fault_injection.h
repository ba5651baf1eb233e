// Describes fault injection with one schedule for every strategy: slow, paused, killed and late
// workers, and a slow network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deploy/launch/launch_rules.h"
#include "ps/net/slow_link.h"
#include "worker/train/service_time.h"

namespace syncopate::bench {

struct Kill {
  int worker = 0;
  double at_seconds = 0.0;                // seconds from the start of training
  std::optional<double> restart_seconds;  // seconds from the kill; empty: no restart
};

struct FaultInjection {
  // The compute delay of every worker. The code that draws delays sets `worker` and `seed`; slow
  // workers and pauses come from `slow` and `pauses` below.
  ServiceTimeOptions service_time;
  // The computation time of every step under the virtual clock, in addition to the compute delay.
  // Slow workers multiply it.
  double compute_seconds = 0.0;
  std::vector<Slowness> slow;
  std::vector<Pause> pauses;
  std::vector<Kill> kills;
  std::vector<Join> joins;
  Link link;
};

// Parses a kill, "worker=2,at=30s[,restart=5s]". Throws UsageError when the text has another form.
Kill parse_kill(const std::string& text);

// Returns a note for the report, which says that the run ended before the kill.
std::string never_took_place(const Kill& kill);

// Returns the worker that a fault flag of compare with this value concerns. The result is empty for
// compute delays, links and joins, which concern all workers or a new one. Throws UsageError.
std::optional<int> worker_of_fault(const std::string& flag, const std::string& value);

}  // namespace syncopate::bench
