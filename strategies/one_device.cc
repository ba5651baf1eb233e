// One replica; its variables live on its device. Nothing travels: pull and push have nothing to do,
// and commit is the optimizer over the whole arena. Every other strategy with one replica must
// equal this one bit for bit.
#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "strategies/strategy.h"

namespace syncopate {
namespace {

class DeviceVariables final : public VariableStore {
 public:
  DeviceVariables(Backend& backend, ParameterArena& arena, std::unique_ptr<Optimizer> optimizer)
      : backend_(backend), arena_(arena), optimizer_(std::move(optimizer)) {
    for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i) {
      slots_.push_back(make_host_tensor({arena.layout().total()}, DType::kF32));
    }
  }

  void pull() override {}
  void wait_values(BucketId /*bucket*/) override {}
  void push(BucketId /*bucket*/, const Event& /*ready*/) override {}
  void commit(const UpdateStep& step) override {
    backend_.update(*optimizer_, step, arena_, slots_, {0, arena_.layout().total()});
    arena_.bump_all_versions();
  }

  const Optimizer& optimizer() const noexcept { return *optimizer_; }
  std::span<const Tensor> slots() const noexcept { return slots_; }

 private:
  Backend& backend_;
  ParameterArena& arena_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> slots_;
};

void check_block(const Tensor& source, const Tensor& target, std::string_view what) {
  if (source.shape() == target.shape()) return;
  throw ShapeError("restore: " + std::string(what) + " has shape " + to_string(source.shape()) +
                   ", expected " + to_string(target.shape()));
}

// Throws ShapeError unless `saved` has the blocks of `live`.
void check_snapshot(const Snapshot& saved, const Snapshot& live) {
  check_block(saved.values, live.values, "values");
  check_block(saved.state, live.state, "state");
  if (saved.slots.size() != live.slots.size()) {
    throw ShapeError("restore: " + std::to_string(saved.slots.size()) +
                     " optimizer slots, expected " + std::to_string(live.slots.size()));
  }
  for (std::size_t i = 0; i < live.slots.size(); ++i) {
    if (saved.slots[i].name != live.slots[i].name) {
      throw ShapeError("restore: optimizer slot " + saved.slots[i].name + ", expected " +
                       live.slots[i].name);
    }
    check_block(saved.slots[i].values, live.slots[i].values, live.slots[i].name);
  }
}

void copy_block(const Tensor& source, const Tensor& target) {
  std::ranges::copy(source.f32(), target.f32().begin());
}

class OneDevice final : public Strategy {
 public:
  OneDevice(const StrategyOptions& options, const Graph& graph) {
    Replica& replica = replicas_.emplace_back();
    const ArenaLayout layout = graph.parameter_layout();
    replica.backend = make_cpu_backend(options.lanes);
    replica.arena =
        std::make_unique<ParameterArena>(layout, plan_buckets(layout, options.bucket_bytes));
    replica.state = std::make_unique<StateBlock>(graph.state_layout());
    fill_initial_values(graph, options.seed, *replica.arena);
    fill_initial_state(graph, *replica.state);
    replica.model = replica.backend->compile(
        graph, *replica.arena, *replica.state,
        {.mode = Mode::kTrain, .batch_size = options.batch_size_per_replica});
    auto variables = std::make_unique<DeviceVariables>(*replica.backend, *replica.arena,
                                                       make_optimizer(options.optimizer));
    variables_ = variables.get();
    replica.variables = std::move(variables);
  }

  std::span<Replica> replicas() noexcept override { return replicas_; }
  int replicas_in_sync() const noexcept override { return 1; }
  InputShard input_shard() const noexcept override { return {}; }
  bool is_chief() const noexcept override { return true; }

  Snapshot snapshot() override {
    const Replica& replica = replicas_.front();
    Snapshot saved{replica.arena->values(), {}, replica.state->values};
    for (std::size_t i = 0; i < variables_->slots().size(); ++i) {
      saved.slots.push_back(
          {std::string(variables_->optimizer().slot_names()[i]), variables_->slots()[i]});
    }
    return saved;
  }

  void restore(const Snapshot& saved) override {
    const Snapshot live = snapshot();
    check_snapshot(saved, live);
    copy_block(saved.values, live.values);
    copy_block(saved.state, live.state);
    for (std::size_t i = 0; i < live.slots.size(); ++i) {
      copy_block(saved.slots[i].values, live.slots[i].values);
    }
    replicas_.front().arena->bump_all_versions();
  }

  void abort(std::string_view /*reason*/) noexcept override {}

 private:
  std::vector<Replica> replicas_;
  DeviceVariables* variables_ = nullptr;  // owned by the replica
};

}  // namespace

std::unique_ptr<Strategy> make_one_device(const StrategyOptions& options, const Graph& graph) {
  return std::make_unique<OneDevice>(options, graph);
}

}  // namespace syncopate
