// --strategy central-storage, asynchronous: one copy of the variables in host memory, which each
// replica of this process updates at its own pace, as the consistency rule allows. This is the
// training of parameter servers without their network. A replica computes on a copy of its own,
// because other replicas change the shared values at any time; the answer to each push brings the
// copy up to date, bucket by bucket, while the backward pass goes on.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/base/thread_team.h"
#include "strategies/asynchronous_job.h"
#include "strategies/coordinated_worker.h"
#include "strategies/local_job.h"

namespace syncopate {
namespace {

// Connects one replica to the shard of this process (local_job.h), as a worker of an asynchronous
// job.
class LocalWorker final : public AsynchronousJob, public ShardTransport {
 public:
  // The constructor keeps references: `job` and `replica` outlive the worker.
  LocalWorker(LocalJob& job, Replica& replica)
      : job_(job), replica_(replica), index_(replica.index) {}

  void begin_step(ps::StepInfo step) override {
    step.batches = std::exchange(batches_, {});
    job_.begin_step(index_, step);
  }
  void push(BucketId bucket) override {
    job_.push(index_, bucket, part_of(replica_.arena->gradients(), bucket), values(bucket));
  }
  void wait_values(BucketId bucket) override { job_.wait_values(index_, bucket); }
  std::optional<StepReport> finish_step() override { return std::nullopt; }
  CommunicationTimes with_traffic(CommunicationTimes times) const override {
    times.dropped_steps = job_.dropped_steps(index_);
    return times;
  }

  std::optional<ps::SampleRange> next_lease() override { return job_.next_lease(index_); }
  void begin_step(const ps::SampleRange& batch) override { batches_.push_back(batch); }
  JobStatus status() const override { return job_status_of(job_.status()); }
  // Replicas of one process are only lost together, so replica 0 is always the lowest live worker.
  bool is_reporter() const override { return index_ == 0; }
  std::optional<Assignment> next_assignment() override {
    const auto next = job_.next_assignment(index_);
    return next ? std::optional(assignment_of(*next)) : std::nullopt;
  }
  std::optional<Assignment> wait_assignment() override {
    const auto next = job_.wait_assignment(index_);
    return next ? std::optional(assignment_of(*next)) : std::nullopt;
  }
  Snapshot read_snapshot(const Assignment& assignment, bool with_slots) override;
  void done(const Assignment& assignment) override {
    job_.done(index_, assignment.snapshot_id, assignment.rules);
  }
  void refresh() override;
  void request_stop(ps::StopKind kind) override { job_.request_stop(index_, kind); }

  // Starts to read the bucket's current values from the shard.
  void read(BucketId bucket) { job_.read(index_, bucket, values(bucket)); }

 private:
  std::span<float> part_of(const Tensor& block, BucketId bucket) const {
    const Bucket& range = replica_.arena->buckets()[static_cast<std::size_t>(bucket)];
    return block.f32().subspan(static_cast<std::size_t>(range.begin),
                               static_cast<std::size_t>(range.end - range.begin));
  }
  std::span<float> values(BucketId bucket) const {
    return part_of(replica_.arena->values(), bucket);
  }

  LocalJob& job_;
  Replica& replica_;
  const int index_;
  std::vector<ps::SampleRange> batches_;  // trained since the last push
};

// Returns the tensors of the server's snapshot without a copy: each snapshot has tensors of its
// own, and the server does not write to them after the snapshot is complete.
Snapshot LocalWorker::read_snapshot(const Assignment& assignment, bool with_slots) {
  const std::shared_ptr<const ps::ServedSnapshot> copy = job_.snapshot(assignment.snapshot_id);
  Snapshot snapshot{.values = copy->state.values, .slots = {}, .state = {}};
  snapshot.state =
      make_host_tensor({static_cast<std::int64_t>(copy->running_statistics.size())}, DType::kF32);
  std::ranges::copy(copy->running_statistics, snapshot.state.f32().begin());
  if (with_slots) snapshot.slots = named_slots(job_.shard().optimizer(), copy->state.slots);
  remove_collected(snapshot.slots);
  return snapshot;
}

void LocalWorker::refresh() {
  for (std::size_t b = 0; b < replica_.arena->buckets().size(); ++b) {
    const auto bucket = static_cast<BucketId>(b);
    wait_values(bucket);  // the last push's answer is written to the same memory
    read(bucket);
  }
}

class AsynchronousCentralStorage final : public Strategy {
 public:
  AsynchronousCentralStorage(const StrategyOptions& options, const Graph& graph)
      : job_(declare_job(options, graph,
                         plan_buckets(graph.parameter_layout(), options.bucket_bytes), {},
                         options.replicas)),
        team_(options.replicas, "replica") {
    replicas_.reserve(static_cast<std::size_t>(options.replicas));
    for (int i = 0; i < options.replicas; ++i) {
      build(replicas_.emplace_back(Replica{.index = i}), options, graph);
    }
    std::ranges::copy(replicas_.front().arena->values().f32(), job_.shard().values().f32().begin());
  }

