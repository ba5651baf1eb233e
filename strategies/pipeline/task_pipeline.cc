#include "strategies/pipeline/task_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/graph/graph_text.h"
#include "models/tensor/buffer.h"
#include "strategies/cluster/handshake.h"
#include "strategies/pipeline/pipeline_backend.h"
#include "strategies/pipeline/stage_variables.h"
#include "strategies/pipeline/task_links.h"
#include "strategies/step_trailer.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

// Blocks that only some tasks keep are broadcast in parts of this size.
constexpr std::int64_t kPartElements = std::int64_t{1} << 18;

// The tasks' reports of a step are summed; gradients stay in their stage.
CollectiveOptions report_options(const StrategyOptions& options, const Graph& graph) {
  CollectiveOptions reports = collective_options(options, graph);
  reports.block_elements = kTrailerElements;
  return reports;
}

// Every task calls this. A task that cuts another network, or elsewhere, would wait for tensors of
// another shape.
void require_same_cut(const Graph& graph, std::span<const Stage> stages, Membership& membership) {
  const std::vector<std::string> all = membership.exchange(
      fmt::format("network {} cut behind {}", network_hash(to_text(graph)), describe_cut(stages)));
  for (std::size_t task = 1; task < all.size(); ++task) {
    if (all[task] == all[0]) continue;
    throw UsageError(
        fmt::format("--strategy pipeline: rank {} has {}, rank 0 has {}; start all tasks with the "
                    "same program, --model, --stages and --cut",
                    task, all[task], all[0]));
  }
}

// This task's stage. The task holds the values of the whole network and trains a part of them; the
// values of other stages are brought when they are evaluated or saved. Gradients and slots of other
// stages take addresses and no memory, but for the slots on the chief, which writes checkpoints.
class TaskPipeline final : public SynchronousStrategy {
 public:
  static std::unique_ptr<Strategy> make(const StrategyOptions& options, const Graph& graph,
                                        std::vector<Stage> stages) {
    const CollectiveOptions reports = report_options(options, graph);
    Parts parts;
    parts.stages = stages;
    JoinedReplicas joined{.collectives = make_collectives(reports), .on_device = {}};
    joined.gradients = make_sparse_host_tensor({graph.parameter_layout().total()}, DType::kF32);
    parts.links = std::make_shared<TaskLinks>(reports, parts.stages, options.micro_batches);
    LocalStages local{.all = std::move(stages), .first = options.membership->index()};
    local.backends.push_back(make_backend(backend_options(options, 0)));
    auto backend = std::make_unique<PipelineBackend>(
        std::move(local), options.micro_batches,
        [links = parts.links](std::span<const Stage> /*all*/, std::int64_t samples) {
          return std::vector<StageLinks>{links->connect(samples)};
        });
    parts.backend = backend.get();
    joined.backends.push_back(std::move(backend));
    StrategyOptions whole = options;  // the model divides a step into micro-batches itself
    whole.micro_batches = 1;
    whole.batch_norm = BatchNormStatistics::kLocal;  // the tasks are one replica
    return std::unique_ptr<Strategy>(
        new TaskPipeline(whole, graph, std::move(joined), std::move(parts)));
  }

  // Every task follows the order of the samples; the first stage reads inputs, the last one
  // targets.
  InputShard input_shard() const noexcept override {
    return {.reads_inputs = rank() == 0, .reads_targets = rank() + 1 == size()};
  }
  InputShard evaluation_shard() const noexcept override {
    return {.first = rank(), .count = 1, .total = size()};
  }
  std::vector<double> idle_seconds() override {
    const double own = variables_->idle_seconds();
    return gather({&own, 1});
  }

  void begin(const ps::RunPosition& /*start*/) override {
    const std::span<const std::byte> bytes = replica().arena->values().bytes();
    const std::uint64_t own =
        hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
    replica().collective->all_gather(std::as_bytes(std::span(&own, 1)),
                                     std::as_writable_bytes(std::span(all)));
    for (std::size_t r = 1; r < all.size(); ++r) {
      if (all[r] == all[0]) continue;
      throw PeerError(
          fmt::format("the initial values of rank {} differ from those of rank 0; start all tasks "
                      "with the same program, --model, --data and --seed",
                      r));
    }
  }

  void abort(std::string_view reason) noexcept override {
    parts_.links->abort(reason);
    SynchronousStrategy::abort(reason);
  }

  void agree() override { gather_values(); }
  Tensor average(const Replica& /*replica*/) override { return average_of(variables_->slots()); }

  Snapshot snapshot() override {
    gather_values();
    gather_slots();
    return live();
  }

