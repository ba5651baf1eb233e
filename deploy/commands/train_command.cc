// `syncopate train`, and programs with a workload of their own: meets the other tasks, opens the
// inputs in the order that finds mistakes soonest, trains, and reports. Only the chief writes files
// and prints results.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>

#include "deploy/cli/device_flags.h"
#include "deploy/commands/commands.h"
#include "models/base/log.h"
#include "models/base/open_files.h"
#include "models/base/resource_limits.h"
#include "ps/client/client_errors.h"
#include "strategies/cluster/nonce_file.h"
#include "strategies/cluster/prepare_rendezvous.h"
#include "worker/run/exit_codes.h"
#include "worker/run/job_membership.h"
#include "worker/run/process_end.h"
#include "worker/run/run_data.h"
#include "worker/run/run_memory.h"
#include "worker/run/run_sizes.h"
#include "worker/run/run_start.h"
#include "worker/run/train_report.h"
#include "worker/run/training_session.h"
#include "worker/train/stop_signal.h"
#include "worker/train/tensorboard.h"
#include "worker/train/train_loop.h"

namespace syncopate {
namespace {

int train_in_job(const TrainOptions& options, const Workload& workload, StopSignal& signals,
                 std::optional<EarlyStop>& early_stop, Membership* membership, Trace* trace,
                 std::ostream& out) {
  const bool is_chief = options.cluster.is_chief();
  const auto display =
      is_chief ? make_progress_display(options.show_progress) : make_silent_display();
  std::optional<PeerWatch> watch;
  if (membership != nullptr) {
    watch.emplace(*membership, membership->peer_timeout() / 5, [](const std::string& reason) {
      std::cerr << "syncopate: " + reason + "\n" << std::flush;
      // Ends the process after a peer's failure: the training thread is busy elsewhere and its
      // stack cannot be unwound.
      std::_Exit(kExitFailed);
    });
    display->note(fmt::format("{} tasks have met", membership->members().size()));
  }
  TrainingSession session;
  RunStart start;
  TrainOutcome outcome;
  TrainOptions run_options = options;
  run_options.input.trace.trace = trace;
  std::unique_ptr<DeviceMonitor> monitor;
  std::int64_t global_batch = 0;
  report_failures(membership, session.strategy, [&] {
    deal_out_devices(run_options, membership);
    session.data = workload.open_data({.cache_dir = options.cache_dir,
                                       .seed = options.strategy.seed,
                                       .split = options.split,
                                       .on_progress = show_progress(*display, "preparing the data"),
                                       .image = options.image,
                                       .local_tasks = options.cluster.local_size});
    const DataSplits& data = session.data;
    if (run_options.data.empty()) run_options.data = data.name;
    if (membership != nullptr) require_same_data(data, run_options.data, *membership);
    run_options.strategy.membership = membership;
    const CpuLimits cpus = cpu_limits();
    run_options.strategy.lanes = choose_lanes(options, membership, cpus);
    if (run_options.strategy.lanes < choose_lanes(options, membership, {cpus.affinity})) {
      display->note(
          fmt::format("compute threads per replica: {}, because the CPU quota of the "
                      "cgroup is {:.3g}",
                      run_options.strategy.lanes, *cpus.quota));
    }
    run_options.input.autotune = choose_autotune(run_options, membership);
    const int replicas = count_replicas(options, membership);
    global_batch = choose_batch(run_options, replicas, data.train->size(), run_options.strategy);
    require_images_for(options.input.augment, data, run_options.data);
    if (is_chief && options.input.augment != Augment::kNone && !data.suits_crop_flip) {
      log(LogLevel::kWarning,
          fmt::format(
              "--augment {} mirrors images, and a mirrored one may be of another class in {}",
              name(options.input.augment), run_options.data));
    }
    const Graph& graph = session.graph.emplace(workload.make_network(data));
    if (run_options.model.empty()) run_options.model = graph.name;
    if (membership != nullptr) require_same_network(graph, *membership);
    require_metrics_of(graph, options.loop.rules);
    require_batch_norm_values(graph, run_options, replicas, global_batch);
    require_memory(run_options, graph, membership);
    const ScheduleOptions schedule_options =
        schedule_of(options, replicas, global_batch, data.train->size() / global_batch);
    const Schedule schedule(schedule_options);

    if (has_servers(options) || !is_synchronous(options.strategy.consistency)) {
      // The coordinator counts either the synchronous steps of all workers together or the steps of
      // each worker separately; the batch size of a step differs accordingly.
      const bool are_synchronous = is_synchronous(options.strategy.consistency);
      describe_job(run_options, graph, data,
                   are_synchronous ? global_batch : run_options.strategy.batch_size_per_replica,
                   run_options.strategy);
      run_options.strategy.parameter_server.asked_to_stop = [&signals] {
        return signals.was_asked();
      };
    }
    session.strategy = make_strategy(run_options.strategy, graph);
    Strategy& strategy = *session.strategy;
    trace_replicas(strategy, trace);
    if (watch) {
      session.waker.emplace(*watch,
                            [&strategy](const std::string& reason) { strategy.abort(reason); });
    }
    start =
        start_run(run_options, graph, fresh_progress(run_options, data, global_batch), strategy);
    for (const std::string& note : start.notes) display->note(note);
    monitor = monitor_devices(run_options);  // here, because loading data is not the GPU's work
    const StopPoll stop = [&signals] { return signals.poll(); };
    if (!is_synchronous(strategy)) {
      describe_run(run_options, graph, data, strategy, schedule_options, global_batch, *display);
      early_stop.reset();
      train_over_roll_backs(session, start, *display, [&] {
        outcome = train_leased(run_options, schedule, session, start, stop);
        strategy.leave();
      });
      return;
    }
    session.metrics = make_metrics_writer(is_chief ? options.metrics : "", start.resumed);
    if (is_chief && !options.tensorboard.empty()) {
      session.metrics = make_both(std::move(session.metrics),
                                  make_tensorboard_writer(options.tensorboard, CurveWriter::kOnly));
    }
    describe_run(run_options, graph, data, strategy, schedule_options, global_batch, *display);

    session.evaluator = std::make_unique<Evaluator>(strategy, graph, data.watched(),
                                                    evaluation_options(run_options));
    InputOptions input_options = run_options.input;
    input_options.batch_size = global_batch;
    input_options.seed = options.strategy.seed;
    input_options.shard = strategy.input_shard();

    early_stop.reset();
    train_over_roll_backs(session, start, *display, [&] {
      session.input = make_batch_source(*data.train, input_options, start.progress.at.position);
      outcome = train({.graph = graph,
                       .strategy = strategy,
                       .input = *session.input,
                       .dataset_size = data.train->size(),
                       .global_batch = global_batch,
                       .schedule = schedule,
                       .optimizer = options.strategy.optimizer.name,
                       .bad_samples = data.train->bad_samples(),
                       .evaluator = *session.evaluator,
                       .metrics = *session.metrics,
                       .display = *display,
                       .stop = stop,
                       .final_test = data.validation != nullptr ? data.test.get() : nullptr,
                       .membership = membership,
                       .input_means = input_means(run_options, 1),
                       .rules_by_step = &session.rules_by_step},
                      loop_options(options, start), start.progress);
      strategy.leave();
    });
  });
  if (outcome.stopped_by) return report_stop(outcome, *display);
  if (outcome.progress.at.step == start.progress.at.step) {
    const std::string rule =
        EvaluationRules(options.loop.rules, outcome.progress.at.rules).ending_rule();
    display->note(fmt::format(
        "nothing left to train: {} steps are done{}", start.progress.at.step,
        rule.empty() ? "" : ", and " + rule + " holds; give another rule, or none, to go on"));
  }
  const bool reports =
      is_synchronous(options.strategy.consistency) ? is_chief : outcome.has_last_snapshot;
  if (!reports) return 0;
  Summary summary =
      summary_of(run_options, *session.graph, global_batch, *session.strategy, outcome);
  if (monitor != nullptr) summary.gpu = monitor->load();
  session.metrics->write(summary);
  print_result(run_options, summary, outcome, out);
  return 0;
}

}  // namespace

bool wants_mpi(const TrainOptions& options) {
  return options.strategy.collective == "mpi" || meets_through_mpi(options);
}

int run_train(const TrainOptions& given, const Workload& workload, StopSignal& signals,
              MpiSession* mpi, std::ostream& out) {
  if (given.cluster.role == Role::kServer) return run_train_server(given, signals);
  if (given.cluster.role == Role::kEvaluator)
    return run_train_evaluator(given, workload, signals, out);
  std::optional<EarlyStop> early_stop;
  early_stop.emplace(signals, [&given](std::string_view signal) {
    const EarlyEnd end = early_end(given, signal);
    std::cerr << "syncopate: " + end.line + "\n" << std::flush;
    // Ends the process on a signal: the main thread may be in a wait without end.
    std::_Exit(end.exit_code);
  });
  TrainOptions options = given;
  require_open_files(needed_open_files(options.cluster), place_in_job(options.cluster));
  find_devices(options);
  warn_of_threads(options);
  const auto trace = open_trace(options);
  const auto nonce_file = share_nonce(options.cluster, options.rendezvous_timeout);
  prepare_rendezvous(options.cluster);
  const auto membership = meet(options, mpi);
  try {
    return train_in_job(options, workload, signals, early_stop, membership.get(), trace.get(), out);
  } catch (const ps::JobOver& over) {
    std::cerr << "syncopate: " + std::string(over.what()) + ": nothing was left to train\n"
              << std::flush;
    return 0;
  }
}

}  // namespace syncopate
