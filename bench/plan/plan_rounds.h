// The rounds of local updates in a plan: how long they take, what a worker sends, and the memory of
// a task.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/virtual_clock/timing.h"
#include "worker/run/run_memory.h"

namespace syncopate::bench {

// The rounds of a row of the plan.
struct PlannedRounds {
  std::int64_t steps = 1;            // steps in a round
  double seconds = 0.0;              // mean time of a round
  double summed_share = 0.0;         // fraction of the steps before the first round
  double sent_bytes_per_step = 0.0;  // that a worker sends, mean over all steps
  RunMemory memory;                  // of a task
};

// Plans the rounds of a job. timing: the options of its rounds. rounds: their simulated timing.
// summed_share: the fraction of the steps before the first round, which sum gradients. memory: of a
// task.
PlannedRounds plan_rounds(const TimingOptions& timing, const TimingResult& rounds,
                          double summed_share, const RunMemory& memory);

// Returns the timing of a run that first sums gradients in every step, and then trains in rounds of
// `steps` steps. sums, rounds: the simulated timing of each part. summed_share: the fraction of the
// steps that sum gradients.
TimingResult timing_of_both(const TimingResult& sums, const TimingResult& rounds,
                            double summed_share, std::int64_t steps);

// Returns the cells of a table of rounds without those that name the row, and their headings.
std::vector<std::string> headings_of_rounds();
std::vector<std::string> cells_of(const PlannedRounds& rounds);
nlohmann::json json_of(const PlannedRounds& rounds);

}  // namespace syncopate::bench