  void restore(const Snapshot& saved) override {
    check_snapshot(saved, live());
    if (is_chief()) copy_snapshot(saved, live());
    Collective& collective = *replica().collective;
    collective.broadcast(replica().arena->values().bytes(), 0);
    collective.broadcast(replica().state->values.bytes(), 0);
    for (const Snapshot::Slot& slot : variables_->slots()) {
      for (int s = 0; s < size(); ++s) {
        const bool keeps = is_chief() || s == rank() || slot.name == kAverageSlot;
        broadcast_part(slot.values, s, 0, keeps);
      }
    }
    replica().arena->bump_all_versions();
    values_gathered_ = slots_gathered_ = variables_->steps();
  }

 private:
  struct Parts {
    std::vector<Stage> stages;
    std::shared_ptr<TaskLinks> links;    // also kept by the backend, for its models
    PipelineBackend* backend = nullptr;  // belongs to the replica
  };

  TaskPipeline(const StrategyOptions& options, const Graph& graph, JoinedReplicas joined,
               Parts parts)
      : SynchronousStrategy(options, graph, std::move(joined), nullptr), parts_(std::move(parts)) {
    auto variables = std::make_unique<StageVariables>(
        replica(), options, Bucket{own().first_value, own().end_value}, *parts_.links,
        parts_.backend->idle_seconds().front());
    variables_ = variables.get();
    replica().variables = std::move(variables);
  }

  std::vector<Snapshot::Slot> slots_of(const Replica& /*replica*/) const override {
    return variables_->slots();
  }

  Replica& replica() noexcept { return replicas().front(); }
  int rank() const noexcept { return first_rank(); }
  int size() const noexcept { return static_cast<int>(parts_.stages.size()); }
  const Stage& stage(int s) const { return parts_.stages[static_cast<std::size_t>(s)]; }
  const Stage& own() const { return stage(rank()); }
  Snapshot live() {
    return {replica().arena->values(), variables_->slots(), replica().state->values, {}};
  }

  // Broadcasts a stage's part of a block of the whole network. A task with `keeps` false passes it
  // on and leaves its block as it is.
  void broadcast_part(const Tensor& block, int s, int root, bool keeps) {
    const Stage& of = stage(s);
    std::vector<float> unread;
    for (std::int64_t begin = of.first_value; begin < of.end_value; begin += kPartElements) {
      const std::int64_t end = std::min(begin + kPartElements, of.end_value);
      std::span<float> part = block.rows(begin, end).f32();
      if (!keeps && root != rank()) {
        unread.resize(part.size());
        part = unread;
      }
      replica().collective->broadcast(std::as_writable_bytes(part), root);
    }
  }

  // Brings the values, running statistics and moving averages of all stages to every task.
  void gather_values() {
    if (values_gathered_ == variables_->steps()) return;
    values_gathered_ = variables_->steps();
    for (int s = 0; s < size(); ++s) {
      broadcast_part(replica().arena->values(), s, s, true);
      const Tensor state = replica().state->values.rows(stage(s).first_state, stage(s).end_state);
      replica().collective->broadcast(state.bytes(), s);
    }
    for (const Snapshot::Slot& slot : variables_->slots()) {
      if (slot.name != kAverageSlot) continue;
      for (int s = 0; s < size(); ++s) broadcast_part(slot.values, s, s, true);
    }
    replica().arena->bump_all_versions();
  }

  // Brings the slots of all stages to the chief.
  void gather_slots() {
    if (slots_gathered_ == variables_->steps()) return;
    slots_gathered_ = variables_->steps();
    for (const Snapshot::Slot& slot : variables_->slots()) {
      if (slot.name == kAverageSlot) continue;  // every task has it
      for (int s = 1; s < size(); ++s) broadcast_part(slot.values, s, s, is_chief());
    }
  }

  const Parts parts_;
  StageVariables* variables_ = nullptr;  // belongs to the replica
  // The steps after which the blocks of all stages were brought together.
  std::int64_t values_gathered_ = 0;
  std::int64_t slots_gathered_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_task_pipeline(const StrategyOptions& options, const Graph& graph,
                                             std::vector<Stage> stages) {
  const std::size_t tasks = options.membership->members().size();
  if (stages.size() != tasks) {
    throw UsageError(fmt::format(
        "--strategy pipeline: the network is cut into {} stages, and the job has {} tasks; start "
        "one task for each stage",
        stages.size(), tasks));
  }
  require_same_cut(graph, stages, *options.membership);
  return TaskPipeline::make(options, graph, std::move(stages));
}

}  // namespace syncopate
