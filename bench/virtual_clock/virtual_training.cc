#include "bench/virtual_clock/virtual_training.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/virtual_clock/job_lines.h"
#include "bench/virtual_clock/step_times.h"
#include "bench/virtual_clock/virtual_asynchronous_job.h"
#include "bench/virtual_clock/virtual_device.h"
#include "bench/virtual_clock/virtual_variables.h"
#include "bench/virtual_clock/virtual_workers.h"
#include "models/base/errors.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/input/batches/batch_reader.h"
#include "worker/run/run_sizes.h"
#include "worker/train/due.h"
#include "worker/train/metrics.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {
namespace {

// Returns the last round of a job that has trained this number of steps, the summed ones included;
// nullopt before the first round.
std::optional<StepMetrics::Round> last_round(const VirtualPlan& plan, std::int64_t summed_steps,
                                             std::int64_t steps) {
  const std::int64_t length = plan.steps_per_exchange();
  const std::int64_t before_last = steps - summed_steps - 1;
  if (!plan.has_rounds() || before_last < 0) return std::nullopt;
  return StepMetrics::Round{.number = before_last / length + 1,
                            .inner_steps = before_last % length + 1};
}

Summary::Rounds rounds_of(const VirtualPlan& plan, const VirtualOutcome& outcome) {
  const auto last = last_round(plan, outcome.summed_steps, outcome.sums.step);
  return {.number = last ? last->number : 0,
          .exchange_seconds = seconds_of(sum_of(outcome.accounts).communication) / plan.workers};
}

Summary summary_of(const VirtualRun& run, const VirtualPlan& plan, const VirtualDevice& device,
                   const VirtualOutcome& outcome) {
  const ps::StalenessHistogram staleness = merge_staleness(outcome.staleness);
  const WorkerAccount all = sum_of(outcome.accounts);
  const double seconds = seconds_of(outcome.end);
  const auto shown = [](const Evaluation& found) {
    return Evaluation{.loss = found.loss, .metric = found.metric};
  };
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
      .test = shown(outcome.test),
      .validation = outcome.validation ? std::optional(shown(*outcome.validation)) : std::nullopt,
      .staleness_mean = staleness.mean(),
      .staleness_max = static_cast<std::int64_t>(staleness.max()),
      .communication_exposed_fraction =
          StepTotals::ratio(seconds_of(all.waited()), seconds_of(all.all())),
      .weights_hash = outcome.weights_hash,
      .staleness = outcome.staleness,
      .bytes_per_sample = plan.is_synchronous ? std::optional(StepTotals::ratio(
                                                    static_cast<double>(all.bytes_sent),
                                                    static_cast<double>(outcome.sums.samples)))
                                              : std::nullopt,
      .rounds = plan.has_rounds() ? std::optional(rounds_of(plan, outcome)) : std::nullopt};
}

// When the steps of a synchronous job happen in one cluster, and the lines that say so.
struct Timeline {
  StepTimes times;
  JobLines lines;
  VirtualTime now{0};
};

// Trains synchronously; step_times.h computes when a round happens, in one cluster or in several. A
// round has one step, unless workers train in rounds.
class VirtualSynchronousJob {
 public:
  VirtualSynchronousJob(const VirtualRun& run, const VirtualPlan& plan, VirtualDevice& device,
                        MetricsWriter& metrics, std::span<const OtherTimes> others,
                        const std::function<void(double)>& progress)
      : plan_(plan),
        device_(device),
        workers_(plan, device),
        variables_(plan.has_rounds() ? make_local_variables(run.graph, plan, workers_)
                                     : make_summed_variables(run.graph, plan, workers_)),
        reader_(*run.data.train, plan.input, {}),
        slot_(reader_.make_slot()),
        total_steps_(plan.loop.total_steps ? *plan.loop.total_steps
                                           : reader_.plan().batches_before(plan.loop.total_epochs)),
        summed_steps_(count_summed_steps()) {
    require_whole_round(run.options, plan.dataset_size, plan.batch());
    add_timeline(run.faults, metrics, progress);
    for (const OtherTimes& other : others) add_timeline(other.faults, other.metrics, {});
  }

