#include "bench/virtual_clock/job_lines.h"

#include <algorithm>
#include <utility>

#include "worker/train/due.h"
#include "worker/train/metrics.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {
namespace {

// Returns the totals of the steps from sums.step + 1 to `last`, which took `seconds`.
StepTotals tally_of(const JobSums& sums, std::int64_t last, double seconds) {
  return {.loss = sums.loss,
          .seconds = seconds,
          .steps = last - sums.step,
          .metric = sums.metric,
          .samples = sums.samples};
}

}  // namespace

JobLines::JobLines(const VirtualPlan& plan, std::int64_t total_steps, MetricsWriter& metrics,
                   std::function<void(double)> progress)
    : log_every_steps_(std::max<std::int64_t>(plan.loop.log_every_steps, 1)),
      on_validation_(plan.final_test != nullptr),
      total_steps_(std::max<std::int64_t>(total_steps, 1)),
      metrics_(metrics),
      progress_(std::move(progress)) {}

void JobLines::add(const Scores& scores, std::int64_t steps) {
  for (JobSums* sums : {&sums_, &epoch_, &line_}) {
    sums->loss += scores.loss;
    sums->metric += scores.metrics[kMainMetric];
    sums->samples += scores.num_samples;
  }
  sums_.step = steps;
}

double JobLines::train_loss() const { return tally_of(epoch_, sums_.step, 0.0).mean_loss(); }

void JobLines::step(const Moment& moment, std::span<const WorkerAccount> workers, bool is_last) {
  if (progress_) {
    progress_(static_cast<double>(sums_.step) / static_cast<double>(total_steps_));
  }
  if (sums_.step == line_.step) return;
  if (is_last || has_passed(log_every_steps_, line_.step, sums_.step)) write_line(moment, workers);
}

void JobLines::write_line(const Moment& moment, std::span<const WorkerAccount> workers) {
  const StepTotals line = tally_of(line_, sums_.step, seconds_of(moment.at - line_at_));
  const WorkerAccount all = sum_of(workers);
  const auto steps = static_cast<double>(std::max<std::int64_t>(all.steps - all_at_line_.steps, 1));
  const VirtualTime waited = all.waited() - all_at_line_.waited();
  metrics_.write(
      StepMetrics{.step = sums_.step,
                  .epoch = moment.epochs,
                  .loss = line.mean_loss(),
                  .metric = line.mean_metric(LossKind::kSoftmaxCrossEntropy),
                  .learning_rate = moment.learning_rate,
                  .samples = sums_.samples,
                  .seconds = seconds_of(moment.at),
                  .samples_per_second = line.samples_per_second(),
                  .compute_seconds = seconds_of(all.compute - all_at_line_.compute) / steps,
                  .communication_exposed_seconds = seconds_of(waited) / steps,
                  .staleness_mean = moment.staleness_mean,
                  .staleness_max = moment.staleness_max,
                  .round = moment.round});
  line_ = {.step = sums_.step};
  line_at_ = moment.at;
  all_at_line_ = all;
}

void JobLines::evaluation(const Moment& moment, const Evaluation& test) {
  metrics_.write(
      EvalMetrics{.step = sums_.step,
                  .epoch = moment.epochs,
                  .result = {.loss = test.loss, .metric = test.metric, .samples = test.samples},
                  .on_validation = on_validation_,
                  .trained_samples = sums_.samples,
                  .trained_seconds = seconds_of(moment.at)});
}

void JobLines::workers(std::span<const WorkerAccount> workers) {
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const WorkerAccount& account = workers[w];
    if (!account.has_joined) continue;
    metrics_.write(WorkerMetrics{
        .worker = static_cast<int>(w),
        .steps = account.steps,
        .samples = account.samples,
        .seconds = seconds_of(account.all()),
        .compute_seconds = seconds_of(account.compute),
        .communication_exposed_seconds = seconds_of(account.communication + account.servers),
        .peers_wait_seconds = seconds_of(account.peers),
        .bytes_sent = account.bytes_sent,
        .bytes_received = account.bytes_received,
        .dropped_steps = account.dropped});
  }
}

void require_finite(std::span<const Tensor> tensors, std::int64_t step, double learning_rate) {
  if (std::ranges::all_of(tensors, [](const Tensor& tensor) { return all_finite(tensor); })) return;
  throw diverged("the weights or the optimizer's slots are no longer finite",
                 {.step = step, .learning_rate = learning_rate});
}

std::vector<Tensor> tensors_of(const ps::Shard& shard) {
  std::vector<Tensor> tensors{shard.values()};
  for (const Tensor& slot : shard.slots()) tensors.push_back(slot);
  return tensors;
}

}  // namespace syncopate::bench
