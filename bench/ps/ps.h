// What `syncopate-bench ps` does, apart from its flags (ps_command.cc): pushes and pulls between
// workers and parameter servers beside raw transports, every side processes on this machine.
#pragma once

#include <string>
#include <vector>

#include "bench/ps/peers/contest.h"

namespace syncopate::bench {

struct PsOptions {
  std::vector<std::string> sizes = {"64", "256", "4K", "64K", "1M", "4M", "16M", "64M"};
  std::string message = "1M";  // at most so much in one
  std::string variable;        // size of each; "": all is one
  int workers = 1;
  int servers = 1;
  std::vector<std::string> transports = {"shm", "tcp"};  // of ours
  std::vector<std::string> optimizers = {"sgd"};
  std::string consistency = "async";
  std::vector<std::string> peers;  // empty: all
  int idle_seconds = 0;            // 0: what idle servers use is not measured
  int rounds = 7;
  double seconds_per_turn = 0.25;
  std::string json_file;
  bool quick = false;
};

// Measures each size in turn and prints a table for each. Throws UsageError, UnavailableError
// (ps_peers.h) and PeerError for a side that fails.
void run_ps(PsOptions options);

// Our sides for these options. Throws UsageError for a name it does not know.
std::vector<ExchangeSide> own_ps_sides(const PsOptions& options, const std::string& program);

}  // namespace syncopate::bench
