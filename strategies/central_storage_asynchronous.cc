// One copy of the variables in host memory that each replica of this process updates at its own
// pace, as the consistency rule allows: parameter servers' training without their network. A
// replica computes on a copy of its own, since the shared values change under its feet; the answer
// to a push brings it up to date, bucket by bucket, while it still goes backward.
#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/base/thread_team.h"
#include "ps/coordinator/wire_conversion.h"
#include "strategies/central_storage.h"
#include "strategies/collective/stopwatch.h"
#include "strategies/job_messages.h"
#include "strategies/local_job.h"
#include "strategies/local_worker.h"
#include "strategies/restore.h"

namespace syncopate {
namespace {

std::string describe(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
}

std::span<float> part_of(const Tensor& block, const Bucket& bucket) {
  return block.f32().subspan(static_cast<std::size_t>(bucket.begin),
                             static_cast<std::size_t>(bucket.end - bucket.begin));
}

class CentralCopyStore final : public VariableStore {
 public:
  CentralCopyStore(Replica& replica, LocalJob& job, const LocalWorker& worker, int lanes)
      : replica_(replica), job_(job), worker_(worker), lanes_(lanes) {}

  // The values are on their way: they were asked for with the last push.
  void pull(const UpdateStep& update) override { update_ = update; }

  void wait_values(BucketId bucket) override {
    {
      const Stopwatch::Exposed exposed(watch_);
      job_.wait_values(replica_.index, bucket);
    }
    replica_.arena->bump_version(bucket);
  }

  void report(const StepReport& mine) override {
    report_ = mine;
    ps::wire::PushT ends;
    ends.batch = std::make_unique<ps::wire::SampleRange>(ps::to_wire(worker_.batch()));
    ends.lanes = lanes_;
    ends.loss = mine.scores.loss;
    ends.correct = mine.scores.num_correct;
    ends.samples = mine.scores.num_samples;
    job_.begin_step(replica_.index, std::move(ends), replica_.state->values.f32());
    watch_.end();
  }

  void push(BucketId bucket) override {
    watch_.begin();
    const Stopwatch::Exposed exposed(watch_);
    const Bucket& range = replica_.arena->buckets()[static_cast<std::size_t>(bucket)];
    job_.push(replica_.index, bucket, update_.learning_rate,
              part_of(replica_.arena->gradients(), range),
              part_of(replica_.arena->values(), range));
  }

  // What this replica did; what becomes of it, wait_values() waits for.
  StepReport commit() override { return report_; }
  CommunicationTimes times() const override { return watch_.times(); }

 private:
  Replica& replica_;
  LocalJob& job_;
  const LocalWorker& worker_;
  const int lanes_;
  UpdateStep update_;
  StepReport report_;
  Stopwatch watch_;
};

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
  AsynchronousJob* asynchronous_job(int replica) override {
    return workers_[static_cast<std::size_t>(replica)].get();
  }

  void for_each_replica(const std::function<void(Replica&)>& task) override {
    team_.run([&](int i) { task(replicas_[static_cast<std::size_t>(i)]); },
              [&](std::exception_ptr error) {
                abort("a replica of this process failed: " + describe(std::move(error)));
              });
  }

  std::vector<double> gather(std::span<const double> mine) override {
    return {mine.begin(), mine.end()};
  }
  void broadcast(std::span<std::byte> /*bytes*/) override {}
  void agree() override {}

  Snapshot snapshot() override {
    const ps::Shard& shard = job_.shard();
    Snapshot live{shard.values(), {}, replicas_.front().state->values};
    const auto names = shard.optimizer().slot_names();
    for (std::size_t s = 0; s < names.size(); ++s) {
      live.slots.push_back({std::string(names[s]), shard.slots()[s]});
    }
    return live;
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
    // Read, not copied: delay compensation compares with what the shard gave out.
    for (Replica& replica : replicas_) {
      for (std::size_t b = 0; b < replica.arena->buckets().size(); ++b) {
        const auto bucket = static_cast<BucketId>(b);
        job_.read(replica.index, bucket,
                  part_of(replica.arena->values(), replica.arena->buckets()[b]));
        job_.wait_values(replica.index, bucket);
      }
      replica.arena->bump_all_versions();
    }
  }

  void leave() override { job_.leave(); }
  void abort(std::string_view reason) noexcept override { job_.abort(reason); }

 private:
  void build(Replica& replica, const StrategyOptions& options, const Graph& graph);

  LocalJob job_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;  // by replica
  std::vector<Replica> replicas_;
  bool has_begun_ = false;
  ThreadTeam team_;
};

void AsynchronousCentralStorage::build(Replica& replica, const StrategyOptions& options,
                                       const Graph& graph) {
  const ArenaLayout layout = graph.parameter_layout();
  replica.backend = make_backend(backend_options(options, replica.index));
  replica.arena =
      std::make_unique<ParameterArena>(layout, plan_buckets(layout, options.bucket_bytes));
  replica.state = std::make_unique<StateBlock>(graph.state_layout());
  fill_initial_values(graph, options.seed, *replica.arena);
  fill_initial_state(graph, *replica.state);
  replica.model = replica.backend->compile(
      graph, *replica.arena, *replica.state,
      {.mode = Mode::kTrain, .batch_size = options.batch_size_per_replica});
  workers_.push_back(std::make_unique<LocalWorker>(job_, replica));
  replica.variables =
      std::make_unique<CentralCopyStore>(replica, job_, *workers_.back(), options.lanes);
}

}  // namespace

std::unique_ptr<Strategy> make_asynchronous_central_storage(const StrategyOptions& options,
                                                            const Graph& graph) {
  if (options.consistency.backup_workers >= options.replicas) {
    throw UsageError("--backup-workers " + std::to_string(options.consistency.backup_workers) +
                     ": of " + std::to_string(options.replicas) +
                     " replicas at least one must be waited for; give more --replicas");
  }
  if (options.batch_norm == BatchNormStatistics::kSync && options.replicas > 1) {
    throw UsageError(
        "--batch-norm sync: replicas that keep no step have no batch in common; leave it out, or "
        "choose --consistency sync without --backup-workers");
  }
  return std::make_unique<AsynchronousCentralStorage>(options, graph);
}

}  // namespace syncopate