  // Returns what happened in each cluster.
  std::vector<VirtualOutcome> run() {
    while (!is_finished()) {
      const std::int64_t before = steps_;
      train_round();
      for (std::size_t t = 0; t < timelines_.size(); ++t) {
        timelines_[t].lines.step(moment(t), timelines_[t].times.accounts(), is_finished());
      }
      if (!is_finished() && evaluation_due(before)) evaluate();
    }
    require_finite(variables_->tensors(), steps_, learning_rate_);
    const Evaluation watched = evaluate();
    const Dataset* const test = plan_.final_test;
    const Evaluation tested =
        test != nullptr ? device_.evaluate_on(*test, workers_.state()) : watched;
    const std::string hash = weights_hash(device_.values());
    std::vector<VirtualOutcome> outcomes;
    for (Timeline& timeline : timelines_) {
      std::vector<WorkerAccount> accounts = timeline.times.accounts();
      for (std::size_t w = 0; w < accounts.size(); ++w) {
        accounts[w].samples = workers_.samples(plan_.pipeline ? 0 : static_cast<int>(w));
      }
      if (steps_ > 0) timeline.lines.workers(accounts);
      outcomes.push_back({.sums = timeline.lines.sums(),
                          .end = timeline.now,
                          .train_loss = timeline.lines.train_loss(),
                          .test = tested,
                          .validation = test != nullptr ? std::optional(watched) : std::nullopt,
                          .weights_hash = hash,
                          .accounts = std::move(accounts),
                          .summed_steps = std::min(summed_steps_, steps_)});
    }
    return outcomes;
  }

 private:
  // Checkpoints are written before each evaluation, as in real jobs of compare.
  static std::int64_t steps_between_checkpoints(const VirtualPlan& plan) {
    if (plan.loop.eval_every_steps > 0) return plan.loop.eval_every_steps;
    return plan.loop.eval_every_epochs * plan.batches_per_epoch();
  }

  void add_timeline(const FaultInjection& faults, MetricsWriter& metrics,
                    const std::function<void(double)>& progress) {
    timelines_.push_back({.times = StepTimes({.strategy = plan_.strategy.name,
                                              .workers = plan_.tasks(),
                                              .buckets = plan_.buckets,
                                              .steps_per_exchange = plan_.steps_per_exchange(),
                                              .summed_steps = summed_steps_,
                                              .summed_buckets = plan_.summed_buckets,
                                              .checkpoint_every = steps_between_checkpoints(plan_),
                                              .pipeline = plan_.pipeline},
                                             faults, plan_.strategy.seed),
                          .lines = JobLines(plan_, total_steps_, metrics, progress)});
  }

  bool is_finished() const {
    return steps_ >= total_steps_ || plan_.is_time_up(timelines_.front().now);
  }
  ps::DataPosition position() const { return position_after(steps_); }
  ps::DataPosition position_after(std::int64_t steps) const {
    return reader_.plan().batch(steps).position;
  }
  double epochs_after(std::int64_t steps) const {
    return epochs_at(position_after(steps), plan_.dataset_size, plan_.batch());
  }
  double epochs() const { return epochs_after(steps_); }
  // Returns the number of steps before the first round, which sum gradients.
  std::int64_t count_summed_steps() const {
    std::int64_t steps = 0;
    while (steps < total_steps_ && sums_gradients(plan_.strategy.local, epochs_after(steps))) {
      ++steps;
    }
    return steps;
  }
  // Returns whether an evaluation became due after step `before`.
  bool evaluation_due(std::int64_t before) const {
    if (plan_.loop.eval_every_steps > 0) {
      return has_passed(plan_.loop.eval_every_steps, before, steps_);
    }
    return has_passed(plan_.loop.eval_every_epochs, position_after(before).epoch, position().epoch);
  }

