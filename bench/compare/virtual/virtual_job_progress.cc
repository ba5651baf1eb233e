// VirtualJob: how far it is, and what is said of it.
#include <cmath>

#include "bench/compare/virtual/virtual_job.h"
#include "worker/train/divergence.h"

namespace syncopate::bench {

void VirtualJob::count_batch(const Scores& scores) {
  lines_.add(scores, ledger_.batches_trained() / batches_per_step_);
  if (!std::isfinite(scores.loss)) {
    throw diverged(describe_divergence(scores.loss),
                   {.step = lines_.sums().step, .learning_rate = learning_rate_});
  }
  lines_.step(moment(), accounts_, false);
  // At the end, what is under way to other servers comes first.
  if (!is_over() && evaluation_due()) evaluate();
}

// As ps/coordinator/cuts.cc.
bool VirtualJob::evaluation_due() const {
  const TrainLoopOptions& loop = plan_.loop;
  const std::int64_t batches = ledger_.batches_trained();
  if (loop.eval_every_steps > 0) {
    return batches % batches_per_step_ == 0 && lines_.sums().step % loop.eval_every_steps == 0;
  }
  return loop.eval_every_epochs > 0 && batches % plan_.batches_per_epoch() == 0 &&
         batches / plan_.batches_per_epoch() % loop.eval_every_epochs == 0;
}

Evaluation VirtualJob::evaluate() {
  device_.load(shard_.values().f32());
  const Evaluation test = device_.evaluate(statistics_.average({}));
  lines_.evaluation(moment(), test);
  return test;
}

void VirtualJob::finish_accounts() {
  for (int w = 0; w < plan_.places; ++w) {
    VirtualWorker& of = worker(w);
    if (of.doing == VirtualWorker::Doing::kIdle && of.idle_since < end_)
      account(w).peers += end_ - of.idle_since;
    of.doing = VirtualWorker::Doing::kNothing;
  }
}

JobLines::Moment VirtualJob::moment() const {
  const std::int64_t samples_per_epoch = plan_.batches_per_epoch() * plan_.batch();
  return {
      .at = end_,
      .epochs = static_cast<double>(lines_.sums().samples) / static_cast<double>(samples_per_epoch),
      .learning_rate = learning_rate_,
      .staleness_mean = staleness_.mean(),
      .staleness_max = static_cast<std::int64_t>(staleness_.max())};
}

std::vector<WorkerStaleness> VirtualJob::staleness() const {
  std::vector<WorkerStaleness> all;
  for (const ps::StalenessHistogram& histogram : shard_.staleness()) {
    all.push_back({static_cast<int>(all.size()), histogram});
  }
  return all;
}

std::string VirtualJob::why_it_stands_still() const {
  const std::int64_t all = ledger_.options().total_batches;
  return "nobody is left to train: " + last_kill_ + ", when " +
         std::to_string(all - ledger_.batches_trained()) + " of " + std::to_string(all) +
         " batches were still to be trained; let workers come back with restart=SECONDS";
}

}  // namespace syncopate::bench
