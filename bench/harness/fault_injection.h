// Trouble on purpose, the same schedule for every strategy: what slow, paused, killed and late
// workers and a poor network do to it.
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
  std::optional<double> restart_seconds;  // later; none: it stays away
};

struct Trouble {
  // Of every worker; `worker` and `seed` are set by whoever draws. factor and pauses: see below.
  ServiceTimeOptions service_time;
  // Of every step beside that draw, under the virtual clock; slow workers' is longer as well.
  double compute_seconds = 0.0;
  std::vector<Slowness> slow;
  std::vector<Pause> pauses;
  std::vector<Kill> kills;
  std::vector<Join> joins;
  Link link;
};

// "worker=2,at=30s[,restart=5s]". Throws UsageError.
Kill parse_kill(const std::string& text);

// For the report: the run was over before.
std::string never_took_place(const Kill& kill);

// The worker whose trouble a flag of compare with this value is; none where it is not one worker's:
// service times, links, and those who join, whatever their number. Throws UsageError.
std::optional<int> worker_of_trouble(const std::string& flag, const std::string& value);

}  // namespace syncopate::bench
