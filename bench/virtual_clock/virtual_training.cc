#include "bench/virtual_clock/virtual_training.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/virtual_clock/job_lines.h"
#include "bench/virtual_clock/outgoing_gradient.h"
#include "bench/virtual_clock/step_times.h"
#include "bench/virtual_clock/virtual_asynchronous_job.h"
#include "bench/virtual_clock/virtual_device.h"
#include "models/base/errors.h"
#include "ps/shard/shard.h"
#include "strategies/input_shard.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/input/batches/batch_reader.h"
#include "worker/train/metrics.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {
namespace {

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
      .staleness = outcome.staleness};
}

// When the steps of a synchronous job happen in one cluster, and the lines that say so.
struct Timeline {
  StepTimes times;
  JobLines lines;
  VirtualTime now{0};
};

// Trains synchronously; step_times.h computes when a step happens, in one cluster or in several.
class VirtualSynchronousJob {
 public:
  VirtualSynchronousJob(const VirtualRun& run, const VirtualPlan& plan, VirtualDevice& device,
                        MetricsWriter& metrics, std::span<const OtherTimes> others,
                        const std::function<void(double)>& progress)
      : plan_(plan),
        device_(device),
        // The device has the shard's own values, which change only between steps.
        shard_(run.graph.parameter_layout(), plan.placement.buckets,
               make_optimizer(plan.strategy.optimizer), {}, device.values()),
        reader_(*run.data.train, plan.input, {}),
        slot_(reader_.make_slot()),
        total_steps_(plan.loop.total_steps
                         ? *plan.loop.total_steps
                         : reader_.plan().batches_before(plan.loop.total_epochs)) {
    add_timeline(run.faults, metrics, progress);
    for (const OtherTimes& other : others) add_timeline(other.faults, other.metrics, {});
    const std::span<const float> state = device.state();
    for (int w = 0; w < plan.workers; ++w) {
      shard_.join(w, 1, 0);
      gradients_.emplace_back(plan.strategy.parameter_server.compression, plan.placement);
      states_.emplace_back(state.begin(), state.end());
      samples_.push_back(0);
      samples_in_statistics_.push_back(0);
    }
  }

