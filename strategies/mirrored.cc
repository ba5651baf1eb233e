// A copy of the variables on every replica. A bucket's gradients are summed over all replicas as
// soon as they are there, while backward goes on with earlier layers; then every replica makes the
// same update. `mirrored` joins the replicas of one process, `multi-worker-mirrored` those of many:
// one class with another collective. Where GPUs sum (join_replicas.h) all of that stays on them:
// the model starts the sums, and only the step's report travels by the host.
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "strategies/optimizer_slots.h"
#include "strategies/peers_wait.h"
#include "strategies/step_trailer.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

class MirroredVariables final : public VariableStore {
 public:
  MirroredVariables(Replica& replica, const OptimizerOptions& optimizer)
      : replica_(replica), slots_(optimizer, replica.arena->layout().total()) {
    // What travels with each bucket; the last one takes the trailer before the arena along.
    const Tensor& block = replica.collective->block();
    for (const Bucket& bucket : replica.arena->buckets()) {
      const std::int64_t begin = bucket.begin == 0 ? -kTrailerElements : bucket.begin;
      travelling_.push_back(
          {block.rows(kTrailerElements + begin, kTrailerElements + bucket.end), begin, 0});
    }
  }

  void pull(const UpdateStep& update) override { update_ = update; }
  void wait_values(BucketId /*bucket*/) override {}

  void report(const StepReport& mine) override {
    report_ = mine;
    report_.stood_seconds = peers_wait_.stood_seconds();
    write_trailer(report_, trailer());
  }

  void push(BucketId bucket) override {
    Travelling& part = travelling_[static_cast<std::size_t>(bucket)];
    part.work = replica_.collective->all_reduce(part.gradients, part.begin);
  }

  StepReport commit() override {
    ParameterArena& arena = *replica_.arena;
    for (std::size_t b = 0; b < travelling_.size(); ++b) {
      replica_.collective->wait(travelling_[b].work);
      replica_.backend->update(slots_.optimizer(), update_, arena, slots_.tensors(),
                               arena.buckets()[b]);
      arena.bump_version(static_cast<BucketId>(b));
    }
    if (replica_.collective->size() == 1) return report_;
    const StepReport total = read_trailer(trailer());
    peers_wait_.end_step(replica_.collective->times().exposed_seconds, total.stood_seconds);
    return total;
  }

  CommunicationTimes times() const override {
    CommunicationTimes times = replica_.collective->times();
    times.peers_wait_seconds = peers_wait_.waited_seconds();
    return times;
  }
  const OptimizerSlots& slots() const noexcept { return slots_; }

 private:
  struct Travelling {
    Tensor gradients;
    std::int64_t begin = 0;  // arena index of the first element
    WorkId work = 0;
  };

  std::span<float> trailer() const {
    return replica_.collective->block().f32().first(static_cast<std::size_t>(kTrailerElements));
  }

  Replica& replica_;
  OptimizerSlots slots_;
  std::vector<Travelling> travelling_;  // by bucket
  UpdateStep update_;
  StepReport report_;
  PeersWait peers_wait_;
};

// Gradients never leave their devices.
class VariablesOnDevice final : public VariableStore {
 public:
  VariablesOnDevice(Replica& replica, const OptimizerOptions& optimizer)
      : replica_(replica),
        slots_(optimizer, replica.arena->layout().total()),
        trailer_(replica.collective->block().rows(0, kTrailerElements)) {}

  void pull(const UpdateStep& update) override { update_ = update; }
  void wait_values(BucketId /*bucket*/) override {}

  void report(const StepReport& mine) override {
    report_ = mine;
    report_.stood_seconds = peers_wait_.stood_seconds();
    write_trailer(report_, trailer_.f32());
    travelling_ = replica_.collective->all_reduce(trailer_, -kTrailerElements);
  }

  void push(BucketId /*bucket*/) override {}

  // The update is started before anybody is waited for.
  StepReport commit() override {
    ParameterArena& arena = *replica_.arena;
    replica_.backend->update(slots_.optimizer(), update_, arena, slots_.tensors(),
                             {0, arena.layout().total()});
    arena.bump_all_versions();
    if (replica_.collective->size() == 1) return report_;
    replica_.collective->wait(travelling_);
    const StepReport total = read_trailer(trailer_.f32());
    peers_wait_.end_step(replica_.collective->times().exposed_seconds, total.stood_seconds);
    return total;
  }

  CommunicationTimes times() const override {
    CommunicationTimes times = replica_.collective->times();
    times.peers_wait_seconds = peers_wait_.waited_seconds();
    times.bytes_sent.reset();  // those of gradients are not counted
    times.bytes_received.reset();
    return times;
  }
  const OptimizerSlots& slots() const noexcept { return slots_; }

 private:
  Replica& replica_;
  OptimizerSlots slots_;
  Tensor trailer_;
  WorkId travelling_ = 0;
  UpdateStep update_;
  StepReport report_;
  PeersWait peers_wait_;
};

class Mirrored final : public Synchronous {
 public:
  Mirrored(const StrategyOptions& options, const Graph& graph)
      : Mirrored(options, graph, join_replicas(options, graph)) {}

 private:
  Mirrored(const StrategyOptions& options, const Graph& graph, JoinedReplicas joined)
      : Synchronous(options, graph, std::move(joined), nullptr) {
    if (replicas_in_sync() > kMostReplicasInStep) {
      throw UsageError("--strategy " + options.name + ": the job has " +
                       std::to_string(replicas_in_sync()) + " replicas; at most " +
                       std::to_string(kMostReplicasInStep) + " can step together");
    }
    for (Replica& replica : replicas()) {
      if (updates_on_device()) {
        add_variables<VariablesOnDevice>(replica);
      } else {
        add_variables<MirroredVariables>(replica);
      }
    }
    finish_building();
  }

  template <typename Variables>
  void add_variables(Replica& replica) {
    auto variables = std::make_unique<Variables>(replica, options().optimizer);
    slots_.push_back(&variables->slots());
    replica.variables = std::move(variables);
  }

  std::vector<Snapshot::Slot> slots_of(const Replica& replica) const override {
    return slots_[static_cast<std::size_t>(replica.index)]->named();
  }

  std::vector<const OptimizerSlots*> slots_;  // owned by the replicas' variables
};

bool has_other_tasks(const StrategyOptions& options) {
  return options.membership != nullptr && options.membership->members().size() > 1;
}

}  // namespace

std::unique_ptr<Strategy> make_mirrored(const StrategyOptions& options, const Graph& graph) {
  if (has_other_tasks(options)) {
    throw UsageError("--strategy mirrored runs in one process, and this job has " +
                     std::to_string(options.membership->members().size()) +
                     " tasks; choose multi-worker-mirrored");
  }
  if (options.collective != "auto" && options.collective != "local" &&
      options.collective != "nccl") {
    throw UsageError("--collective " + options.collective +
                     ": --strategy mirrored joins threads of one process; leave it out, or choose "
                     "multi-worker-mirrored");
  }
  return std::make_unique<Mirrored>(options, graph);
}

std::unique_ptr<Strategy> make_multi_worker_mirrored(const StrategyOptions& options,
                                                     const Graph& graph) {
  return std::make_unique<Mirrored>(options, graph);
}

}  // namespace syncopate
