// A distribution strategy: where replicas run, where variables live, how updates are made. The
// training loops see a strategy only through this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/trace.h"
#include "ps/coordinator/data_position.h"
#include "strategies/collective/collectives.h"
#include "strategies/input_shard.h"
#include "strategies/snapshot.h"
#include "strategies/strategy_options.h"
#include "strategies/strategy_row.h"
#include "strategies/variable_store.h"

namespace syncopate {

class AsynchronousJob;  // defined in strategies/asynchronous_job.h

// One copy of the network on one device. The addresses of arena and state do not change during the
// replica's life.
struct Replica {
  int index = 0;  // number in this process; the rank is collective->rank()
  std::unique_ptr<Collective> collective;
  // Sums gradients on the devices. Null if the host sums the gradients or if there is one replica.
  std::unique_ptr<DeviceCollective> device_collective;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ParameterArena> arena;
  std::unique_ptr<StateBlock> state;
  std::unique_ptr<Model> model;  // compiled for training
  std::unique_ptr<VariableStore> variables;
  int micro_batches = 1;  // the replica computes its share of a step in this many parts
  // Samples trained since running statistics were last averaged: the replica's weight in the next
  // average. Counted by the training step.
  std::int64_t samples_in_statistics = 0;
  // Records what the replica's thread does; null: nothing does. Set after make_strategy().
  TraceThread* trace = nullptr;
  TraceThread* passes_trace = nullptr;  // `trace`; null: the model records its passes itself
};

// A synchronous job: all replicas train every step together. Every task calls these functions in
// the same order. Each throws PeerError.
class SynchronousJob {
 public:
  virtual ~SynchronousJob() = default;
  // Gathers the numbers of all tasks, in task order. Every task passes equally many numbers.
  virtual std::vector<double> gather(std::span<const double> mine) = 0;
  // Broadcasts the chief's bytes to all tasks.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  // Averages the running statistics over replicas, weighted by the samples that each has trained
  // since the last call, and compares a hash of the variables. Called before an evaluation and
  // before a checkpoint. Where tasks train parts of the variables, brings them together. Throws
  // PeerError naming a replica if its variables differ.
  virtual void agree() = 0;
  // Returns the moving average of the variables, [arena total] f32 on the host, for the replica's
  // thread; valid until the next step. Called after agree(). Precondition: the optimizer keeps one.
  virtual Tensor average(const Replica& replica) = 0;
  // Returns how long each stage of the job has waited for others in its steps, since they began;
  // empty for a strategy without stages.
  virtual std::vector<double> idle_seconds() { return {}; }
};

// How a replica takes part in the job. Never null. All replicas of a strategy have the same
// alternative: one SynchronousJob for all, or one AsynchronousJob each.
using Job = std::variant<SynchronousJob*, AsynchronousJob*>;

class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::span<Replica> replicas() noexcept = 0;  // the replicas of this process
  virtual int replicas_in_sync() const noexcept = 0;   // number of gradients in one update
  virtual InputShard input_shard() const noexcept = 0;
  // The share of this task's replicas in an evaluation. It differs from input_shard() if tasks
  // train all samples together, as the stages of a pipeline do.
  virtual InputShard evaluation_shard() const noexcept { return input_shard(); }
  virtual bool is_chief() const noexcept = 0;  // this task writes checkpoints and metrics
  virtual Job job(int replica) noexcept = 0;

  // Runs `task` once per local replica, each on a thread of its own, replica 0 on the calling
  // thread; returns when all have ended. If one throws, every replica and peer that waits for it is
  // woken, and the exception is thrown here.
  virtual void for_each_replica(const std::function<void(Replica&)>& task) = 0;

  // Every task calls it. The slots may be complete on the chief only.
  virtual Snapshot snapshot() = 0;
  // Every task calls it. Replaces the variables on all tasks by the chief's `saved`, which has the
  // blocks of snapshot(). Throws ShapeError before anything has changed.
  virtual void restore(const Snapshot& saved) = 0;

  // Starts training. Every task calls it when the variables hold the values to start from, and
  // again after ps::RolledBack (ps/client/client_errors.h), once nothing refers to the abandoned
  // steps. Any call to a strategy with servers may throw RolledBack. Throws PeerError.
  virtual void begin(const ps::RunPosition& start) = 0;
  // Ends the job: this task has trained everything. Returns when all tasks know. Throws PeerError.
  virtual void leave() = 0;
  // Ends this task because of `reason`, and with it the job: the other tasks are told, and end too.
  // Asynchronous workers on servers go on without it unless `ends_job`: they would fail alike.
  virtual void fail(std::string_view reason, bool ends_job) noexcept = 0;
  // Wakes every replica and peer that waits for this task; they throw PeerError. From any thread.
  virtual void abort(std::string_view reason) noexcept = 0;
};

// Whether the strategy's replicas train in a SynchronousJob.
bool is_synchronous(Strategy& strategy) noexcept;
// Returns the job of synchronous replicas. Precondition: is_synchronous(strategy).
SynchronousJob& synchronous_job(Strategy& strategy);
// Returns the job of a strategy's asynchronous replica. Precondition: not is_synchronous(strategy).
AsynchronousJob& asynchronous_job(Strategy& strategy, int replica);

// Returns the message of an exception, which becomes the reason of an abort().
std::string message_of(const std::exception_ptr& error);

// Builds the replicas, which hold the initial values of the seed. The graph must outlive the
// strategy. Throws UsageError for an unknown name, listing the known ones, and for options that the
// strategy does not support; PeerError.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const Graph& graph);

// The functions of the table of strategies, each in the source file of its strategy. mirrored and
// multi-worker-mirrored are in mirrored.cc.
std::unique_ptr<Strategy> make_one_device(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_pipeline(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_mirrored(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_multi_worker_mirrored(const StrategyOptions& options,
                                                     const Graph& graph);
std::unique_ptr<Strategy> make_parameter_server(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_central_storage(const StrategyOptions& options, const Graph& graph);
// Makes asynchronous central-storage. Throws UsageError for contradictory options.
std::unique_ptr<Strategy> make_asynchronous_central_storage(const StrategyOptions& options,
                                                            const Graph& graph);

}  // namespace syncopate
