// Describes injected faults: slow, paused, killed and late workers, and a slow network. All
// strategies get the same schedule of faults.
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
  double at_seconds = 0.0;                // time from the start of training
  std::optional<double> restart_seconds;  // from the kill to the restart; empty: no restart
};

struct FaultInjection {
  // The compute delay of every worker. Its members `worker` and `seed` are set by the code that
  // draws delays. Slow workers and pauses are in `slow` and `pauses` below.
  ServiceTimeOptions service_time;
  // Under the virtual clock: the computation time of every step, in addition to the compute delay.
  // The computation time of a slow worker is multiplied by the factor of this worker.
  double compute_seconds = 0.0;
  // Under the virtual clock: the bytes of gradients that a server applies per second, one update at
  // a time; 0: updates take no time.
  double server_bytes_per_second = 0.0;
  std::vector<Slowness> slow;
  std::vector<Pause> pauses;
  std::vector<Kill> kills;
  std::vector<Join> joins;
  Link link;
};

// Parses a kill, such as "worker=2,at=30s" or "worker=2,at=30s,restart=5s". Throws UsageError when
// the text has another form.
Kill parse_kill(const std::string& text);

// Returns a note for the report that says that the run ended before this kill.
std::string never_took_place(const Kill& kill);

// Returns the worker that a fault flag of compare concerns. Returns nullopt for compute delays and
// links, which concern all workers, and for joins, which concern new workers. Throws UsageError for
// a wrong value.
std::optional<int> worker_of_fault(const std::string& flag, const std::string& value);

}  // namespace syncopate::bench
