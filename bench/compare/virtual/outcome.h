// What a virtual job came to.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/virtual/event_queue.h"
#include "bench/compare/virtual/job_lines.h"
#include "strategies/asynchronous_job.h"
#include "worker/evaluate.h"

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

}  // namespace syncopate::bench