  void train_round() {
    const std::int64_t length = steps_ < summed_steps_ ? 1 : plan_.steps_per_exchange();
    const std::int64_t end = std::min(steps_ + length, total_steps_);
    bool begins_epoch = false;
    while (steps_ < end) begins_epoch = train_step() || begins_epoch;
    const StepReport report = variables_->end_round();
    const std::vector<std::int64_t> sent_bytes = variables_->sent_bytes();
    for (Timeline& timeline : timelines_) {
      timeline.now = timeline.times.step(end, sent_bytes);
      if (begins_epoch) timeline.lines.begin_epoch();
      timeline.lines.add(report.scores, end);
    }
    require_finite_loss(report.scores.loss);
  }

  // Returns whether the step is the first one of its epoch.
  bool train_step() {
    const bool begins_epoch = position().offset == 0;
    const double epochs = this->epochs();
    learning_rate_ = plan_.schedule.learning_rate(epochs);
    reader_.fill(steps_, slot_);
    ++steps_;
    require_finite_loss(variables_->train(
        slot_.batch,
        {.learning_rate = static_cast<float>(learning_rate_), .step = steps_, .epochs = epochs}));
    return begins_epoch;
  }

  void require_finite_loss(double loss) const {
    if (std::isfinite(loss)) return;
    throw diverged(describe_divergence(loss), {.step = steps_, .learning_rate = learning_rate_});
  }

  Evaluation evaluate() {
    workers_.average_statistics();
    const Evaluation watched = device_.evaluate(workers_.state());
    for (std::size_t t = 0; t < timelines_.size(); ++t) {
      timelines_[t].lines.evaluation(moment(t), watched);
    }
    return watched;
  }

  JobLines::Moment moment(std::size_t timeline) const {
    return {.at = timelines_[timeline].now,
            .epochs = epochs(),
            .learning_rate = learning_rate_,
            .round = last_round(plan_, summed_steps_, steps_)};
  }

  const VirtualPlan& plan_;
  VirtualDevice& device_;
  VirtualWorkers workers_;
  const std::unique_ptr<VirtualVariables> variables_;
  const BatchReader reader_;
  BatchSlot slot_;
  const std::int64_t total_steps_;
  const std::int64_t summed_steps_;
  std::vector<Timeline> timelines_;  // the run's own cluster first
  std::int64_t steps_ = 0;           // steps that workers have trained
  double learning_rate_ = 0.0;
};

}  // namespace

Summary train_in_clusters(const VirtualRun& run, MetricsWriter& metrics,
                          std::span<const OtherTimes> others,
                          const std::function<void(double fraction)>& progress) {
  const VirtualPlan plan = plan_of(run);
  VirtualDevice device(plan.strategy, run.graph, run.data.watched(),
                       {.threads = run.options.input.threads});
  if (!run.options.init_from.empty()) {
    device.load_weights(run.options.init_from, plan.strategy.seed);
  }
  std::vector<VirtualOutcome> outcomes;
  if (plan.is_synchronous) {
    outcomes = VirtualSynchronousJob(run, plan, device, metrics, others, progress).run();
  } else {
    check(others.empty(), "only the weights of synchronous runs are equal in all clusters");
    outcomes.push_back(VirtualAsynchronousJob(run, plan, device, metrics, progress).run());
  }
  for (std::size_t t = 1; t < outcomes.size(); ++t) {
    others[t - 1].metrics.write(summary_of(run, plan, device, outcomes[t]));
  }
  Summary summary = summary_of(run, plan, device, outcomes.front());
  metrics.write(summary);
  return summary;
}

Summary train_virtually(const VirtualRun& run, MetricsWriter& metrics,
                        const std::function<void(double fraction)>& progress) {
  return train_in_clusters(run, metrics, {}, progress);
}

}  // namespace syncopate::bench
