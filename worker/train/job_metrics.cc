#include "worker/train/job_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "worker/train/metrics.h"

namespace syncopate {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// What the job trained between two statuses: steps, samples and sums of losses.
StepTotals between(const JobStatus& from, const JobStatus& to, double seconds) {
  return {.loss = to.loss - from.loss,
          .seconds = seconds,
          .steps = to.step - from.step,
          .metric = to.metric - from.metric,
          .samples = to.samples - from.samples};
}

// Indices of the numbers that a task sends. These are the task's own; each replica's follow.
enum : std::ptrdiff_t { kFirst, kCount, kSeconds, kInputWait, kSent, kReceived, kOfTask };
enum : std::ptrdiff_t { kExposed, kPeersWait, kOfReplica };
constexpr std::int64_t kNotCounted = -1;

std::optional<std::int64_t> bytes_of(double counted) {
  return counted < 0.0 ? std::nullopt : std::optional(static_cast<std::int64_t>(counted));
}

}  // namespace

JobMetrics::JobMetrics(MetricsWriter& metrics, ProgressDisplay& display,
                       const JobMetricsOptions& options)
    : metrics_(metrics), display_(display), options_(options) {}

void JobMetrics::begin(const JobStatus& status, const OwnTimes& own) {
  begun_ = true;
  begun_at_ = Clock::now();
  at_begin_ = shown_ = status;
  write_begin(status);
  start_line(status, own);
}

void JobMetrics::begin_as_reporter(const JobStatus& status) {
  if (!begun_) write_begin(status);
}

void JobMetrics::write_begin(const JobStatus& status) {
  began_at_ = wall_clock_seconds();
  metrics_.write(BeginMetrics{.step = status.step,
                              .samples = status.samples,
                              .is_synchronous = false,
                              .began_at = *began_at_,
                              .head = options_.head,
                              .normalize = options_.normalize,
                              .local_updates = options_.local_updates});
}

void JobMetrics::step(const JobStatus& status, bool is_reporter, double learning_rate,
                      const OwnTimes& own) {
  learning_rate_ = learning_rate;
  // The step may go back: a job that lost a server continues from an earlier step.
  if (status.step < at_line_.step) start_line(status, own);
  const bool due =
      status.step / options_.log_every_steps > at_line_.step / options_.log_every_steps;
  if (is_reporter) show(status);
  if (!due) return;
  if (is_reporter) write_line(status, own);
  start_line(status, own);
}

void JobMetrics::end(const JobStatus& status, const OwnTimes& own) {
  if (!begun_) return;  // there was nothing to train
  ended_at_ = Clock::now();
  if (status.step > at_line_.step) write_line(status, own);
  start_line(status, own);
}

double JobMetrics::epochs(const JobStatus& status) const {
  return options_.start_epochs + static_cast<double>(status.samples - options_.start_samples) /
                                     static_cast<double>(options_.samples_per_epoch);
}

double JobMetrics::seconds() const {
  if (!begun_) return 0.0;
  return seconds_between(begun_at_, ended_at_ == Clock::time_point{} ? Clock::now() : ended_at_);
}

double JobMetrics::samples_per_second(const JobStatus& status) const {
  const auto samples = std::max<std::int64_t>(0, status.samples - at_begin_.samples);
  return StepTotals::ratio(static_cast<double>(samples), seconds());
}

void JobMetrics::start_line(const JobStatus& status, const OwnTimes& own) {
  at_line_ = status;
  own_at_line_ = own;
  line_at_ = Clock::now();
}

void JobMetrics::write_line(const JobStatus& status, const OwnTimes& own) {
  const StepTotals line = between(at_line_, status, seconds_between(line_at_, Clock::now()));
  const double own_steps =
      static_cast<double>(std::max<std::int64_t>(own.steps - own_at_line_.steps, 1));
  const double own_seconds = own.step_seconds - own_at_line_.step_seconds;
  const double exposed =
      own.communication.exposed_seconds - own_at_line_.communication.exposed_seconds;
  const double under_way =
      own.communication.under_way_seconds - own_at_line_.communication.under_way_seconds;
  const double input_wait = own.input_wait_seconds - own_at_line_.input_wait_seconds;
  metrics_.write(
      StepMetrics{.step = status.step,
                  .epoch = epochs(status),
                  .loss = line.mean_loss(),
                  .metric = line.mean_metric(options_.loss),
                  .learning_rate = learning_rate_,
                  .samples = status.samples,
                  .seconds = seconds(),
                  .samples_per_second = line.samples_per_second(),
                  .input_wait_fraction = StepTotals::ratio(input_wait, line.seconds),
                  .compute_seconds = std::max(0.0, own_seconds - exposed) / own_steps,
                  .communication_exposed_seconds = exposed / own_steps,
                  .communication_hidden_seconds = std::max(0.0, under_way - exposed) / own_steps,
                  .staleness_mean = status.staleness_mean,
                  .staleness_max = static_cast<std::int64_t>(status.staleness_max)});
}

