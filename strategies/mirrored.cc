// --strategy mirrored and multi-worker-mirrored: a copy of the variables on every replica. The
// all-reduce of a bucket starts as soon as the bucket's gradients are complete, while the backward
// pass goes on with earlier layers; then every replica makes the same update. Gradients are clipped
// by the norm of the sums. The two strategies are one class with different collectives: mirrored
// joins the replicas of one process, multi-worker-mirrored the replicas of several processes. If
// GPUs sum the gradients (join_replicas.h), the model starts the sums, and only the step's report
// passes through the host.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "strategies/replica_update.h"
#include "strategies/step_trailer.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

// The variables of a replica, for gradients that are summed on the host.
class MirroredVariables final : public VariableStore {
 public:
  MirroredVariables(Replica& replica, const StrategyOptions& options)
      : replica_(replica), update_(replica, options) {
    // The step report lies in front of arena index 0, as a trailer of the gradients. It is summed
    // together with the bucket that begins at index 0, which is pushed last.
    const Tensor& block = replica.collective->block();
    for (const Bucket& bucket : replica.arena->buckets()) {
      const std::int64_t begin = bucket.begin == 0 ? -kTrailerElements : bucket.begin;
      sums_.push_back(
          {block.rows(kTrailerElements + begin, kTrailerElements + bucket.end), begin, 0});
    }
  }

  void pull(const UpdateStep& update) override { update_.begin(update); }
  void wait_values(BucketId /*bucket*/) override {}

  void push(BucketId bucket, const StepReport& report) override {
    BucketSum& sum = sums_[static_cast<std::size_t>(bucket)];
    if (sum.begin < 0) {
      report_ = report;
      report_.blocked_seconds = peers_wait_.blocked_seconds();
      write_trailer(report_, trailer());
    }
    const Span span(replica_.trace, TraceKind::kCommunication);
    sum.work = replica_.collective->all_reduce(sum.gradients, sum.begin);
  }

  StepReport commit() override {
    if (update_.clips()) {  // the norm is known when all sums are
      for (const BucketSum& sum : sums_) wait(sum.work);
      update_.clip();
    }
    for (std::size_t b = 0; b < sums_.size(); ++b) {
      if (!update_.clips()) wait(sums_[b].work);
      update_.update(static_cast<BucketId>(b));
    }
    if (replica_.collective->size() == 1) return report_;
    const StepReport total = read_trailer(trailer());
    peers_wait_.end_step(replica_.collective->times().exposed_seconds, total.blocked_seconds);
    return total;
  }

  CommunicationTimes times() const override {
    CommunicationTimes times = replica_.collective->times();
    times.peers_wait_seconds = peers_wait_.waited_seconds();
    return times;
  }
  const ReplicaUpdate& update() const noexcept { return update_; }

 private:
  struct BucketSum {
    Tensor gradients;
    std::int64_t begin = 0;  // arena index of the sum's first element
    WorkId work = 0;
  };

  void wait(WorkId work) {
    const Span span(replica_.trace, TraceKind::kCommunication);
    replica_.collective->wait(work);
  }
  std::span<float> trailer() const {
    return replica_.collective->block().f32().first(static_cast<std::size_t>(kTrailerElements));
  }

  Replica& replica_;
  ReplicaUpdate update_;
  std::vector<BucketSum> sums_;  // the sum in progress of each bucket
  StepReport report_;
  PeersWait peers_wait_;
};

// The variables of a replica, for gradients that are summed on the devices and never leave them.
class VariablesOnDevice final : public VariableStore {
 public:
  VariablesOnDevice(Replica& replica, const StrategyOptions& options)
      : replica_(replica),
        update_(replica, options),
        trailer_(replica.collective->block().rows(0, kTrailerElements)) {}

  void pull(const UpdateStep& update) override { update_.begin(update); }
  void wait_values(BucketId /*bucket*/) override {}

  void push(BucketId bucket, const StepReport& report) override {
    if (bucket != 0) return;  // the report is sent once, as early as possible
    report_ = report;
    report_.blocked_seconds = peers_wait_.blocked_seconds();
    write_trailer(report_, trailer_.f32());
    const Span span(replica_.trace, TraceKind::kCommunication);
    report_sum_ = replica_.collective->all_reduce(trailer_, -kTrailerElements);
  }

  // Starts the update on the device, then waits for the step reports of the other replicas.
  StepReport commit() override {
    update_.clip_and_update_all();
    if (replica_.collective->size() == 1) return report_;
    {
      const Span span(replica_.trace, TraceKind::kCommunication);
      replica_.collective->wait(report_sum_);
    }
    const StepReport total = read_trailer(trailer_.f32());
    peers_wait_.end_step(replica_.collective->times().exposed_seconds, total.blocked_seconds);
    return total;
  }

  CommunicationTimes times() const override {
    CommunicationTimes times = replica_.collective->times();
    times.peers_wait_seconds = peers_wait_.waited_seconds();
    times.bytes_sent.reset();  // unknown: the collective does not see gradients' bytes
    times.bytes_received.reset();
    return times;
  }
  const ReplicaUpdate& update() const noexcept { return update_; }

 private:
  Replica& replica_;
  ReplicaUpdate update_;
  Tensor trailer_;
  WorkId report_sum_ = 0;
  StepReport report_;
  PeersWait peers_wait_;
};

class Mirrored final : public SynchronousStrategy {
 public:
  Mirrored(const StrategyOptions& options, const Graph& graph)
      : Mirrored(options, graph, join_replicas(options, graph)) {}

 private:
  Mirrored(const StrategyOptions& options, const Graph& graph, JoinedReplicas joined)
      : SynchronousStrategy(options, graph, std::move(joined), nullptr) {
    if (replicas_in_sync() > kMostReplicasInStep) {
      throw UsageError(
          fmt::format("--strategy {}: the job has {} replicas; at most {} are possible",
                      options.name, replicas_in_sync(), kMostReplicasInStep));
    }
    for (Replica& replica : replicas()) {
      if (updates_on_device()) {
        add_variables<VariablesOnDevice>(replica);
      } else {
        add_variables<MirroredVariables>(replica);
      }
    }
  }

  template <typename Variables>
  void add_variables(Replica& replica) {
    auto variables = std::make_unique<Variables>(replica, options());
    updates_.push_back(&variables->update());
    replica.variables = std::move(variables);
  }

  std::vector<Snapshot::Slot> slots_of(const Replica& replica) const override {
    return updates_[static_cast<std::size_t>(replica.index)]->slots();
  }

  std::vector<const ReplicaUpdate*> updates_;  // of each replica; owned by its variables
};

}  // namespace

std::unique_ptr<Strategy> make_mirrored(const StrategyOptions& options, const Graph& graph) {
  return std::make_unique<Mirrored>(options, graph);
}

std::unique_ptr<Strategy> make_multi_worker_mirrored(const StrategyOptions& options,
                                                     const Graph& graph) {
  return std::make_unique<Mirrored>(options, graph);
}

}  // namespace syncopate
