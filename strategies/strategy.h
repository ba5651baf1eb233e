// The interface of a distribution strategy, which decides where replicas run, where variables live
// and how updates are made. The training loops use a strategy only through this header.
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

// One copy of the network on one device. The addresses of the memory of `arena` and `state` do not
// change during the replica's life.
struct Replica {
  // Number of the replica in this process; its rank in the job is collective->rank().
  int index = 0;
  std::unique_ptr<Collective> collective;
  // Sums gradients on the devices. Null if the host sums the gradients, or if there is only one
  // replica.
  std::unique_ptr<DeviceCollective> device_collective;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ParameterArena> arena;
  std::unique_ptr<StateBlock> state;
  std::unique_ptr<Model> model;  // compiled for training
  std::unique_ptr<VariableStore> variables;
  int micro_batches = 1;  // the replica computes its share of a step in this many parts
  // Number of samples that the replica has trained since running statistics were last averaged.
  // This number is the replica's weight in the next average. The training step increases the
  // number.
  std::int64_t samples_in_statistics = 0;
  // The replica's share of the step's batch. The training step uses it again in each step, so that
  // the batch's shapes need no new memory.
  Batch share;
  // The row of the trace that records what the replica's thread does; null if nothing is recorded.
  // Set after make_strategy().
  TraceThread* trace = nullptr;
  // The row of the trace that records forward and backward passes. Equal to `trace`, or null if the
  // model records its passes itself.
  TraceThread* passes_trace = nullptr;
};

// A synchronous job: all replicas train every round together; with most strategies, a round is one
// step. Every task calls these functions in the same order, and only at the end of a round. Each
// function throws PeerError.
class SynchronousJob {
 public:
  virtual ~SynchronousJob() = default;
  // All-gather: returns the numbers `mine` of all tasks, in task order. Every task must pass
  // equally many numbers.
  virtual std::vector<double> gather(std::span<const double> mine) = 0;
  // Broadcast: copies the chief's `bytes` to the `bytes` of all other tasks. The length must be
  // equal on all tasks.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  // Brings all replicas to one state before an evaluation or a checkpoint. Averages the running
  // statistics over replicas, weighted by the samples that each replica has trained since the last
  // call. Compares a hash of the variables of all replicas. If each task trains a part of the
  // variables, collects the parts on every task. Throws PeerError, which names a replica, if the
  // variables of this replica differ.
  virtual void agree() = 0;
  // Returns the moving average of the variables, [arena total] f32 on the host, valid until the
  // next step. Called by the replica's thread after agree(). Precondition: the optimizer keeps a
  // moving average.
  virtual Tensor average(const Replica& replica) = 0;
  // Returns how many steps the current round of this task still has. The task may ask at any time.
  virtual std::int64_t steps_left_in_round() const { return 1; }
  // Returns the number of steps of each replica of the job in the last round; empty while every
  // step is a round. The numbers differ if a task ended its round early, by UpdateStep::ends_round.
  virtual std::span<const std::int64_t> steps_of_round() const { return {}; }
  // Returns for each stage of the job how many seconds it has waited for other stages in all steps
  // so far; empty for a strategy without stages.
  virtual std::vector<double> idle_seconds() { return {}; }
};

// The job as a replica sees it. The pointer is never null. The replicas of a strategy either share
// one SynchronousJob, or each replica has its own AsynchronousJob.
using Job = std::variant<SynchronousJob*, AsynchronousJob*>;