void JobMetrics::show(const JobStatus& status) {
  const StepTotals since = between(shown_, status, 0.0);
  if (since.steps > 0) {
    // The shown loss is smoothed as in train_loop.cc, for all steps since the last call.
    const double keeps =
        shown_loss_ == 0.0 ? 0.0 : std::pow(0.95, static_cast<double>(since.steps));
    shown_loss_ = keeps * shown_loss_ + (1.0 - keeps) * since.mean_loss();
  }
  shown_ = status;
  if (status.step > at_line_.step) {
    shown_metric_ = between(at_line_, status, 0.0).mean_metric(options_.loss);
  }
  const StepTotals all = between(at_begin_, status, seconds());
  const double seconds_per_step = StepTotals::ratio(all.seconds, static_cast<double>(all.steps));
  const std::int64_t per_epoch = options_.steps_per_epoch;
  const auto steps_left = std::max<std::int64_t>(options_.total_steps - status.step, 0);
  double remaining_seconds = seconds_per_step * static_cast<double>(steps_left);
  if (options_.max_seconds > 0.0) {
    remaining_seconds =
        std::min(remaining_seconds, std::max(0.0, options_.max_seconds - seconds()));
  }
  display_.update(
      ProgressState{.epoch = (std::max<std::int64_t>(status.step, 1) - 1) / per_epoch + 1,
                    .total_epochs = (options_.total_steps + per_epoch - 1) / per_epoch,
                    .step = status.step,
                    .total_steps = options_.total_steps,
                    .loss = shown_loss_,
                    .metric = shown_metric_,
                    .samples_per_second = all.samples_per_second(),
                    .remaining_seconds = remaining_seconds});
}

WorkerTimes::WorkerTimes(Strategy& strategy) : strategy_(strategy) {
  for (const Replica& replica : strategy.replicas()) {
    at_start_.push_back(replica.variables->times());
  }
}

double WorkerTimes::exposed_seconds() const {
  return strategy_.replicas().front().variables->times().exposed_seconds -
         at_start_.front().exposed_seconds;
}

double WorkerTimes::exchange_seconds() const {
  const double waited =
      strategy_.replicas().front().variables->times().peers_wait_seconds.value_or(0.0) -
      at_start_.front().peers_wait_seconds.value_or(0.0);
  return std::max(0.0, exposed_seconds() - waited);
}

WorkerTimes::OfJob WorkerTimes::write(const Totals& totals, MetricsWriter& metrics) const {
  const InputShard shard = strategy_.evaluation_shard();
  // Bytes are counted per process, so the counts of the first replica hold for the task.
  const CommunicationTimes times = strategy_.replicas().front().variables->times();
  std::vector<double> mine(kOfTask);
  mine[kFirst] = shard.first;
  mine[kCount] = shard.count;
  mine[kSeconds] = totals.seconds;
  mine[kInputWait] = totals.input_wait_seconds;
  mine[kSent] = static_cast<double>(times.bytes_sent.value_or(kNotCounted));
  mine[kReceived] = static_cast<double>(times.bytes_received.value_or(kNotCounted));
  // All tasks must gather equally many numbers, though their numbers of replicas may differ.
  const double count = shard.count;
  const std::vector<double> counts = synchronous_job(strategy_).gather({&count, 1});
  const auto most = static_cast<std::size_t>(*std::ranges::max_element(counts));
  mine.resize(kOfTask + kOfReplica * most);
  auto values_of_replica = mine.begin() + kOfTask;
  for (const Replica& replica : strategy_.replicas()) {
    const CommunicationTimes its = replica.variables->times();
    const CommunicationTimes& before = at_start_[static_cast<std::size_t>(replica.index)];
    values_of_replica[kExposed] = its.exposed_seconds - before.exposed_seconds;
    values_of_replica[kPeersWait] =
        its.peers_wait_seconds.value_or(0.0) - before.peers_wait_seconds.value_or(0.0);
    values_of_replica += kOfReplica;
  }
  const std::vector<double> all = synchronous_job(strategy_).gather(mine);
  OfJob of_job{.bytes_sent = times.bytes_sent ? std::optional<std::int64_t>(0) : std::nullopt};
  for (auto task = all.begin(); task != all.end(); task += std::ssize(mine)) {
    of_job.longest_input_wait =
        std::max(of_job.longest_input_wait, StepTotals::ratio(task[kInputWait], task[kSeconds]));
    if (of_job.bytes_sent) *of_job.bytes_sent += static_cast<std::int64_t>(task[kSent]);
    for (int r = 0; r < static_cast<int>(task[kCount]); ++r) {
      const auto its = task + kOfTask + r * kOfReplica;
      const double compute = task[kSeconds] - its[kExposed] - task[kInputWait];
      WorkerMetrics line{
          .worker = static_cast<int>(task[kFirst]) + r,
          .steps = totals.steps,
          .samples = totals.samples / strategy_.input_shard().total,
          .seconds = task[kSeconds],
          .compute_seconds = std::max(0.0, compute),
          .communication_exposed_seconds = std::max(0.0, its[kExposed] - its[kPeersWait]),
          .input_wait_seconds = task[kInputWait],
          .bytes_sent = bytes_of(task[kSent]),
          .bytes_received = bytes_of(task[kReceived])};
      if (times.peers_wait_seconds) line.peers_wait_seconds = its[kPeersWait];
      metrics.write(line);
    }
  }
  return of_job;
}

}  // namespace syncopate
