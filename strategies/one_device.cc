// --strategy one-device: one replica. Its variables live on its device, so there is nothing to pull
// or push, and commit runs the optimizer over the whole arena. Every other strategy with one
// replica must equal this one bit for bit.
#include <utility>

#include "strategies/replica_update.h"
#include "strategies/single_replica.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

class DeviceVariables final : public VariableStore {
 public:
  // idle_seconds: see make_single_replica().
  DeviceVariables(Replica& replica, const StrategyOptions& options,
                  std::function<std::vector<double>()> idle_seconds)
      : idle_seconds_(std::move(idle_seconds)), update_(replica, options) {}

  void pull(const UpdateStep& update) override { update_.begin(update); }
  void wait_values(BucketId /*bucket*/) override {}
  void push(BucketId /*bucket*/, const StepReport& report) override { report_ = report; }
  StepReport commit() override {
    update_.clip_and_update_all();
    return report_;
  }
  // The first stage of a pipeline waits for the others as a task waits for other tasks.
  CommunicationTimes times() const override {
    CommunicationTimes times;
    if (const std::vector<double> idle = idle_seconds_(); !idle.empty()) {
      times.exposed_seconds = times.under_way_seconds = idle.front();
      times.peers_wait_seconds = idle.front();
    }
    return times;
  }

  std::vector<Snapshot::Slot> slots() const { return update_.slots(); }

 private:
  const std::function<std::vector<double>()> idle_seconds_;
  ReplicaUpdate update_;
  StepReport report_;
};

class SingleReplica final : public SynchronousStrategy {
 public:
  SingleReplica(const StrategyOptions& options, const Graph& graph, JoinedReplicas alone,
                std::function<std::vector<double>()> idle_seconds)
      : SynchronousStrategy(options, graph, std::move(alone), nullptr),
        idle_seconds_(std::move(idle_seconds)) {
    Replica& replica = replicas().front();
    auto variables = std::make_unique<DeviceVariables>(replica, options, idle_seconds_);
    variables_ = variables.get();
    replica.variables = std::move(variables);
  }

  std::vector<double> idle_seconds() override { return idle_seconds_(); }

 private:
  std::vector<Snapshot::Slot> slots_of(const Replica& /*replica*/) const override {
    return variables_->slots();
  }

  DeviceVariables* variables_ = nullptr;  // belongs to the replica
  const std::function<std::vector<double>()> idle_seconds_;
};

}  // namespace

std::unique_ptr<Strategy> make_single_replica(const StrategyOptions& options, const Graph& graph,
                                              std::unique_ptr<Backend> backend,
                                              std::function<std::vector<double>()> idle_seconds) {
  JoinedReplicas alone{.collectives = make_local_collectives(collective_options(options, graph)),
                       .on_device = {},
                       .updates_on_device = true};
  if (backend != nullptr) alone.backends.push_back(std::move(backend));
  return std::make_unique<SingleReplica>(options, graph, std::move(alone), std::move(idle_seconds));
}

std::unique_ptr<Strategy> make_one_device(const StrategyOptions& options, const Graph& graph) {
  return make_single_replica(options, graph, nullptr);
}

}  // namespace syncopate
