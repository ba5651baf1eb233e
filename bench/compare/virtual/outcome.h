// What a virtual job came to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/compare/virtual/event_queue.h"
#include "bench/compare/virtual/job_lines.h"
#include "ps/shard/shard.h"
#include "strategies/asynchronous_job.h"
#include "worker/train/evaluate.h"

namespace syncopate::bench {

struct VirtualOutcome {
  JobSums sums;
  VirtualTime end{0};
  double train_loss = 0.0;
  Evaluation test;
  std::string weights_hash;
  std::vector<WorkerAccount> accounts;     // by worker
  std::vector<WorkerStaleness> staleness;  // empty where workers keep step
};

// Throws DivergenceError, naming step and rate, unless values and slots are numbers.
void require_finite(const ps::Shard& shard, std::int64_t step, double learning_rate);

}  // namespace syncopate::bench
