#include "worker/run/task_run.h"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <utility>

#include "models/base/log.h"
#include "models/base/resource_limits.h"
#include "worker/run/job_membership.h"
#include "worker/run/run_data.h"
#include "worker/run/run_devices.h"
#include "worker/run/run_memory.h"
#include "worker/run/run_sizes.h"
#include "worker/run/train_report.h"
#include "worker/train/tensorboard.h"

namespace syncopate {

TaskRun::TaskRun(const TrainOptions& options, Process process)
    : given_(options),
      process_(std::move(process)),
      is_chief_(options.cluster.is_chief()),
      display_(is_chief_ ? make_progress_display(!options.hides_progress) : make_silent_display()),
      options_(options) {
  options_.input.trace.trace = process_.trace;
}

int TaskRun::run(std::ostream& out) {
  meet();
  report_failures(process_.membership, session_.strategy, [this] {
    open();
    build();
    train();
  });
  return report(out);
}

void TaskRun::meet() {
  if (process_.membership == nullptr) return;
  watch_.emplace(*process_.membership, process_.membership->peer_timeout() / 5,
                 process_.end_process);
  display_->note(fmt::format("{} tasks have met", process_.membership->members().size()));
}

void TaskRun::open() {
  deal_out_devices(options_, process_.membership);
  session_.data =
      process_.workload.open_data({.cache_dir = given_.cache_dir,
                                   .seed = given_.strategy.seed,
                                   .split = given_.split,
                                   .on_progress = show_progress(*display_, "preparing the data"),
                                   .image = given_.image,
                                   .local_tasks = given_.cluster.local_size});
  const DataSplits& data = session_.data;
  if (options_.data.empty()) options_.data = data.name;
  if (process_.membership != nullptr) require_same_data(data, options_.data, *process_.membership);
  options_.strategy.membership = process_.membership;
  choose_threads();
  replicas_ = count_replicas(given_, process_.membership);
  global_batch_ = choose_batch(options_, replicas_, data.train->size(), options_.strategy);
  require_images_for(given_.input.augment, data, options_.data);
  if (is_chief_ && given_.input.augment != Augment::kNone && !data.suits_crop_flip) {
    log(LogLevel::kWarning,
        fmt::format("--augment {} mirrors images, and a mirrored one may be of another class in {}",
                    name(given_.input.augment), options_.data));
  }
}

void TaskRun::choose_threads() {
  const CpuLimits cpus = cpu_limits();
  int& lanes = options_.strategy.lanes;
  lanes = choose_lanes(given_, process_.membership, cpus);
  if (lanes < choose_lanes(given_, process_.membership, {cpus.affinity})) {
    display_->note(fmt::format(
        "compute threads per replica: {}, because the CPU quota of the cgroup is {:.3g}", lanes,
        *cpus.quota));
  }
  options_.input.autotune = choose_autotune(options_, process_.membership);
}

void TaskRun::build() {
  const DataSplits& data = session_.data;
  const Graph& graph = session_.graph.emplace(process_.workload.make_network(data));
  if (options_.model.empty()) options_.model = graph.name;
  if (process_.membership != nullptr) require_same_network(graph, *process_.membership);
  require_metrics_of(graph, given_.loop.rules);
  require_batch_norm_values(graph, options_, replicas_, global_batch_);
  require_memory(options_, graph, process_.membership);
  schedule_options_ =
      schedule_of(given_, replicas_, global_batch_, data.train->size() / global_batch_);
  schedule_.emplace(schedule_options_);
  require_whole_round(given_, data.train->size(), global_batch_);

  const bool are_synchronous = is_synchronous(given_.strategy.consistency);
  if (has_servers(given_) || !are_synchronous) {
    // The coordinator counts either the synchronous steps of all workers together or the steps of
    // each worker separately; the batch size of a step differs accordingly.
    describe_job(options_, graph, data,
                 are_synchronous ? global_batch_ : options_.strategy.batch_size_per_replica,
                 options_.strategy);
    options_.strategy.parameter_server.asked_to_stop = [this] {
      return process_.signals.was_asked();
    };
  }
  session_.strategy = make_strategy(options_.strategy, graph);
  Strategy& strategy = *session_.strategy;
  trace_replicas(strategy, process_.trace);
  if (watch_) {
    session_.waker.emplace(*watch_,
                           [&strategy](const std::string& reason) { strategy.abort(reason); });
  }
  start_ = start_run(options_, graph, fresh_progress(options_, data, global_batch_), strategy);
  for (const std::string& note : start_.notes) display_->note(note);
  monitor_ = monitor_devices(options_);  // here, because loading data is not the GPU's work
}

void TaskRun::describe() {
  describe_run(options_, *session_.graph, session_.data, *session_.strategy, schedule_options_,
               global_batch_, *display_);
}

void TaskRun::train() {
  const StopPoll stop = [this] { return process_.signals.poll(); };
  if (is_synchronous(*session_.strategy)) return train_synchronously(stop);
  describe();
  process_.early_stop.reset();
  train_over_roll_backs(session_, start_, *display_, [&] {
    outcome_ = train_leased(options_, *schedule_, session_, start_, stop);
    session_.strategy->leave();
  });
}

void TaskRun::train_synchronously(const StopPoll& stop) {
  const DataSplits& data = session_.data;
  const Graph& graph = *session_.graph;
  Strategy& strategy = *session_.strategy;
  session_.metrics = make_metrics_writer(is_chief_ ? given_.metrics : "", start_.resumed);
  if (is_chief_ && !given_.tensorboard.empty()) {
    session_.metrics = make_both(std::move(session_.metrics),
                                 make_tensorboard_writer(given_.tensorboard, CurveWriter::kOnly));
  }
  describe();
  session_.evaluator =
      std::make_unique<Evaluator>(strategy, graph, data.watched(), evaluation_options(options_));
  InputOptions input_options = options_.input;
  input_options.batch_size = global_batch_;
  input_options.seed = given_.strategy.seed;
  input_options.shard = strategy.input_shard();

  process_.early_stop.reset();
  train_over_roll_backs(session_, start_, *display_, [&] {
    session_.input = make_batch_source(*data.train, input_options, start_.progress.at.position);
    outcome_ =
        syncopate::train({.graph = graph,
                          .strategy = strategy,
                          .input = *session_.input,
                          .dataset_size = data.train->size(),
                          .global_batch = global_batch_,
                          .schedule = *schedule_,
                          .optimizer = given_.strategy.optimizer.name,
                          .bad_samples = data.train->bad_samples(),
                          .evaluator = *session_.evaluator,
                          .metrics = *session_.metrics,
                          .display = *display_,
                          .stop = stop,
                          .final_test = data.validation != nullptr ? data.test.get() : nullptr,
                          .membership = process_.membership,
                          .input_means = input_means(options_, 1),
                          .rules_by_step = &session_.rules_by_step,
                          .local_updates = local_updates_of(given_)},
                         loop_options(given_, start_), start_.progress);
    strategy.leave();
  });
}

int TaskRun::report(std::ostream& out) {
  if (outcome_.stopped_by) return report_stop(outcome_, *display_);
  if (outcome_.progress.at.step == start_.progress.at.step) {
    const std::string rule =
        EvaluationRules(given_.loop.rules, outcome_.progress.at.rules).ending_rule();
    display_->note(fmt::format(
        "nothing left to train: {} steps are done{}", start_.progress.at.step,
        rule.empty() ? "" : ", and " + rule + " holds; give another rule, or none, to go on"));
  }
  const bool reports =
      is_synchronous(given_.strategy.consistency) ? is_chief_ : outcome_.has_last_snapshot;
  if (!reports) return 0;
  Summary summary =
      summary_of(options_, *session_.graph, global_batch_, *session_.strategy, outcome_);
  if (monitor_ != nullptr) summary.gpu = monitor_->load();
  session_.metrics->write(summary);
  print_result(options_, summary, outcome_, out);
  return 0;
}

}  // namespace syncopate
