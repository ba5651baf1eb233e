// Computes when the steps of a synchronous job end under the virtual clock, without training.
//
// mirrored, multi-worker-mirrored: all workers wait for the slowest worker, then for one ring
// all-reduce. central-storage, parameter-server: a worker sends its gradient to each server as soon
// as the gradient is computed. When a server has the gradients of all workers, it sends the new
// values to all workers. A worker continues when it has the values of every server. Updates take no
// time unless server_bytes_per_second is set. pipeline: a worker is a stage (pipeline_times.h).
//
// A kill restarts the job as `launch --restart` does. The current step is lost. All workers wait
// until the killed worker is back, and until all workers except rank 0 have received the values.
// The steps since the last checkpoint are repeated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "bench/virtual_clock/job_lines.h"
#include "bench/virtual_clock/pipeline_times.h"
#include "bench/virtual_clock/time_model.h"

namespace syncopate::bench {

struct StepTimesOptions {
  std::string strategy;  // name of the strategy, for error messages
  int workers = 1;
  std::vector<std::int64_t> value_bytes;  // bytes of the values on each server
  bool has_servers = false;               // false: the workers all-reduce all bytes
  std::int64_t checkpoint_every = 0;      // steps between checkpoints; 0: none
  // The bytes of gradients that a server applies per second; 0: no limit. Only `plan` sets this.
  double server_bytes_per_second = 0.0;
  std::optional<PipelineLoad> pipeline{};  // if set, each worker computes a stage
};

// Simulates the steps of one job. One thread only.
class StepTimes {
 public:
  StepTimes(StepTimesOptions options, const FaultInjection& faults, std::uint64_t seed);

  // Simulates the next step, which has the number `step`. gradient_bytes: the bytes of a gradient
  // for each server. Returns the time at which the last worker has the new values. Throws PeerError
  // if a worker is killed during the step and is not restarted.
  VirtualTime step(std::int64_t step, std::span<const std::int64_t> gradient_bytes);
  // Returns the time accounts of all workers. WorkerAccount::samples is not set.
  std::span<const WorkerAccount> accounts() const noexcept { return now_.accounts; }

 private:
  struct State {
    std::vector<VirtualTime> ready;  // when each worker has the values for its next step
    std::vector<VirtualTime> computed;
    std::vector<WorkerAccount> accounts;
    Network network;
    ComputeDelays delays;
  };

  void compute(State& state, std::int64_t step) const;
  VirtualTime all_reduce(State& state) const;
  VirtualTime pass_stages(State& state, std::int64_t step) const;
  VirtualTime exchange(State& state, std::span<const std::int64_t> gradient_bytes) const;
  // Simulates a step of the job. If a kill interrupts the step, simulates the restart and the step
  // again.
  VirtualTime simulate(std::int64_t step, std::span<const std::int64_t> gradient_bytes);
  // Adds the time that a kill and the restart cost. attempt: the state after the step without the
  // kill.
  void restart_after(const Kill& kill, const State& attempt);
  VirtualTime fetch(int worker, VirtualTime from);

  const StepTimesOptions options_;
  const Link link_;
  std::int64_t total_bytes_ = 0;
  std::vector<Kill> kills_;  // kills that have not happened yet; the next one is the last element
  State now_;
  State next_;  // the step being simulated; a member to reuse its memory
};

}  // namespace syncopate::bench
