// What the synchronous strategies have in common: replicas on threads of their own, joined by a
// collective, holding the same values at every step's end. one_device, mirrored and central_storage
// add how a step's gradients become an update.
#pragma once

#include <memory>
#include <vector>

#include "models/base/thread_team.h"
#include "strategies/collective/collectives.h"
#include "strategies/join_replicas.h"
#include "strategies/strategy.h"

namespace syncopate {

class Synchronous : public Strategy {
 public:
  Synchronous(const Synchronous&) = delete;
  Synchronous& operator=(const Synchronous&) = delete;
  ~Synchronous() override;

  std::span<Replica> replicas() noexcept override { return replicas_; }
  int replicas_in_sync() const noexcept override { return input_shard().total; }
  InputShard input_shard() const noexcept override;
  bool is_chief() const noexcept override { return first_rank() == 0; }
  void for_each_replica(const std::function<void(Replica&)>& task) override;
  std::vector<double> gather(std::span<const double> mine) override;
  void broadcast(std::span<std::byte> bytes) override;
  void agree() override;
  Snapshot snapshot() override;
  void restore(const Snapshot& saved) override;
  void abort(std::string_view reason) noexcept override;

 protected:
  // Builds each replica: device, blocks, first values, training model. shared_values: the block
  // that all of them use; null: each has its own. What is missing is Replica::variables, the
  // strategy's to add, and then finish_building().
  Synchronous(const StrategyOptions& options, const Graph& graph, JoinedReplicas joined,
              const Tensor* shared_values);

  const StrategyOptions& options() const noexcept { return options_; }
  const Graph& graph() const noexcept { return graph_; }
  bool updates_on_device() const noexcept { return updates_on_device_; }
  int first_rank() const noexcept { return replicas_.front().collective->rank(); }
  // Every task calls once all is built: it holds the same first values everywhere. Throws
  // PeerError.
  void finish_building() { check_same_values("first values"); }
  // Optimizer slots of a local replica.
  virtual std::vector<Snapshot::Slot> slots_of(const Replica& replica) const = 0;

 private:
  // "rank 2 (host b, pid 77)", as the membership's verdicts say it.
  std::string own_name() const;
  void build(Replica& replica, const Tensor* shared_values);
  void bring_to_host(const Replica& replica) const;
  void check_same_values(std::string_view what);
  void restore_loss_scale(Replica& replica, const Snapshot& saved);
  void average_running_statistics(Replica& replica);

  StrategyOptions options_;
  const Graph& graph_;
  bool shares_values_;
  bool updates_on_device_;
  std::vector<std::unique_ptr<StatisticsReducer>> statistics_;  // one per local replica
  std::vector<Replica> replicas_;
  ThreadTeam team_;
};

// The collective options of a strategy: its replicas, with blocks for the network's gradients and
// the trailer.
CollectiveOptions collective_options(const StrategyOptions& options, const Graph& graph);

}  // namespace syncopate
