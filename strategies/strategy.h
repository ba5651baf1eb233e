// Where replicas run and where variables live. The trainer sees a strategy only through this page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/backend.h"
#include "ps/coordinator/data_position.h"
#include "strategies/cluster/membership.h"
#include "strategies/collective/collectives.h"
#include "strategies/input_shard.h"
#include "strategies/parameter_server_options.h"
#include "strategies/variable_store.h"

namespace syncopate {

// One copy of the network on one device. Arena and state stay where they are for the replica's
// life.
struct Replica {
  int index = 0;  // in this process; among all it is collective->rank()
  std::unique_ptr<Collective> collective;
  // Sums gradients where they are computed; null: the collective sums them, or nobody.
  std::unique_ptr<DeviceCollective> device_collective;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ParameterArena> arena;
  std::unique_ptr<StateBlock> state;
  std::unique_ptr<Model> model;  // compiled for training
  std::unique_ptr<VariableStore> variables;
  // Trained since running statistics were last averaged: their weight. train_step counts.
  std::int64_t samples_in_statistics = 0;
};

// What a checkpoint holds of the variables: values and optimizer slots, on the host, in memory
// order. Windows on live memory: copy or write them out before the next step.
struct Snapshot {
  struct Slot {
    std::string name;  // "exp_avg"
    Tensor values;     // [arena total] f32
  };
  Tensor values;  // [arena total] f32
  std::vector<Slot> slots;
  Tensor state;  // [state total] f32
  // Of the first replica, where variables are kept by replicas that scale losses (fp16).
  std::optional<LossScaleState> loss_scale = {};
};

class AsynchronousJob;

// Where a function says "every task calls", they do so in the same order.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::span<Replica> replicas() noexcept = 0;  // the ones in this process
  virtual int replicas_in_sync() const noexcept = 0;   // gradients summed into one update
  virtual InputShard input_shard() const noexcept = 0;
  virtual bool is_chief() const noexcept = 0;  // writes checkpoints and metrics

  // Runs the task for each local replica on a thread of its own, the first on the caller's; returns
  // when all have ended. When one throws, everybody who waits for it, here and in other tasks, is
  // woken, and what it threw is thrown here.
  virtual void for_each_replica(const std::function<void(Replica&)>& task) = 0;

  // Every task calls, with as many numbers: everyone's, in the order of tasks.
  virtual std::vector<double> gather(std::span<const double> mine) = 0;
  // Every task calls: the chief's bytes reach all.
  virtual void broadcast(std::span<std::byte> bytes) = 0;

  // Every task calls, before an evaluation or a checkpoint: running statistics are averaged over
  // replicas, weighted by the samples each has seen, and a hash of the values is compared. Throws
  // PeerError naming a replica that differs.
  virtual void agree() = 0;
  virtual Snapshot snapshot() = 0;
  // Every task calls; the chief's blocks count, and reach all. Blocks as snapshot() gives them.
  // Throws ShapeError, and then has changed nothing.
  virtual void restore(const Snapshot& saved) = 0;
  // Every task calls when the variables hold what training starts from; and again after
  // ps::RolledBack (ps/client/client_errors.h), which any call may throw where variables are on
  // servers, when nothing of before is in use any more.
  virtual void begin(const ps::RunPosition& /*start*/) {}
  // Of a local replica, where replicas do not keep step: it trains what it is given
  // (worker/train/asynchronous_loop.h), and of "every task calls" only broadcast(), restore() and
  // begin() are of use. Null where they keep step.
  virtual AsynchronousJob* asynchronous_job(int /*replica*/) { return nullptr; }
  // Where the strategy itself keeps the job's tasks together: all is done here; and we end because
  // of `reason`, which the others hear.
  virtual void leave() {}
  virtual void fail(std::string_view /*reason*/) noexcept {}
  // Wakes every replica and peer that waits for us. From any thread.
  virtual void abort(std::string_view reason) noexcept = 0;
};

enum class BatchNormStatistics : std::uint8_t { kLocal, kSync };

struct StrategyOptions {
  std::string name = "one-device";  // a row of strategies()
  std::uint64_t seed = 1;
  std::int64_t batch_size_per_replica = 64;  // the largest share of a replica
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
  int lanes = 1;
  int replicas = 1;                       // in this task
  std::vector<Device> devices{Device{}};  // dealt out to them
  Precision precision = Precision::kF32;
  bool deterministic = false;
  // cuda: where it is kept which engine is fastest for what; empty: nothing is measured.
  std::filesystem::path plan_file;
  BatchNormStatistics batch_norm = BatchNormStatistics::kLocal;
  std::string collective = "auto";
  Transport transport = Transport::kAuto;
  Link link;  // of this task to the others, over TCP; plain: as it is
  OptimizerOptions optimizer;
  // Null: this task is alone. Outlives the strategy.
  Membership* membership = nullptr;
  // parameter-server and central-storage.
  ps::ConsistencyOptions consistency;
  ParameterServerOptions parameter_server;
};

// Of one of this task's replicas.
BackendOptions backend_options(const StrategyOptions& options, int replica);

struct StrategyRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions&, const Graph&);
};
// The table behind --strategy.
std::span<const StrategyRow> strategies() noexcept;

// Replicas are built and hold the seed's first values. The graph must outlive the strategy.
// Throws UsageError for an unknown name, listing the right ones, and for what the strategy cannot
// be asked for; PeerError.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const Graph& graph);

// strategies/one_device.cc
std::unique_ptr<Strategy> make_one_device(const StrategyOptions& options, const Graph& graph);
// strategies/mirrored.cc: one class, two collectives
std::unique_ptr<Strategy> make_mirrored(const StrategyOptions& options, const Graph& graph);
std::unique_ptr<Strategy> make_multi_worker_mirrored(const StrategyOptions& options,
                                                     const Graph& graph);
// strategies/parameter_server.cc
std::unique_ptr<Strategy> make_parameter_server(const StrategyOptions& options, const Graph& graph);
// strategies/central_storage.cc
std::unique_ptr<Strategy> make_central_storage(const StrategyOptions& options, const Graph& graph);

}  // namespace syncopate
