#include "bench/compare/virtual/virtual_training.h"

#include "bench/compare/virtual/job_lines.h"
#include "bench/compare/virtual/virtual_asynchronous_job.h"
#include "bench/compare/virtual/virtual_device.h"
#include "bench/compare/virtual/virtual_synchronous_job.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {
namespace {

Summary summary_of(const VirtualRun& run, const VirtualPlan& plan, const VirtualDevice& device,
                   const VirtualOutcome& outcome) {
  const ps::StalenessHistogram staleness = merge_staleness(outcome.staleness);
  const WorkerAccount all = sum_of(outcome.accounts);
  const double seconds = seconds_of(outcome.end);
  return {
      .strategy = plan.strategy.name,
      .model = run.options.model,
      .data = run.options.data,
      .device = device.backend().description(),
      .replicas = plan.workers,
      .global_batch = plan.batch(),
      .steps = outcome.sums.step,
      .samples = outcome.sums.samples,
      .seconds = seconds,
      .samples_per_second = StepTotals::ratio(static_cast<double>(outcome.sums.samples), seconds),
      .train_loss = outcome.train_loss,
      .test_accuracy = outcome.test.accuracy,
      .test_loss = outcome.test.loss,
      .staleness_mean = staleness.mean(),
      .staleness_max = static_cast<std::int64_t>(staleness.max()),
      .communication_exposed_fraction =
          StepTotals::ratio(seconds_of(all.communication + all.peers), seconds_of(all.all())),
      .weights_hash = outcome.weights_hash,
      .staleness = outcome.staleness};
}

}  // namespace

Summary train_virtually(const VirtualRun& run, MetricsWriter& metrics,
                        const std::function<void(double fraction)>& progress) {
  const VirtualPlan plan = plan_of(run);
  VirtualDevice device(plan.strategy, run.graph, *run.data.test,
                       {.threads = run.options.input.threads});
  const VirtualOutcome outcome =
      plan.is_synchronous ? train_synchronously(run, plan, device, metrics, progress)
                          : VirtualAsynchronousJob(run, plan, device, metrics, progress).run();
  Summary summary = summary_of(run, plan, device, outcome);
  metrics.write(summary);
  return summary;
}

}  // namespace syncopate::bench
