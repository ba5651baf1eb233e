#include "worker/run/training_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "worker/run/job_membership.h"
#include "worker/run/run_data.h"
#include "worker/run/run_sizes.h"
#include "worker/train/tensorboard.h"

namespace syncopate {
namespace {

// Makes the stores of deferred evaluations once; they outlive roll-backs.
void make_deferred_evaluations(const TrainLoopOptions& loop, const RunStart& start,
                               TrainingSession& session) {
  if (loop.eval_when == EvalWhen::kDue || !session.deferred_evaluations.empty()) return;
  const bool is_of_run = !loop.checkpoint_dir.empty();
  const DeferredEvaluationsOptions options{
      .folder = is_of_run ? loop.checkpoint_dir : loop.temporary_dir, .is_of_run = is_of_run};
  while (session.deferred_evaluations.size() < session.strategy->replicas().size()) {
    session.deferred_evaluations.push_back(std::make_unique<DeferredEvaluations>(options));
  }
  if (session.strategy->is_chief() && start.progress.at.step == 0) {
    session.deferred_evaluations.front()->remove_earlier_run();
  }
}

// Each replica's readers have their own names and ids.
ReaderTrace readers_of(const ReaderTrace& readers, int replica) {
  constexpr int kMostReaders = 1024;
  return {.trace = readers.trace,
          .first_id = readers.first_id + replica * kMostReaders,
          .name = fmt::format("replica {} reader", replica)};
}

}  // namespace

void TrainingSession::roll_back_rules(ps::RunPosition& at) {
  rules_by_step.erase(rules_by_step.upper_bound(at.step), rules_by_step.end());
  if (!rules_by_step.empty()) at.rules = rules_by_step.rbegin()->second;
}

void describe_job(const TrainOptions& options, const Graph& graph, const DataSplits& data,
                  std::int64_t batch_size, StrategyOptions& strategy) {
  ParameterServerOptions& servers = strategy.parameter_server;
  servers.cluster = options.cluster;
  servers.agreements = agreements_of(options);
  servers.agreements.push_back({"--data", describe_samples(data)});
  servers.agreements.push_back({"network", describe_network(graph)});
  const TrainLoopOptions& loop = options.loop;
  servers.plan = {.network = options.model,
                  .dataset_size = data.train->size(),
                  .batch_size = batch_size,
                  .total_epochs = loop.total_epochs,
                  .total_steps = loop.total_steps,
                  .eval_every_epochs = loop.eval_every_epochs,
                  .eval_every_steps = loop.eval_every_steps,
                  .checkpoint_every_steps = loop.checkpoint_every_steps,
                  .writes_checkpoints = !loop.checkpoint_dir.empty(),
                  .saves_evaluated = loop.rules.keeps_best};
  servers.rendezvous_timeout = options.rendezvous_timeout;
  servers.peer_timeout = served_peer_timeout(options.peer_timeout, options.cluster);
  servers.insists_on_peer_timeout = options.peer_timeout.count() > 0;
  constexpr std::chrono::seconds kRestartMayTake(60);
  // A restarted server resumes from a snapshot, which takes time. A server that cannot return is
  // given up a little later than server 0 gives it up, because the error message of server 0 is
  // more precise.
  const bool servers_return = options.cluster.restarts && !loop.checkpoint_dir.empty();
  servers.server_timeout =
      servers_return ? std::chrono::milliseconds(kRestartMayTake) : servers.peer_timeout * 8 / 10;
}

std::unique_ptr<Trace> open_trace(const TrainOptions& options) {
  if (options.trace.empty()) return nullptr;
  const ClusterSpec& cluster = options.cluster;
  return std::make_unique<Trace>(trace_file(options.trace, cluster.index, cluster.world_size),
                                 cluster.index, fmt::format("task {}", cluster.index));
}

void trace_replicas(Strategy& strategy, Trace* trace) {
  if (trace == nullptr) return;
  for (Replica& replica : strategy.replicas()) {
    replica.trace = &trace->thread(replica.index, fmt::format("replica {}", replica.index));
    if (!replica.model->record_passes(*trace)) replica.passes_trace = replica.trace;
  }
}

InputMeans input_means(const TrainOptions& options, int sources) {
  return {.cpus = options.input.autotune.share(sources).cpus,
          .is_encoded = is_encoded(options.data),
          .is_tuned = options.input.autotune.threads};
}

EvaluationOptions evaluation_options(const TrainOptions& options) {
  return {.threads = options.input.threads,
          .autotune = options.input.autotune.share(options.strategy.replicas),
          .uses_average = options.strategy.optimizer.average_decay > 0.0};
}

TrainLoopOptions loop_options(const TrainOptions& options, const RunStart& start) {
  constexpr double kNothingLeft = 1e-9;  // used when no time is left, since 0 means no limit
  TrainLoopOptions loop = options.loop;
  loop.checkpoint_lock = start.folder.get();
  if (loop.max_seconds > 0.0) {
    loop.max_seconds = std::max(kNothingLeft, loop.max_seconds - start.seconds_spent);
  }
  return loop;
}

TrainOutcome train_leased(const TrainOptions& options, const Schedule& schedule,
                          TrainingSession& session, const RunStart& start, const StopPoll& stop) {
  Strategy& strategy = *session.strategy;
  const ps::ConsistencyOptions& consistency = options.strategy.consistency;
  LeasedInputOptions input{.input = options.input};
  input.input.batch_size = options.strategy.batch_size_per_replica;
  input.input.seed = options.strategy.seed;
  if (consistency.consistency == ps::Consistency::kSync) {
    input.loss_divisor_factor = count_workers(options) - consistency.backup_workers;
  }
  std::vector<std::unique_ptr<MetricsWriter>> metrics;
  std::vector<std::unique_ptr<ProgressDisplay>> displays;
  std::vector<AsynchronousWorker> workers;
  make_deferred_evaluations(options.loop, start, session);
  for (const Replica& replica : strategy.replicas()) {
    input.input.trace = readers_of(options.input.trace, replica.index);
    input.input.autotune = options.input.autotune.share(options.strategy.replicas);
    AsynchronousJob& job = asynchronous_job(strategy, replica.index);
    session.leased_inputs.push_back(std::make_unique<LeasedBatchSource>(
        *session.data.train, input,
        LeaseSource{.next_lease = [&job] { return job.next_lease(); },
                    .stop =
                        [&session, &strategy] {
                          if (!session.begins_again) strategy.abort("this task has ended");
                        }}));
    metrics.push_back(make_late_metrics_writer(options.metrics));
    if (!options.tensorboard.empty()) {
      metrics.back() =
          make_both(std::move(metrics.back()),
                    make_tensorboard_writer(options.tensorboard,
                                            options.loop.first_worker + replica.index == 0
                                                ? CurveWriter::kFirstWorker
                                                : CurveWriter::kOtherWorker));
    }
    displays.push_back(make_progress_display(!options.hides_progress));
    const auto index = static_cast<std::size_t>(replica.index);
    DeferredEvaluations* const kept =
        session.deferred_evaluations.empty() ? nullptr : session.deferred_evaluations[index].get();
    workers.push_back({*session.leased_inputs.back(), *metrics.back(), *displays.back(), kept});
  }
  const TrainOutcome outcome = train_asynchronously(
      {.graph = *session.graph,
       .strategy = strategy,
       .workers = std::move(workers),
       .dataset_size = session.data.train->size(),
       .batch_size = input.input.batch_size,
       .samples_per_update = samples_per_update(options, input.input.batch_size),
       .watched = session.data.watched(),
       .evaluation = evaluation_options(options),
       .schedule = schedule,
       .optimizer = options.strategy.optimizer.name,
       .stop = stop,
       .final_test = session.data.validation != nullptr ? session.data.test.get() : nullptr,
       .bad_samples = session.data.train->bad_samples(),
       .input_means = input_means(options, options.strategy.replicas),
       .local_updates = local_updates_of(options)},
      loop_options(options, start), start.progress);
  session.metrics = std::move(metrics.front());
  return outcome;
}

}  // namespace syncopate
