// The rounds of VirtualAsynchronousJob: workers that push displacements.
#include <algorithm>
#include <utility>

#include "bench/virtual_clock/virtual_asynchronous_job.h"
#include "models/optim/outer_rule.h"

namespace syncopate::bench {

void VirtualAsynchronousJob::end_step_of_round(int w) {
  VirtualWorker& of = worker(w);
  if (of.round.empty()) of.start = of.values;
  if (!of.inner) of.inner.emplace(plan_.strategy.optimizer, std::ssize(of.values));
  const Scores scores = compute_gradient(of);
  device_.update(*of.inner,
                 {.learning_rate = static_cast<float>(of.learning_rate), .step = ++of.updates});
  std::ranges::copy(device_.values().f32(), of.values.begin());
  of.round.push_back({*of.lease, scores});
  of.lease.reset();
  WorkerAccount& times = account(w);
  ++times.steps;
  times.samples += scores.num_samples;
  times.compute += of.compute;
  of.computed = now();
  if (std::ssize(of.round) == plan_.strategy.local.sync_every) return push_round(w);
  of.doing = VirtualWorker::Doing::kIdle;
  of.idle_since = now();
  waiting_.push_back(w);
}

void VirtualAsynchronousJob::push_round(int w) {
  VirtualWorker& of = worker(w);
  displacement(device_.gradients().f32(), of.start, of.values, 1.0F);
  take_push(of, std::exchange(of.round, {}), shard_outer_options(plan_.strategy).learning_rate);
  if (plan_.strategy.local.inner_state == InnerState::kReset) {
    of.inner.reset();
    of.updates = 0;
  }
  of.computed = now();
  of.doing = VirtualWorker::Doing::kExchanging;
  for (BucketId b = 0; b < buckets_.count(); ++b) send(w, b);
}

bool VirtualAsynchronousJob::push_incomplete_rounds() {
  if (!has_rounds() || !is_all_handed_out()) return false;
  std::vector<int> due;
  for (const int w : waiting_) {
    if (!worker(w).round.empty()) due.push_back(w);
  }
  for (const int w : due) {
    std::erase(waiting_, w);
    account(w).peers += now() - worker(w).idle_since;
    push_round(w);
  }
  return !due.empty();
}

}  // namespace syncopate::bench
