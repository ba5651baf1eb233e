// Computes when the steps of a synchronous job end under the virtual clock, without training.
//
// Workers exchange something at the end of every round. A round is one step, except with local-sgd:
// then each worker computes the steps of a round one after the other, without waiting.
//
// mirrored, multi-worker-mirrored: a ring all-reduce of each bucket begins when the gradients of
// all workers are complete and the all-reduce of the bucket before has ended. All workers wait for
// the last one. central-storage, parameter-server: a worker sends the gradients of each bucket as
// soon as they are complete. When the bucket's server has the gradients of all workers, it updates
// the bucket and sends the new values to all workers. A worker continues when it has the values of
// its first layers (timed_buckets.h). pipeline: a worker is a stage (pipeline_times.h).
//
// A kill restarts the job as `launch --restart` does. The current step is lost. All workers wait
// until the killed worker is back, and until all workers except rank 0 have received the values.
// The steps since the last checkpoint are repeated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "bench/virtual_clock/job_lines.h"
#include "bench/virtual_clock/pipeline_times.h"
#include "bench/virtual_clock/time_model.h"
#include "bench/virtual_clock/timed_buckets.h"

namespace syncopate::bench {

struct StepTimesOptions {
  std::string strategy;  // name of the strategy, for error messages
  int workers = 1;
  TimedBuckets buckets;
  std::int64_t steps_per_exchange = 1;  // steps in a round; above 1 only for an all-reduce
  // The first steps, which are rounds of one step, and their buckets, as many as `buckets`.
  std::int64_t summed_steps = 0;
  TimedBuckets summed_buckets{};
  std::int64_t checkpoint_every = 0;       // steps between checkpoints; 0: none
  std::optional<PipelineLoad> pipeline{};  // if set, each worker computes a stage
};

// Simulates the steps of one job. One thread only.
class StepTimes {
 public:
  StepTimes(StepTimesOptions options, const FaultInjection& faults, std::uint64_t seed);

  // Simulates the next round, which ends with step `step`: its steps and then the exchange. The
  // last round of a job may have fewer steps than the others. gradient_bytes: the bytes of the
  // gradients of each bucket; unused without servers. Returns the time at which the last worker has
  // the new values. Throws PeerError if a worker is killed during the step and is not restarted.
  VirtualTime step(std::int64_t step, std::span<const std::int64_t> gradient_bytes);
  // Returns the time accounts of all workers. WorkerAccount::samples is not set.
  std::vector<WorkerAccount> accounts() const;

 private:
  struct Worker {
    VirtualTime ready{0};           // when the worker begins its next step
    std::vector<BucketTrip> trips;  // of the last step, by bucket
    // The times of the current step: when it began to compute without further waiting, how long it
    // computes, and when it has computed.
    VirtualTime started{0};
    VirtualTime compute{0};
    VirtualTime computed{0};
    WorkerAccount account;
  };
  struct State {
    std::vector<Worker> workers;
    std::vector<VirtualTime> server_free;  // when each server has done its updates
    Network network;
    ComputeDelays delays;
  };
  // The gradients of a bucket that a worker sends.
  struct Push {
    VirtualTime at{0};
    std::size_t worker = 0;
    BucketId bucket = 0;
  };

  // Returns the number of steps in the round that ends with this step.
  std::int64_t steps_of_round(std::int64_t step) const {
    const std::int64_t first = options_.summed_steps;
    return step <= first ? 1 : (step - first - 1) % options_.steps_per_exchange + 1;
  }
  // Returns the last step of the whole round that contains this step.
  std::int64_t end_of_round(std::int64_t step) const {
    if (step <= options_.summed_steps) return step;
    return step - steps_of_round(step) + options_.steps_per_exchange;
  }
  const TimedBuckets& buckets_of(std::int64_t step) const {
    return step <= options_.summed_steps ? options_.summed_buckets : options_.buckets;
  }
  // Returns the last step that a checkpoint has when the round that ends with `step` begins.
  std::int64_t saved_before(std::int64_t step) const;
  void compute(State& state, std::int64_t step) const;
  VirtualTime all_reduce(State& state, std::int64_t step) const;
  VirtualTime pass_stages(State& state, std::int64_t step) const;
  VirtualTime exchange(State& state, std::span<const std::int64_t> gradient_bytes) const;
  std::vector<Push> pushes_of(const State& state) const;
  // Sends the values of the buckets, which are updated at these times, to all workers.
  void answer(State& state, std::vector<std::pair<VirtualTime, BucketId>> updates) const;
  // Simulates a round of the job. If a kill interrupts it, simulates the restart and the round
  // again.
  VirtualTime simulate(std::int64_t step, std::span<const std::int64_t> gradient_bytes);
  // Adds the time that a kill and the restart cost. attempt: the state after the step without the
  // kill.
  void restart_after(const Kill& kill, const State& attempt);
  VirtualTime fetch(int worker, VirtualTime from);

  const StepTimesOptions options_;
  const Link link_;
  const double server_bytes_per_second_;
  const std::vector<std::int64_t> bytes_by_server_;
  const std::int64_t total_bytes_;
  std::vector<Kill> kills_;  // kills that have not happened yet; the next one is the last element
  State now_;
  State next_;  // the round being simulated; a member to reuse its memory
};

}  // namespace syncopate::bench
