// `syncopate train`: meets the other tasks, opens what the flags name, in the order in which
// mistakes are cheapest, trains, reports. Only the chief writes and speaks of results.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include "deploy/agreements.h"
#include "deploy/commands.h"
#include "deploy/data_agreement.h"
#include "deploy/early_stop.h"
#include "deploy/flags.h"
#include "deploy/formatted.h"
#include "deploy/network_for_data.h"
#include "deploy/peer_watch.h"
#include "deploy/run_start.h"
#include "deploy/train_report.h"
#include "models/base/connection.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/roll_back.h"
#include "strategies/collective/mpi_session.h"
#include "worker/asynchronous_loop.h"
#include "worker/input/leased_batch_source.h"
#include "worker/stop_signal.h"
#include "worker/train_loop.h"

namespace syncopate {
namespace {

constexpr int kExitFailed = 1;

bool has_servers(const TrainOptions& options) {
  return options.strategy.name == "parameter-server";
}

bool meets_through_mpi(const TrainOptions& options) {
  return options.cluster.world_size > 1 && !options.cluster.rendezvous &&
         options.cluster.source == "Open MPI";
}

// mpirun says who takes part, but not where they meet: rank 0 chooses and MPI tells the others.
// Returns what rank 0 listens on.
Listener choose_rendezvous(MpiSession& mpi, ClusterSpec& cluster) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  const bool one_host = cluster.local_size == cluster.world_size;
  Listener listener(Endpoint{one_host ? "127.0.0.1" : "", 0});
  const Endpoint here{one_host ? "127.0.0.1" : host.data(), listener.port()};
  cluster.rendezvous = parse_endpoint(mpi.broadcast(to_string(here)), "MPI's broadcast");
  return listener;
}

// The tasks of the job, or null where this one is alone.
std::unique_ptr<Membership> meet(const TrainOptions& options, MpiSession* mpi) {
  if (options.cluster.world_size == 1 || has_servers(options)) return nullptr;
  ClusterSpec cluster = options.cluster;
  if (meets_through_mpi(options)) {
    Listener listener = choose_rendezvous(*mpi, cluster);
    if (cluster.is_chief()) cluster.rendezvous_descriptor = listener.release().release();
  }
  return join_cluster(cluster, {.num_replicas = options.strategy.replicas,
                                .agreements = agreements_of(options),
                                .rendezvous_timeout = options.rendezvous_timeout,
                                .peer_timeout = options.peer_timeout});
}

// How many replicas' gradients make one update, over all tasks.
int count_replicas(const TrainOptions& options, const Membership* membership) {
  if (!keeps_step(options.strategy.consistency)) return 1;
  if (has_servers(options)) return options.cluster.world_size;
  if (membership == nullptr) return options.strategy.replicas;
  const Member& last = membership->members().back();
  return last.first_replica + last.num_replicas;
}

ScheduleOptions schedule_of(const TrainOptions& options, int replicas, std::int64_t global_batch,
                            std::int64_t steps_per_epoch) {
  ScheduleOptions schedule = options.schedule;
  const TrainLoopOptions& loop = options.loop;
  schedule.total_epochs = loop.total_steps ? static_cast<double>(*loop.total_steps) /
                                                 static_cast<double>(steps_per_epoch)
                                           : static_cast<double>(loop.total_epochs);
  if (options.learning_rate_scale == LearningRateScale::kNone) return schedule;
  if (options.learning_rate_scale == LearningRateScale::kInverseWorkers) {
    schedule.learning_rate /= options.cluster.world_size * options.strategy.replicas;
    return schedule;
  }
  const double reference = options.reference_batch_size > 0
                               ? static_cast<double>(options.reference_batch_size)
                               : static_cast<double>(global_batch) / static_cast<double>(replicas);
  const double ratio = static_cast<double>(global_batch) / reference;
  const double scale =
      options.learning_rate_scale == LearningRateScale::kLinear ? ratio : std::sqrt(ratio);
  // Warm-up climbs from the rate of the reference batch. Source: Goyal et al. 2017, section 2.2.
  if (scale > 1.0) schedule.warmup_start = schedule.learning_rate;
  schedule.learning_rate *= scale;
  return schedule;
}

void describe_run(const TrainOptions& options, const Graph& graph, const DataSplits& data,
                  Strategy& strategy, const ScheduleOptions& schedule, std::int64_t global_batch,
                  ProgressDisplay& display) {
  const std::int64_t samples = data.train->size();
  display.note(formatted("%s, %lld parameters, on %s: %lld samples, %lld steps per epoch; %s",
                         options.model.c_str(), static_cast<long long>(graph.num_parameters()),
                         options.data.c_str(), static_cast<long long>(samples),
                         static_cast<long long>(samples / global_batch),
                         strategy.replicas().front().backend->description().c_str()));
  const int replicas = strategy.replicas_in_sync();
  if (replicas > 1 || options.strategy.name == "multi-worker-mirrored") {
    const int tasks = options.cluster.world_size;
    display.note(
        formatted("%s: %d replica%s in %d task%s, %lld samples per step, %lld per replica",
                  options.strategy.name.c_str(), replicas, replicas == 1 ? "" : "s", tasks,
                  tasks == 1 ? "" : "s", static_cast<long long>(global_batch),
                  static_cast<long long>(share_of_replica(global_batch, 0, replicas).end)));
  }
  if (!keeps_step(options.strategy.consistency)) {
    const int workers =
        has_servers(options) ? options.cluster.world_size : options.strategy.replicas;
    display.note(formatted("%s: %d worker%s without a common step, %lld samples per step",
                           options.strategy.name.c_str(), workers, workers == 1 ? "" : "s",
                           static_cast<long long>(global_batch)));
  }
  if (options.learning_rate_scale != LearningRateScale::kNone) {
    display.note(formatted("learning rate %g, scaled to %g", options.schedule.learning_rate,
                           schedule.learning_rate));
  }
  for (const std::string& note : options.cluster.notes) display.note(note);
}

// Ends this task's part of the job with what it threw: the others hear why before anything here is
// taken down, which may take long. Where a peer began it, its verdict is what counts, and it may
// come a moment after the connection that it broke.
[[noreturn]] void end_job(Membership& membership, const std::exception& error, bool peer_began) {
  constexpr std::chrono::seconds kVerdictMayTake(1);
  constexpr std::chrono::milliseconds kLook(5);
  const Deadline deadline = Deadline::after(kVerdictMayTake);
  while (peer_began && !membership.failure() && !deadline.passed()) {
    std::this_thread::sleep_for(kLook);
  }
  const std::optional<std::string> verdict = membership.failure();
  if (!verdict || !peer_began) {
    membership.fail(error.what());
    throw;
  }
  if (verdict->ends_with(error.what())) throw PeerError(*verdict);
  throw PeerError(*verdict + " (noticed here as: " + error.what() + ")");
}

// Calls `work`; what it throws ends the job. strategy: null as long as there is none.
template <typename Work>
void tell_others(Membership* membership, const std::unique_ptr<Strategy>& strategy,
                 const Work& work) {
  try {
    work();
  } catch (const PeerError& error) {
    if (membership == nullptr) throw;
    end_job(*membership, error, true);
  } catch (const std::exception& error) {
    if (strategy != nullptr) strategy->fail(error.what());
    if (membership == nullptr) throw;
    end_job(*membership, error, false);
  }
}

// The run's batch over all replicas, and the largest share of one.
std::int64_t choose_batch(const TrainOptions& options, int replicas, std::int64_t dataset_size,
                          StrategyOptions& strategy) {
  const std::int64_t global_batch = options.global_batch_size > 0
                                        ? options.global_batch_size
                                        : strategy.batch_size_per_replica * replicas;
  check(global_batch >= 1 && replicas >= 1, "a step has samples, and replicas to train them");
  strategy.batch_size_per_replica = share_of_replica(global_batch, 0, replicas).end;
  if (global_batch > dataset_size) {
    throw UsageError("batch of " + std::to_string(global_batch) + ": --data " + options.data +
                     " has only " + std::to_string(dataset_size) +
                     " samples to train on; choose a smaller batch");
  }
  return global_batch;
}

// What a run works with, in the order in which it is made. It outlives the telling of a failure:
// taking down readers of a slow disk may wait for them.
struct Workbench {
  DataSplits data;
  std::optional<Graph> graph;
  std::unique_ptr<Strategy> strategy;
  std::optional<PeerWatch::Waker> waker;
  std::unique_ptr<MetricsWriter> metrics;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<BatchSource> input;
  bool begins_again = false;  // at an earlier step: the readers' end is not this task's
  std::vector<std::unique_ptr<LeasedBatchSource>> leased_inputs;  // by replica of this task
};

// Compute lanes of a replica where nobody chose: the CPUs, shared out over the replicas of all
// tasks that are seen to be on this host.
int choose_lanes(const TrainOptions& options, const Membership* membership) {
  if (options.strategy.lanes > 0) return options.strategy.lanes;
  int sharing = options.strategy.replicas;
  if (has_servers(options) && !options.has_own_cpus) sharing *= options.cluster.local_size;
  if (membership != nullptr && !options.has_own_cpus) {
    const std::vector<Member>& members = membership->members();
    const Member& me = members[static_cast<std::size_t>(membership->index())];
    for (const Member& member : members) {
      if (member.index != me.index && member.host == me.host) sharing += member.num_replicas;
    }
  }
  return default_lanes(sharing);
}

// What whoever hands out batches must know of this run.
void describe_job(const TrainOptions& options, const DataSplits& data, std::int64_t batch_size,
                  StrategyOptions& strategy) {
  ParameterServerOptions& servers = strategy.parameter_server;
  servers.cluster = options.cluster;
  servers.agreements = agreements_of(options);
  servers.agreements.push_back({"--data", describe_samples(data)});
  const TrainLoopOptions& loop = options.loop;
  servers.plan = {.network = options.model,
                  .dataset_size = data.train->size(),
                  .batch_size = batch_size,
                  .total_epochs = loop.total_epochs,
                  .total_steps = loop.total_steps,
                  .eval_every_epochs = loop.eval_every_epochs,
                  .checkpoint_every_steps = loop.checkpoint_every_steps,
                  .writes_checkpoints = !loop.checkpoint_dir.empty()};
  servers.rendezvous_timeout = options.rendezvous_timeout;
  if (options.peer_timeout.count() > 0) servers.peer_timeout = options.peer_timeout;
  constexpr std::chrono::seconds kRestartMayTake(60);
  // They come back with their snapshots, or not at all; server 0's verdict on another says more
  // than ours, and should come first.
  const bool servers_return = options.cluster.restarts && !loop.checkpoint_dir.empty();
  servers.server_patience =
      servers_return ? std::chrono::milliseconds(kRestartMayTake) : servers.peer_timeout * 8 / 10;
}

// Trains what the job gives this task.
TrainOutcome train_leased(const TrainOptions& options, const Schedule& schedule, Workbench& bench,
                          const RunStart& start, const StopPoll& stop) {
  Strategy& strategy = *bench.strategy;
  const ps::ConsistencyOptions& consistency = options.strategy.consistency;
  LeasedInputOptions input{.input = options.input};
  input.input.batch_size = options.strategy.batch_size_per_replica;
  input.input.seed = options.strategy.seed;
  if (consistency.consistency == ps::Consistency::kSync) {
    const int workers =
        has_servers(options) ? options.cluster.world_size : options.strategy.replicas;
    input.loss_divisor_factor = workers - consistency.backup_workers;
  }
  std::vector<std::unique_ptr<MetricsWriter>> metrics;
  std::vector<std::unique_ptr<ProgressDisplay>> displays;
  std::vector<AsynchronousWorker> workers;
  for (const Replica& replica : strategy.replicas()) {
    AsynchronousJob& job = *strategy.asynchronous_job(replica.index);
    bench.leased_inputs.push_back(std::make_unique<LeasedBatchSource>(
        *bench.data.train, input,
        LeaseOffice{.next_lease = [&job] { return job.next_lease(); },
                    .stop =
                        [&bench, &strategy] {
                          if (!bench.begins_again) strategy.abort("this task has ended");
                        }}));
    metrics.push_back(make_late_metrics_writer(options.metrics));
    displays.push_back(make_progress_display(options.show_progress));
    workers.push_back({*bench.leased_inputs.back(), *metrics.back(), *displays.back()});
  }
  const TrainOutcome outcome =
      train_asynchronously({.graph = *bench.graph,
                            .strategy = strategy,
                            .workers = std::move(workers),
                            .dataset_size = bench.data.train->size(),
                            .batch_size = input.input.batch_size,
                            .test = *bench.data.test,
                            .evaluation = {.threads = options.input.threads},
                            .schedule = schedule,
                            .optimizer = options.strategy.optimizer.name,
                            .stop = stop},
                           options.loop, start.progress);
  bench.metrics = std::move(metrics.front());
  return outcome;
}

// Calls `work`, which trains from `start` on, and again from an earlier step each time when the
// servers have gone back to one.
template <typename Work>
void train_over_roll_backs(Workbench& bench, RunStart& start, ProgressDisplay& display,
                           const Work& work) {
  for (std::optional<ps::StartInfo> earlier;;) {
    try {
      if (earlier) {
        bench.begins_again = true;
        bench.leased_inputs.clear();
        bench.begins_again = false;
        bench.input.reset();
        Progress& progress = start.progress;
        progress.step = earlier->step;
        progress.samples = earlier->samples;
        progress.position = {earlier->epoch, earlier->offset, earlier->untrained};
        bench.strategy->begin({.step = earlier->step,
                               .samples = earlier->samples,
                               .position = {earlier->epoch, earlier->offset, earlier->untrained}});
      }
      return work();
    } catch (const ps::RolledBack& back) {
      display.note(std::string(back.what()) + "; training goes on from there");
      earlier = back.start();
    }
  }
}

int train_in_job(const TrainOptions& options, StopSignal& signals,
                 std::optional<EarlyStop>& early_stop, Membership* membership, std::ostream& out) {
  const bool is_chief = options.cluster.is_chief();
  const auto display =
      is_chief ? make_progress_display(options.show_progress) : make_silent_display();
  std::optional<PeerWatch> watch;
  if (membership != nullptr) {
    watch.emplace(*membership, membership->peer_timeout() / 5, [](const std::string& reason) {
      std::cerr << "syncopate: " + reason + "\n" << std::flush;
      std::_Exit(kExitFailed);  // the training thread is busy elsewhere: nothing can be unwound
    });
    display->note(formatted("%zu tasks have met", membership->members().size()));
  }
  Workbench bench;
  RunStart start;
  TrainOutcome outcome;
  TrainOptions run_options = options;
  std::int64_t global_batch = 0;
  tell_others(membership, bench.strategy, [&] {
    bench.data =
        open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = options.strategy.seed});
    const DataSplits& data = bench.data;
    if (membership != nullptr) require_same_data(data, *membership);
    run_options.strategy.membership = membership;
    run_options.strategy.lanes = choose_lanes(options, membership);
    const int replicas = count_replicas(options, membership);
    global_batch = choose_batch(options, replicas, data.train->size(), run_options.strategy);
    if (is_chief && options.input.augment == Augment::kCropFlip && !data.suits_crop_flip) {
      log(LogLevel::kWarning,
          "--augment crop-flip mirrors images, and a mirrored one may be of another class in " +
              options.data);
    }
    const Graph& graph = bench.graph.emplace(network_for_data(options.model, options.data, data));
    const ScheduleOptions schedule_options =
        schedule_of(options, replicas, global_batch, data.train->size() / global_batch);
    const Schedule schedule(schedule_options);

    if (has_servers(options) || !keeps_step(options.strategy.consistency)) {
      // Of a step, as the coordinator counts them: everybody's, or each worker's own.
      const bool in_step = keeps_step(options.strategy.consistency);
      describe_job(options, data,
                   in_step ? global_batch : run_options.strategy.batch_size_per_replica,
                   run_options.strategy);
    }
    bench.strategy = make_strategy(run_options.strategy, graph);
    Strategy& strategy = *bench.strategy;
    if (watch) {
      bench.waker.emplace(*watch,
                          [&strategy](const std::string& reason) { strategy.abort(reason); });
    }
    start = start_run(run_options, graph, data.name, strategy);
    if (!start.note.empty()) display->note(start.note);
    const StopPoll stop = [&signals] { return signals.poll(); };
    if (strategy.asynchronous_job(0) != nullptr) {
      describe_run(run_options, graph, data, strategy, schedule_options, global_batch, *display);
      early_stop.reset();
      train_over_roll_backs(bench, start, *display, [&] {
        outcome = train_leased(run_options, schedule, bench, start, stop);
        strategy.leave();
      });
      return;
    }
    bench.metrics = make_metrics_writer(is_chief ? options.metrics : "", start.resumed);
    describe_run(run_options, graph, data, strategy, schedule_options, global_batch, *display);

    bench.evaluator = std::make_unique<Evaluator>(
        strategy, graph, *data.test, EvaluationOptions{.threads = options.input.threads});
    InputOptions input_options = options.input;
    input_options.batch_size = global_batch;
    input_options.seed = options.strategy.seed;
    input_options.shard = strategy.input_shard();

    early_stop.reset();
    train_over_roll_backs(bench, start, *display, [&] {
      bench.input = make_batch_source(*data.train, input_options, start.progress.position);
      outcome = train({.graph = graph,
                       .strategy = strategy,
                       .input = *bench.input,
                       .dataset_size = data.train->size(),
                       .global_batch = global_batch,
                       .schedule = schedule,
                       .optimizer = options.strategy.optimizer.name,
                       .evaluator = *bench.evaluator,
                       .metrics = *bench.metrics,
                       .display = *display,
                       .stop = stop,
                       .membership = membership},
                      options.loop, start.progress);
      if (membership != nullptr) membership->leave();
      strategy.leave();
    });
  });
  if (outcome.stopped_by) return report_stop(outcome, *display);
  if (outcome.progress.step == start.progress.step) {
    display->note("nothing left to train: " + std::to_string(start.progress.step) +
                  " steps are done");
  }
  // Without a step that all take together, whoever was appointed last reports for all.
  const bool reports =
      keeps_step(options.strategy.consistency) ? is_chief : outcome.test.has_value();
  if (!reports) return 0;
  const Summary summary = summary_of(options, global_batch, *bench.strategy, outcome);
  bench.metrics->write(summary);
  print_result(options, summary, outcome, out);
  return 0;
}

}  // namespace

bool wants_mpi(const TrainOptions& options) {
  return options.strategy.collective == "mpi" || meets_through_mpi(options);
}

int run_train(const TrainOptions& options, StopSignal& signals, MpiSession* mpi,
              std::ostream& out) {
  if (options.cluster.role == Role::kServer) return run_train_server(options, signals);
  if (options.cluster.role == Role::kEvaluator) return run_train_evaluator(options, signals, out);
  std::optional<EarlyStop> early_stop;
  early_stop.emplace(signals, [](std::string_view signal) {
    std::cerr << "syncopate: stopped by " + std::string(signal) +
                     " before training began; nothing was saved\n"
              << std::flush;
    std::_Exit(kExitFailed);  // whatever the main thread waits for, it need not end
  });
  const auto membership = meet(options, mpi);
  return train_in_job(options, signals, early_stop, membership.get(), out);
}

}  // namespace syncopate
