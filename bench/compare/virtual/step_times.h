// When workers that keep step are done with each step, under the virtual clock: arithmetic only.
//
// mirrored, multi-worker-mirrored: all wait for the slowest, then for one ring all-reduce.
// central-storage, parameter-server: a worker's gradient goes to each server as soon as it is
// computed; a server that has all of them sends the new values to all; a worker goes on when it has
// those of every server.
//
// A worker that is killed ends the job: the step under way is lost, all stand still until it is
// back and those that are not rank 0 have fetched the values, and what was trained since the last
// checkpoint is done again. As real jobs do (launch --restart).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/compare/virtual/job_lines.h"
#include "bench/compare/virtual/network.h"
#include "bench/compare/virtual/service_times.h"
#include "bench/harness/fault_injection.h"

namespace syncopate::bench {

struct StepTimesOptions {
  std::string strategy;  // for messages
  int workers = 1;
  std::vector<std::int64_t> value_bytes;  // of each server's part
  bool has_servers = false;               // else all-reduce of all bytes
  std::int64_t checkpoint_every = 0;      // steps; 0: never
};

// One thread only.
class StepTimes {
 public:
  StepTimes(StepTimesOptions options, const Trouble& trouble, std::uint64_t seed);

  // Makes step `step`, the one after the last. gradient_bytes: to each server. Returns when the
  // last worker has the values of after it. Throws PeerError when a worker is killed meanwhile and
  // does not come back.
  VirtualTime step(std::int64_t step, std::span<const std::int64_t> gradient_bytes);
  // Without samples.
  std::span<const WorkerAccount> accounts() const noexcept { return now_.accounts; }

 private:
  struct State {
    std::vector<VirtualTime> ready;  // each worker has the values for its next step
    std::vector<VirtualTime> computed;
    std::vector<WorkerAccount> accounts;
    Network network;
    ServiceTimes services;
  };

  void compute(State& state, std::int64_t step) const;
  VirtualTime all_reduce(State& state) const;
  VirtualTime exchange(State& state, std::span<const std::int64_t> gradient_bytes) const;
  // Also again after a kill.
  VirtualTime make(std::int64_t step, std::span<const std::int64_t> gradient_bytes);
  // `attempt`: what the step would have been.
  void stand_still(const Kill& kill, const State& attempt);
  VirtualTime fetch(int worker, VirtualTime from);

  const StepTimesOptions options_;
  const Link link_;
  std::int64_t total_bytes_ = 0;
  std::vector<Kill> kills_;  // ahead, the next one last
  State now_;
  State next_;  // reused
};

}  // namespace syncopate::bench
