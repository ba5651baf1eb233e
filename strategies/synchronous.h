// The base class of the synchronous strategies. The replicas run on one thread each, are joined by
// a collective, and have equal values at the end of every step. The derived classes in
// one_device.cc, mirrored.cc and central_storage.cc define how a step's gradients become an update.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/thread_team.h"
#include "strategies/collective/collectives.h"
#include "strategies/join_replicas.h"
#include "strategies/strategy.h"

namespace syncopate {

class SynchronousStrategy : public Strategy, public SynchronousJob {
 public:
  SynchronousStrategy(const SynchronousStrategy&) = delete;
  SynchronousStrategy& operator=(const SynchronousStrategy&) = delete;
  ~SynchronousStrategy() override;

  std::span<Replica> replicas() noexcept override { return replicas_; }
  int replicas_in_sync() const noexcept override { return input_shard().total; }
  InputShard input_shard() const noexcept override;
  bool is_chief() const noexcept override { return first_rank() == 0; }
  Job job(int /*replica*/) noexcept override { return this; }
  void for_each_replica(const std::function<void(Replica&)>& task) override;
  Snapshot snapshot() override;
  void restore(const Snapshot& saved) override;
  // Compares a hash of the initial values between all replicas. Throws PeerError, which names a
  // replica, if the values of this replica differ.
  void begin(const ps::RunPosition& start) override;
  void leave() override;
  void fail(std::string_view reason, bool ends_job) noexcept override;
  void abort(std::string_view reason) noexcept override;
  std::vector<double> gather(std::span<const double> mine) override;
  void broadcast(std::span<std::byte> bytes) override;
  void agree() override;
  Tensor average(const Replica& replica) override;

 protected:
  // The constructor builds the local replicas: it makes their backends, memory blocks, initial
  // values and training models. The derived class sets Replica::variables. `shared_values` is one
  // block of values that all replicas use; null if each replica has its own block.
  SynchronousStrategy(const StrategyOptions& options, const Graph& graph, JoinedReplicas joined,
                      const Tensor* shared_values);

  const StrategyOptions& options() const noexcept { return options_; }
  bool updates_on_device() const noexcept { return updates_on_device_; }
  // Returns the optimizer slots of a local replica.
  virtual std::vector<Snapshot::Slot> slots_of(const Replica& replica) const = 0;

  int first_rank() const noexcept { return replicas_.front().collective->rank(); }
  // Averages the running statistics of all replicas, weighted by the samples that each replica has
  // trained since the last average. Every replica calls it on its own thread.
  void average_statistics(Replica& replica);

 private:
  // Returns the name of this task as the membership writes it, such as "rank 2 (host b, pid 77)".
  std::string own_name() const;
  void build(Replica& replica, const Tensor* shared_values,
             const std::optional<Tensor>& own_gradients);
  void bring_to_host(const Replica& replica) const;
  void check_same_values(std::string_view what);
  void restore_loss_scale(Replica& replica, const Snapshot& saved);

  StrategyOptions options_;
  const Graph& graph_;
  bool shares_values_;
  bool updates_on_device_;
  std::vector<std::unique_ptr<StatisticsReducer>> statistics_;  // one reducer per local replica
  std::vector<Replica> replicas_;
  ThreadTeam team_;
};

// Returns the options of a collective between the strategy's replicas. The collective's blocks hold
// the step trailer and the network's gradients.
CollectiveOptions collective_options(const StrategyOptions& options, const Graph& graph);

}  // namespace syncopate
