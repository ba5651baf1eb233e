// Runs `syncopate-bench ps`, which compares pushes and pulls between workers and parameter servers
// with raw ZeroMQ. Every side is a group of processes on this machine.
#pragma once

#include <string>
#include <vector>

#include "bench/harness/contest.h"

namespace syncopate::bench {

struct PsOptions {
  std::vector<std::string> sizes = {"64", "256", "4K", "64K", "1M", "4M", "16M", "64M"};
  std::string message = "1M";  // largest number of bytes in one message
  std::string variable;        // size of each variable; empty: one variable holds all bytes
  int workers = 1;
  int servers = 1;
  std::vector<std::string> transports = {"shm", "tcp"};  // transports of this program's jobs
  std::vector<std::string> optimizers = {"sgd"};
  // The compressions of this program's jobs, as in train --compress.
  std::vector<std::string> compressions = {"none"};
  std::string consistency = "async";
  std::string peer;      // "zmq" or "none"; empty: zmq if it is built
  int idle_seconds = 0;  // 0: the CPU time of idle servers is not measured
  int rounds = 7;
  double seconds_per_turn = 0.25;
  std::string json_file;
  bool quick = false;
};

// Measures each size in turn and prints one table per size. Throws UsageError, UnavailableError if
// the requested peer is not built, and PeerError if a side fails.
void run_ps(PsOptions options);

// Returns the sides of the contest that are jobs of this program.
std::vector<ContestSide> own_ps_sides(const PsOptions& options, const std::string& program);

}  // namespace syncopate::bench
