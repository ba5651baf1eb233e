// Where replicas run and where variables live. The trainer sees a strategy only through this page.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/backend.h"
#include "strategies/variable_store.h"

namespace syncopate {

// One copy of the network on one device. Arena and state stay where they are for the replica's
// life.
struct Replica {
  int index = 0;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ParameterArena> arena;
  std::unique_ptr<StateBlock> state;
  std::unique_ptr<Model> model;  // compiled for training
  std::unique_ptr<VariableStore> variables;
};

// This task trains the samples index, index + count, ... of an epoch's order.
struct InputShard {
  int index = 0;
  int count = 1;
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
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::span<Replica> replicas() noexcept = 0;  // the ones in this process
  virtual int replicas_in_sync() const noexcept = 0;   // gradients summed into one update
  virtual InputShard input_shard() const noexcept = 0;
  virtual bool is_chief() const noexcept = 0;  // writes checkpoints and metrics
  virtual Snapshot snapshot() = 0;
  // Blocks as snapshot() gives them. Throws ShapeError, and then has changed nothing.
  virtual void restore(const Snapshot& saved) = 0;
  virtual void abort(
      std::string_view reason) noexcept = 0;  // wakes every replica and peer that waits for us
};

struct StrategyOptions {
  std::string name = "one-device";  // a row of strategies()
  std::uint64_t seed = 1;
  std::int64_t batch_size_per_replica = 64;
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
  int lanes = 1;
  OptimizerOptions optimizer;
};

struct StrategyRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions&, const Graph&);
};
// The table behind --strategy.
std::span<const StrategyRow> strategies() noexcept;

// Replicas are built and hold the seed's first values. The graph must outlive the strategy.
// Throws UsageError for an unknown name, listing the right ones.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const Graph& graph);

// strategies/one_device.cc
std::unique_ptr<Strategy> make_one_device(const StrategyOptions& options, const Graph& graph);

}  // namespace syncopate
