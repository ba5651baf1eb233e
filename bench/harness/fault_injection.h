// Fault injection with one schedule for every strategy: slow, paused, killed and late workers, and
// a slow network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deploy/launch/join.h"
#include "ps/net/link.h"
#include "worker/train/service_time.h"

namespace syncopate::bench {

struct Kill {
  int worker = 0;
  double at_seconds = 0.0;                // since training began
  std::optional<double> restart_seconds;  // after the kill; empty: it is not restarted
};

struct FaultInjection {
  // The compute delay of every worker. `worker` and `seed` are set by the code that draws delays;
  // slow workers and pauses are those below.
  ServiceTimeOptions service_time;
  // The computation of every step besides that delay, under the virtual clock; longer for slow
  // workers.
  double compute_seconds = 0.0;
  std::vector<Slowness> slow;
  std::vector<Pause> pauses;
  std::vector<Kill> kills;
  std::vector<Join> joins;
  Link link;
};

// "worker=2,at=30s[,restart=5s]". Throws UsageError.
Kill parse_kill(const std::string& text);

// A note for the report: the run ended before the kill.
std::string never_took_place(const Kill& kill);

// The worker that a fault flag of compare with this value concerns; empty for compute delays, links
// and joins, which concern all workers or a new one. Throws UsageError.
std::optional<int> worker_of_fault(const std::string& flag, const std::string& value);

}  // namespace syncopate::bench