  std::span<Replica> replicas() noexcept override { return replicas_; }
  int replicas_in_sync() const noexcept override { return 1; }
  InputShard input_shard() const noexcept override { return {}; }
  bool is_chief() const noexcept override { return true; }
  Job job(int replica) noexcept override {
    return workers_[static_cast<std::size_t>(replica)].get();
  }

  void for_each_replica(const std::function<void(Replica&)>& task) override {
    team_.run([&](int i) { task(replicas_[static_cast<std::size_t>(i)]); },
              [&](const std::exception_ptr& error) {
                abort("a replica of this process failed: " + message_of(error));
              });
  }

  Snapshot snapshot() override {
    const ps::Shard& shard = job_.shard();
    Snapshot now{shard.values(), named_slots(shard.optimizer(), shard.slots()),
                 replicas_.front().state->values};
    remove_collected(now.slots);
    return now;
  }

  void restore(const Snapshot& saved) override {
    check(!has_begun_, "variables are restored before training begins");
    const Snapshot live = snapshot();
    check_snapshot(saved, live);
    copy_snapshot(saved, live);
    for (Replica& replica : replicas_) {
      std::ranges::copy(live.values.f32(), replica.arena->values().f32().begin());
      std::ranges::copy(live.state.f32(), replica.state->values.f32().begin());
      replica.arena->bump_all_versions();
    }
  }

  void begin(const ps::RunPosition& start) override {
    job_.begin(start, replicas_.front().state->values.f32());
    has_begun_ = true;
    // Replicas must read their first values from the shard, although they hold equal ones: delay
    // compensation compares with the values that the shard has handed out.
    for (Replica& replica : replicas_) {
      LocalWorker& worker = *workers_[static_cast<std::size_t>(replica.index)];
      for (std::size_t b = 0; b < replica.arena->buckets().size(); ++b) {
        worker.read(static_cast<BucketId>(b));
        worker.wait_values(static_cast<BucketId>(b));
      }
      replica.arena->bump_all_versions();
    }
  }

  void leave() override { job_.leave(); }
  void fail(std::string_view reason, bool /*ends_job*/) noexcept override { job_.abort(reason); }
  void abort(std::string_view reason) noexcept override { job_.abort(reason); }

 private:
  void build(Replica& replica, const StrategyOptions& options, const Graph& graph);

  LocalJob job_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;  // one worker per replica
  std::vector<Replica> replicas_;
  bool has_begun_ = false;
  ThreadTeam team_;
};

void AsynchronousCentralStorage::build(Replica& replica, const StrategyOptions& options,
                                       const Graph& graph) {
  const ArenaLayout layout = graph.parameter_layout();
  replica.micro_batches = options.micro_batches;
  replica.backend = make_backend(backend_options(options, replica.index));
  replica.arena =
      std::make_unique<ParameterArena>(layout, plan_buckets(layout, options.bucket_bytes));
  replica.state = std::make_unique<StateBlock>(graph.state_layout());
  fill_initial_values(graph, options.seed, *replica.arena);
  fill_initial_state(graph, *replica.state);
  replica.model =
      replica.backend->compile(graph, *replica.arena, *replica.state,
                               {.mode = Mode::kTrain, .batch_size = micro_batch_size(options)});
  workers_.push_back(std::make_unique<LocalWorker>(job_, replica));
  replica.variables = make_worker_variables(replica, *workers_.back(), options);
}

}  // namespace

std::unique_ptr<Strategy> make_asynchronous_central_storage(const StrategyOptions& options,
                                                            const Graph& graph) {
  if (options.consistency.backup_workers >= options.replicas) {
    throw UsageError(fmt::format(
        "--backup-workers {}: at least one of the {} replicas must not be a backup; give more "
        "--replicas",
        options.consistency.backup_workers, options.replicas));
  }
  if (options.batch_norm == BatchNormStatistics::kSync && options.replicas > 1) {
    throw UsageError(
        "--batch-norm sync: asynchronous replicas share no batch; omit --batch-norm, or choose "
        "--consistency sync without --backup-workers");
  }
  return std::make_unique<AsynchronousCentralStorage>(options, graph);
}

}  // namespace syncopate