  // Returns what happened in each cluster.
  std::vector<VirtualOutcome> run() {
    while (!is_finished()) {
      train_one();
      for (std::size_t t = 0; t < timelines_.size(); ++t) {
        timelines_[t].lines.step(moment(t), timelines_[t].times.accounts(), is_finished());
      }
      if (!is_finished() && evaluation_due()) evaluate();
    }
    require_finite(shard_, steps(), learning_rate_);
    const Evaluation watched = evaluate();
    const Dataset* const test = plan_.final_test;
    const Evaluation tested =
        test != nullptr ? device_.evaluate_on(*test, states_.front()) : watched;
    const std::string hash = weights_hash(device_.values());
    std::vector<VirtualOutcome> outcomes;
    for (Timeline& timeline : timelines_) {
      std::vector<WorkerAccount> accounts = timeline.times.accounts();
      for (std::size_t w = 0; w < accounts.size(); ++w) {
        accounts[w].samples = samples_[plan_.pipeline ? 0 : w];
      }
      if (steps() > 0) timeline.lines.workers(accounts);
      outcomes.push_back({.sums = timeline.lines.sums(),
                          .end = timeline.now,
                          .train_loss = timeline.lines.train_loss(),
                          .test = tested,
                          .validation = test != nullptr ? std::optional(watched) : std::nullopt,
                          .weights_hash = hash,
                          .accounts = std::move(accounts)});
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
                                              .checkpoint_every = steps_between_checkpoints(plan_),
                                              .pipeline = plan_.pipeline},
                                             faults, plan_.strategy.seed),
                          .lines = JobLines(plan_, total_steps_, metrics, progress)});
  }

  std::int64_t steps() const { return timelines_.front().lines.sums().step; }
  bool is_finished() const {
    return steps() >= total_steps_ || plan_.is_time_up(timelines_.front().now);
  }
  ps::DataPosition position() const { return reader_.plan().batch(steps()).position; }
  double epochs() const { return epochs_at(position(), plan_.dataset_size, plan_.batch()); }
  bool evaluation_due() const {
    if (plan_.loop.eval_every_steps > 0) {
      return steps() % plan_.loop.eval_every_steps == 0;
    }
    const ps::DataPosition next = position();
    return next.offset == 0 && plan_.loop.eval_every_epochs > 0 &&
           next.epoch % plan_.loop.eval_every_epochs == 0;
  }

  void train_one() {
    const std::int64_t done = steps();
    const bool begins_epoch = position().offset == 0;
    learning_rate_ = plan_.schedule.learning_rate(epochs());
    reader_.fill(done, slot_);
    const Scores scores = compute_all();
    std::vector<std::int64_t> gradient_bytes;
    for (std::size_t b = 0; b < plan_.placement.buckets.size(); ++b) {
      gradient_bytes.push_back(gradients_.front().bytes(static_cast<BucketId>(b)));
    }
    update();
    for (Timeline& timeline : timelines_) {
      timeline.now = timeline.times.step(done + 1, gradient_bytes);
      if (begins_epoch) timeline.lines.begin_epoch();
      timeline.lines.add(scores, done + 1);
    }
    if (!std::isfinite(scores.loss)) {
      throw diverged(describe_divergence(scores.loss),
                     {.step = done + 1, .learning_rate = learning_rate_});
    }
  }

  // Computes the gradients of all workers, with the values as workers receive them.
  Scores compute_all() {
    const std::span<float> values = device_.values().f32();
    const bool rounds = plan_.values_format() != ps::ValuesFormat::kF32;
    if (rounds) {
      exact_values_.assign(values.begin(), values.end());
      ps::round_to(plan_.values_format(), values);
      device_.note_written();
    }
    Scores scores;
    for (int w = 0; w < plan_.workers; ++w) {
      scores += compute(w);
    }
    if (rounds) std::ranges::copy(exact_values_, values.begin());
    return scores;
  }

  // Computes the gradient of the worker's share of the step's batch.
  Scores compute(int worker) {
    const auto w = static_cast<std::size_t>(worker);
    const Batch& whole = slot_.batch;
    const BatchShare share = share_of_replica(whole.loss_divisor, worker, plan_.workers);
    const Scores scores = train(whole.rows(share.begin, share.end), states_[w]);
    gradients_[w].take(device_.gradients(), plan_.workers > 1);
    samples_[w] += scores.num_samples;
    samples_in_statistics_[w] += scores.num_samples;
    return scores;
  }

  // Leaves the gradient of a worker's batch in the device: the sum over its micro-batches, added in
  // the order of a real pipeline.
  Scores train(const Batch& batch, std::span<float> state) {
    const int parts = plan_.strategy.micro_batches;
    if (parts == 1) return device_.train(batch, state);
    const std::span<float> gradients = device_.gradients().f32();
    Scores scores;
    for (int m = 0; m < parts; ++m) {
      const BatchShare part = share_of_replica(batch.num_samples, m, parts);
      scores += device_.train(batch.rows(part.begin, part.end), state);
      if (m == 0) {
        sum_.assign(gradients.begin(), gradients.end());
      } else {
        for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] = gradients[i] + sum_[i];
      }
    }
    std::ranges::copy(sum_, gradients.begin());
    return scores;
  }

  void update() {
    for (std::size_t b = 0; b < plan_.placement.buckets.size(); ++b) {
      const auto bucket = static_cast<BucketId>(b);
      const std::uint64_t version = shard_.view(bucket).version;
      for (int w = 0; w < plan_.workers; ++w) {
        const bool takes_part =
            shard_.push({.id = {w, 1, version},
                         .bucket = bucket,
                         .version = version,
                         .learning_rate = static_cast<float>(learning_rate_),
                         .gradient = gradients_[static_cast<std::size_t>(w)].part(bucket),
                         .values = {}});
        check(takes_part, "all workers of a synchronous job take part until the end");
      }
      events_.clear();
      shard_.work(bucket, events_);
      check(shard_.view(bucket).version == version + 1, "all gradients make one update");
    }
    device_.note_written();
  }

  // Adds in the same order as Synchronous::agree(), so that the bits are equal.
  void average_running_statistics() {
    double total = 0.0;
    for (const std::int64_t samples : samples_in_statistics_) {
      total += static_cast<double>(samples);
    }
    if (plan_.workers == 1 || states_.front().empty() || total == 0.0) return;
    for (std::size_t i = 0; i < states_.front().size(); ++i) {
      double sum = 0.0;
      for (std::size_t w = 0; w < states_.size(); ++w) {
        sum += static_cast<double>(samples_in_statistics_[w]) * static_cast<double>(states_[w][i]);
      }
      const auto mean = static_cast<float>(sum / total);
      for (std::vector<float>& state : states_) state[i] = mean;
    }
    std::ranges::fill(samples_in_statistics_, 0);
  }

  Evaluation evaluate() {
    average_running_statistics();
    const Evaluation watched = device_.evaluate(states_.front());
    for (std::size_t t = 0; t < timelines_.size(); ++t) {
      timelines_[t].lines.evaluation(moment(t), watched);
    }
    return watched;
  }

  JobLines::Moment moment(std::size_t timeline) const {
    return {.at = timelines_[timeline].now, .epochs = epochs(), .learning_rate = learning_rate_};
  }

  const VirtualPlan& plan_;
  VirtualDevice& device_;
  ps::Shard shard_;
  const BatchReader reader_;
  BatchSlot slot_;
  const std::int64_t total_steps_;
  std::vector<Timeline> timelines_;  // the run's own cluster first
  // gradients_, states_, samples_ and samples_in_statistics_ have one element per worker.
  std::vector<OutgoingGradient> gradients_;
  std::vector<std::vector<float>> states_;  // running statistics of each worker
  std::vector<std::int64_t> samples_;
  std::vector<std::int64_t> samples_in_statistics_;  // samples since the last averaging
  std::vector<ps::ShardEvent> events_;
  std::vector<float> sum_;           // scratch memory of train()
  std::vector<float> exact_values_;  // scratch memory of compute_all()
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
