#include "worker/train/step_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "worker/train/input_bound.h"

namespace syncopate {

StepLog::StepLog(const TrainingRun& run, const TrainLoopOptions& options, std::int64_t total_steps)
    : run_(run),
      options_(options),
      total_steps_(total_steps),
      waited_before_(run.input.counters().wait_seconds),
      times_before_line_(times()) {}

void StepLog::end_epoch() {
  const InputCounters now = run_.input.counters();
  const TaskInput own{.wait = {.steps = judged_.steps,
                               .step_seconds = judged_.seconds,
                               .wait_seconds = now.wait_seconds - waited_before_,
                               .readers = now.readers,
                               .most_readers = now.most_readers},
                      .means = run_.input_means};
  const std::vector<double> all = synchronous_job(run_.strategy).gather(own.as_numbers());
  const TaskInput slowest = longest_wait(all);
  if (!is_enough(slowest.wait)) return;
  judged_ = {};
  waited_before_ = now.wait_seconds;
  const std::string line = describe_input_bound(slowest.wait, slowest.means);
  if (line.empty()) return;
  const bool is_one_task = all.size() == TaskInput::kNumbers;
  run_.display.note(is_one_task ? line : fmt::format("task {}: {}", slowest.task, line));
}

void StepLog::add_seconds(double seconds) {
  for (StepTotals* totals : {&all_, &epoch_, &line_, &judged_}) totals->seconds += seconds;
}

void StepLog::end_round(const StepReport& report) {
  for (StepTotals* totals : {&all_, &epoch_, &line_, &judged_}) {
    totals->add(report.scores, report.round_steps);
  }
}

void StepLog::show(std::int64_t step, const StepReport& report) {
  const double loss =
      report.scores.loss / static_cast<double>(std::max<std::int64_t>(report.round_steps, 1));
  shown_loss_ = shown_steps_++ == 0 ? loss : 0.95 * shown_loss_ + 0.05 * loss;
  const std::int64_t per_epoch = run_.dataset_size / run_.global_batch;
  const std::int64_t samples = shown_steps_ * run_.global_batch;
  run_.display.update(ProgressState{
      .epoch = (step - 1) / per_epoch + 1,
      .total_epochs = (total_steps_ + per_epoch - 1) / per_epoch,
      .step = step,
      .total_steps = total_steps_,
      .loss = shown_loss_,
      .metric = line_.mean_metric(run_.graph.loss().kind),
      .samples_per_second = StepTotals::ratio(static_cast<double>(samples), all_.seconds),
      .remaining_seconds = remaining_seconds(step)});
}

void StepLog::write_line(const Progress& progress, double epochs, double learning_rate) {
  const double waited = run_.input.counters().wait_seconds;
  const CommunicationTimes now = times();
  const double steps = static_cast<double>(std::max<std::int64_t>(line_.steps, 1));
  const double exposed = now.exposed_seconds - times_before_line_.exposed_seconds;
  const double under_way = now.under_way_seconds - times_before_line_.under_way_seconds;
  const double input_wait = waited - waited_before_line_;
  run_.metrics.write(
      StepMetrics{.step = progress.at.step,
                  .epoch = epochs,
                  .loss = line_.mean_loss(),
                  .metric = line_.mean_metric(run_.graph.loss().kind),
                  .learning_rate = learning_rate,
                  .samples = progress.at.samples,
                  .seconds = all_.seconds,
                  .samples_per_second = line_.samples_per_second(),
                  .input_wait_fraction = StepTotals::ratio(input_wait, line_.seconds),
                  .compute_seconds = std::max(0.0, line_.seconds - input_wait - exposed) / steps,
                  .communication_exposed_seconds = exposed / steps,
                  .communication_hidden_seconds = std::max(0.0, under_way - exposed) / steps,
                  .loss_scale = loss_scale(),
                  .round = last_round(progress)});
  waited_before_line_ = waited;
  times_before_line_ = now;
  line_ = {};
}

double StepLog::seconds_per_step() const {
  return shown_steps_ > 0 ? all_.seconds / static_cast<double>(shown_steps_)
                          : std::numeric_limits<double>::infinity();
}

double StepLog::remaining_seconds(std::int64_t step) const {
  const double to_the_end = seconds_per_step() * static_cast<double>(total_steps_ - step);
  if (options_.max_seconds <= 0.0) return to_the_end;
  return std::min(to_the_end, std::max(0.0, options_.max_seconds - all_.seconds));
}

std::optional<StepMetrics::Round> StepLog::last_round(const Progress& progress) const {
  const auto steps = synchronous_job(run_.strategy).steps_of_round();
  if (steps.empty()) return std::nullopt;
  return StepMetrics::Round{.number = progress.rounds, .inner_steps = std::ranges::max(steps)};
}

std::optional<LossScaleState> StepLog::loss_scale() const {
  if (!run_.metrics.is_read())
    return std::nullopt;  // reading the scale makes the host wait for the device
  const Replica& replica = run_.strategy.replicas().front();
  return replica.backend->loss_scale(*replica.arena);
}

}  // namespace syncopate
