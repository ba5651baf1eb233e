// --strategy mirrored and multi-worker-mirrored: a copy of the variables on every replica. In every
// step the replicas sum their gradients (gradient_sums.h), and then every replica makes the same
// update. The two strategies are one class with different collectives: mirrored joins the replicas
// of one process, multi-worker-mirrored the replicas of several processes. If GPUs sum the
// gradients (join_replicas.h), the model starts the sums, and only the step's report passes through
// the host.
#include <utility>
#include <vector>

#include "strategies/gradient_sums.h"
#include "strategies/replica_update.h"
#include "strategies/step_trailer.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

// The variables of a replica, for gradients that are summed on the host.
class MirroredVariables final : public VariableStore {
 public:
  MirroredVariables(Replica& replica, const StrategyOptions& options)
      : replica_(replica), update_(replica, options), sums_(replica, update_) {}

  void pull(const UpdateStep& update) override { update_.begin(update); }
  void wait_values(BucketId /*bucket*/) override {}
  void push(BucketId bucket, const StepReport& report) override { sums_.push(bucket, report); }
  StepReport commit() override { return sums_.commit(); }
  CommunicationTimes times() const override {
    CommunicationTimes times = replica_.collective->times();
    times.peers_wait_seconds = sums_.peers_wait_seconds();
    return times;
  }
  const ReplicaUpdate& update() const noexcept { return update_; }

 private:
  Replica& replica_;
  ReplicaUpdate update_;
  GradientSums sums_;
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
    require_summable_reports(options, replicas_in_sync());
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
