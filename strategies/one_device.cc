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

void copy_block(const Tensor& source, const Tensor& target, std::string_view what) {
  if (source.shape() != target.shape()) {
    throw ShapeError("restore: " + std::string(what) + " has " + to_string(source.shape()) +
                     " elements, expected " + to_string(target.shape()));
  }
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
    const Replica& replica = replicas_.front();
    copy_block(saved.values, replica.arena->values(), "values");
    copy_block(saved.state, replica.state->values, "state");
    if (saved.slots.size() != variables_->slots().size()) {
      throw ShapeError("restore: " + std::to_string(saved.slots.size()) +
                       " optimizer slots, expected " + std::to_string(variables_->slots().size()));
    }
    for (std::size_t i = 0; i < saved.slots.size(); ++i) {
      copy_block(saved.slots[i].values, variables_->slots()[i], saved.slots[i].name);
    }
    replica.arena->bump_all_versions();
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