class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::span<Replica> replicas() noexcept = 0;  // the replicas of this process
  virtual int replicas_in_sync() const noexcept = 0;   // number of gradients in one update
  virtual InputShard input_shard() const noexcept = 0;
  // Returns the part of the samples that this task evaluates. This part differs from input_shard()
  // if several tasks together train each sample, like the stages of a pipeline.
  virtual InputShard evaluation_shard() const noexcept { return input_shard(); }
  // Returns whether every replica updates its own copy of the variables in this step, by the
  // gradient of its own samples. The loss is then divided by the number of these samples.
  virtual bool is_local(const UpdateStep& /*step*/) const { return false; }
  virtual bool is_chief() const noexcept = 0;  // this task writes checkpoints and metrics
  virtual Job job(int replica) noexcept = 0;

  // Runs `task` once for each replica of this process: for replica 0 on the calling thread, for
  // every other replica on its own thread. Returns when all calls have ended. If a call throws,
  // wakes every replica and every other task that waits for the failed replica, and then throws the
  // exception.
  virtual void for_each_replica(const std::function<void(Replica&)>& task) = 0;

  // Returns the variables and slots. Every task must call it. Slots of a task other than the chief
  // may be incomplete.
  virtual Snapshot snapshot() = 0;
  // Returns snapshot() for a checkpoint: also with the slots of every worker that has its own.
  // Every task calls it; only the chief's result is complete.
  virtual Snapshot snapshot_to_save() { return snapshot(); }
  // Returns the names of the slots of snapshot_to_save(). restore() takes these slots, too.
  virtual std::vector<std::string> slots_to_save();
  // Replaces the variables on all tasks by the chief's `saved`. Every task must call it. Throws
  // ShapeError, and has then changed nothing, if `saved` does not have the blocks of snapshot().
  virtual void restore(const Snapshot& saved) = 0;

  // Starts training. Every task calls it when the variables hold the values to start from. With
  // servers, any function may throw ps::RolledBack (ps/client/client_errors.h); then every task
  // calls begin() again, after it has dropped all data of the abandoned steps. Throws PeerError.
  virtual void begin(const ps::RunPosition& start) = 0;
  // Leaves the job; called when this task has trained everything. Returns when all tasks have
  // called leave() or, with servers, when server 0 has confirmed that this task leaves. Throws
  // PeerError.
  virtual void leave() = 0;
  // Reports to the other tasks that this task ends because of `reason`. The other tasks then end
  // too. Asynchronous workers with servers continue instead, unless `ends_job` says that they would
  // fail for the same reason.
  virtual void fail(std::string_view reason, bool ends_job) noexcept = 0;
  // Wakes every replica and every other task that waits for this task. Their calls throw PeerError.
  // Any thread may call it.
  virtual void abort(std::string_view reason) noexcept = 0;
};

// Throws UsageError for options that a strategy with rounds (StrategyRow::has_rounds) does not
// support.
void check_local_updates(const StrategyOptions& options);

// Returns whether the strategy's replicas train in a SynchronousJob.
bool is_synchronous(Strategy& strategy) noexcept;
// Returns the job of synchronous replicas. Precondition: is_synchronous(strategy).
SynchronousJob& synchronous_job(Strategy& strategy);
// Returns the job of a strategy's asynchronous replica. Precondition: not is_synchronous(strategy).
AsynchronousJob& asynchronous_job(Strategy& strategy, int replica);

// Returns the message of an exception, to be used as the reason of an abort().
std::string message_of(const std::exception_ptr& error);

// Builds the strategy options.name and its replicas, with the initial values that follow from the
// seed. The graph must outlive the strategy. Throws UsageError for an unknown name, with a list of
// the known names, and for options that the strategy does not support. Throws PeerError.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const Graph& graph);

// The functions that make the strategies; each row of the table strategies() has one of them. Each
// is defined in the source file of its strategy; mirrored and multi-worker-mirrored are both in
// mirrored.cc.
std::unique_ptr<Strategy> make_one_device(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_pipeline(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_mirrored(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_multi_worker_mirrored(const StrategyOptions& options,
                                                     const Graph& graph);
std::unique_ptr<Strategy> make_local_sgd(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_parameter_server(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_central_storage(const StrategyOptions& options, const Graph& graph);
// Makes asynchronous central-storage. Throws UsageError for contradictory options.
std::unique_ptr<Strategy> make_asynchronous_central_storage(const StrategyOptions& options,
                                                            const Graph& graph);

}  // namespace syncopate
