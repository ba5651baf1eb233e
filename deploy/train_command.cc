// `syncopate train`: meets the other tasks, opens what the flags name, in the order in which
// mistakes are cheapest, trains, reports. Only the chief writes and speaks of results.
#include <unistd.h>

#include <array>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>

#include "deploy/agreements.h"
#include "deploy/commands.h"
#include "deploy/data_agreement.h"
#include "deploy/formatted.h"
#include "deploy/network_for_data.h"
#include "deploy/peer_watch.h"
#include "deploy/run_start.h"
#include "deploy/train_report.h"
#include "models/base/connection.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "strategies/collective/mpi_session.h"
#include "worker/stop_signal.h"
#include "worker/train_loop.h"

namespace syncopate {
namespace {

constexpr int kExitFailed = 1;

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
  if (options.cluster.world_size == 1) return nullptr;
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

// How many replicas train together, over all tasks.
int count_replicas(const TrainOptions& options, const Membership* membership) {
  if (membership == nullptr) return options.strategy.replicas;
  const Member& last = membership->members().back();
  return last.first_replica + last.num_replicas;
}

ScheduleOptions schedule_of(const TrainOptions& options, std::int64_t global_batch,
                            std::int64_t steps_per_epoch) {
  ScheduleOptions schedule = options.schedule;
  const TrainLoopOptions& loop = options.loop;
  schedule.total_epochs = loop.total_steps ? static_cast<double>(*loop.total_steps) /
                                                 static_cast<double>(steps_per_epoch)
                                           : static_cast<double>(loop.total_epochs);
  if (options.learning_rate_scale == LearningRateScale::kNone) return schedule;
  const std::int64_t reference = options.reference_batch_size > 0
                                     ? options.reference_batch_size
                                     : options.strategy.batch_size_per_replica;
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(reference);
  const double scale =
      options.learning_rate_scale == LearningRateScale::kLinear ? ratio : std::sqrt(ratio);
  // Warm-up climbs from the rate of the reference batch. Source: Goyal et al. 2017, section 2.2.
  schedule.warmup_start = schedule.learning_rate;
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
  if (replicas > 1) {
    display.note(
        formatted("%s: %d replicas in %d tasks, %lld samples per step, %lld per replica",
                  options.strategy.name.c_str(), replicas, options.cluster.world_size,
                  static_cast<long long>(global_batch),
                  static_cast<long long>(share_of_replica(global_batch, 0, replicas).end)));
  }
  if (options.learning_rate_scale != LearningRateScale::kNone) {
    display.note(formatted("learning rate %g, scaled to %g", options.schedule.learning_rate,
                           schedule.learning_rate));
  }
  for (const std::string& note : options.cluster.notes) display.note(note);
}

int train_in_job(const TrainOptions& options, StopSignal& signals, Membership* membership,
                 std::ostream& out) {
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
  const DataSplits data =
      open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = options.strategy.seed});

  TrainOptions run_options = options;
  StrategyOptions& strategy_options = run_options.strategy;
  const int replicas = count_replicas(options, membership);
  const std::int64_t global_batch = options.global_batch_size > 0
                                        ? options.global_batch_size
                                        : strategy_options.batch_size_per_replica * replicas;
  if (options.global_batch_size > 0) {
    strategy_options.batch_size_per_replica = share_of_replica(global_batch, 0, replicas).end;
  }
  strategy_options.membership = membership;
  if (global_batch > data.train->size()) {
    throw UsageError("batch of " + std::to_string(global_batch) + ": --data " + options.data +
                     " has only " + std::to_string(data.train->size()) +
                     " samples to train on; choose a smaller batch");
  }
  if (is_chief && options.input.augment == Augment::kCropFlip && !data.suits_crop_flip) {
    log(LogLevel::kWarning,
        "--augment crop-flip mirrors images, and a mirrored one may be of another class in " +
            options.data);
  }
  const Graph graph = network_for_data(options.model, options.data, data);
  const ScheduleOptions schedule_options =
      schedule_of(run_options, global_batch, data.train->size() / global_batch);
  const Schedule schedule(schedule_options);

  const auto strategy = make_strategy(strategy_options, graph);
  std::optional<PeerWatch::Waker> waker;
  if (watch) {
    waker.emplace(*watch, [&strategy](const std::string& reason) { strategy->abort(reason); });
  }
  if (membership != nullptr) require_same_data(data, *strategy);
  const RunStart start = start_run(run_options, graph, data.name, *strategy);
  if (!start.note.empty()) display->note(start.note);
  const auto metrics = make_metrics_writer(is_chief ? options.metrics : "", start.resumed);

  Evaluator evaluator(*strategy, graph, *data.test, {.threads = options.input.threads});
  InputOptions input_options = options.input;
  input_options.batch_size = global_batch;
  input_options.seed = options.strategy.seed;
  input_options.shard = strategy->input_shard();
  const auto input = make_batch_source(*data.train, input_options, start.progress.position);
  describe_run(run_options, graph, data, *strategy, schedule_options, global_batch, *display);

  const TrainOutcome outcome = train({.graph = graph,
                                      .strategy = *strategy,
                                      .input = *input,
                                      .dataset_size = data.train->size(),
                                      .global_batch = global_batch,
                                      .schedule = schedule,
                                      .optimizer = options.strategy.optimizer.name,
                                      .evaluator = evaluator,
                                      .metrics = *metrics,
                                      .display = *display,
                                      .stop = [&signals] { return signals.poll(); },
                                      .membership = membership},
                                     options.loop, start.progress);
  if (membership != nullptr) membership->leave();
  if (outcome.stopped_by) return report_stop(outcome, *display);
  if (outcome.progress.step == start.progress.step) {
    display->note("nothing left to train: " + std::to_string(start.progress.step) +
                  " steps are done");
  }
  if (!is_chief) return 0;
  const Summary summary = summary_of(options, global_batch, *strategy, outcome);
  metrics->write(summary);
  print_result(options, summary, outcome, out);
  return 0;
}

// What ended the job, with what this task was doing, rather than a broken connection's words.
std::string reason_of(const Membership& membership, const std::exception& error) {
  const std::optional<std::string> failure = membership.failure();
  if (!failure || *failure == error.what()) return error.what();
  return *failure + " (noticed here as: " + error.what() + ")";
}

}  // namespace

bool wants_mpi(const TrainOptions& options) {
  return options.strategy.collective == "mpi" || meets_through_mpi(options);
}

int run_train(const TrainOptions& options, MpiSession* mpi, std::ostream& out) {
  StopSignal signals;  // before the first thread of ours
  const auto membership = meet(options, mpi);
  try {
    return train_in_job(options, signals, membership.get(), out);
  } catch (const PeerError& error) {
    if (membership == nullptr) throw;
    const std::string reason = reason_of(*membership, error);
    membership->fail(reason);
    throw PeerError(reason);
  } catch (const std::exception& error) {
    if (membership != nullptr) membership->fail(error.what());
    throw;
  }
}

}  // namespace syncopate
