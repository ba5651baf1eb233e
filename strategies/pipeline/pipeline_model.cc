#include "strategies/pipeline/pipeline_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/errors.h"
#include "strategies/input_shard.h"
#include "strategies/pipeline/handover.h"

namespace syncopate {
namespace {

// Returns a view of the elements of the whole network's block that belong to a stage.
Tensor window(const Tensor& block, std::int64_t begin, std::int64_t end) {
  return block.rows(begin, end);
}

}  // namespace

// One stage at work.
class PipelineModel::Worker {
 public:
  Worker(const StageParts& parts, int index, int stages, int micro_batches, ParameterArena& arena,
         StateBlock& state, const CompileOptions& options)
      : graph_(parts.stage->graph),
        micro_batches_(micro_batches),
        is_last_(index + 1 == stages),
        values_(window(arena.values(), parts.stage->first_value, parts.stage->end_value)),
        gradients_(window(arena.gradients(), parts.stage->first_value, parts.stage->end_value)),
        arena_(graph_.parameter_layout(), plan_buckets(graph_.parameter_layout(), kOneBucket),
               &values_, &gradients_),
        state_(graph_.state_layout()),
        in_flight_(std::min(stages - index, micro_batches)),
        outputs_(is_last_ ? Shape{} : graph_.logits_shape(), is_last_ ? 0 : micro_batches,
                 options.batch_size),
        gradients_of_outputs_(is_last_ ? Shape{} : graph_.logits_shape(),
                              is_last_ ? 0 : micro_batches, options.batch_size) {
    state_.values = window(state.values, parts.stage->first_state, parts.stage->end_state);
    for (int i = 0; i < in_flight_; ++i) {
      models_.push_back(parts.backend->compile(graph_, arena_, state_, options));
    }
    if (micro_batches > 1) sum_.resize(static_cast<std::size_t>(gradients_.num_elements()));
  }

  // Prepares a step. Called while no stage computes.
  void reset() {
    scores_ = {};
    outputs_.reset();
    gradients_of_outputs_.reset();
    arena_.bump_all_versions();  // the strategy has updated the whole arena
  }

  void give_up() {
    outputs_.give_up();
    gradients_of_outputs_.give_up();
  }

  const Scores& scores() const { return scores_; }

  // Computes the stage's part of a step. `before`: the stage before this one; null: this is the
  // first. Returns early if a stage has failed.
  void run(const Batch& batch, Worker* before) {
    int started = 0;
    for (int m = 0; m < micro_batches_; ++m) {
      while (started < std::min(m + in_flight_, micro_batches_)) {
        if (!forward(batch, started++, before)) return;
      }
      if (!backward(batch, m, before)) return;
    }
  }

 private:
  // All gradients of a stage are complete at the same time, after the last micro-batch.
  static constexpr std::int64_t kOneBucket = std::int64_t{1} << 40;

  Model& model_of(int micro_batch) {
    return *models_[static_cast<std::size_t>(micro_batch % in_flight_)];
  }
  std::int64_t samples_of(const Batch& batch, int micro_batch) const {
    const BatchShare share = share_of_replica(batch.num_samples, micro_batch, micro_batches_);
    return share.end - share.begin;
  }

  bool forward(const Batch& batch, int m, Worker* before) {
    const BatchShare share = share_of_replica(batch.num_samples, m, micro_batches_);
    Batch part = batch.rows(share.begin, share.end);
    if (before != nullptr) {
      if (!before->outputs_.wait_for(m)) return false;
      part.inputs = {before->outputs_.of(m, part.num_samples)};
    }
    if (!is_last_) part.target = gradients_of_outputs_.of(m, part.num_samples);
    if (!graph_.uses_keys()) part.keys = Tensor();
    Model& model = model_of(m);
    model.start_forward(part, [](BucketId) {});
    if (is_last_) {
      scores_ += model.scores();
    } else {
      model.copy_logits(outputs_.of(m, part.num_samples).f32());
      outputs_.publish();
    }
    return true;
  }

  bool backward(const Batch& batch, int m, Worker* before) {
    if (!is_last_ && !gradients_of_outputs_.wait_for(m)) return false;
    Model& model = model_of(m);
    model.backward([](BucketId) {});
    if (before != nullptr) {
      const std::span<const float> gradient = model.input_gradient().f32();
      const Tensor to = before->gradients_of_outputs_.of(m, samples_of(batch, m));
      std::ranges::copy(gradient, to.f32().begin());
      before->gradients_of_outputs_.publish();
    }
    add_gradients(m);
    return true;
  }

  // Keeps the sum of the gradients of the micro-batches so far; the last one leaves it in the
  // arena.
  void add_gradients(int m) {
    if (micro_batches_ == 1) return;
    const std::span<float> gradients = gradients_.f32();
    if (m == 0) {
      std::ranges::copy(gradients, sum_.begin());
    } else {
      std::vector<float>& sum = sum_;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = gradients[i] + sum[i];
    }
    if (m + 1 == micro_batches_) std::ranges::copy(sum_, gradients.begin());
  }

  const Graph& graph_;
  const int micro_batches_;
  const bool is_last_;
  const Tensor values_;
  const Tensor gradients_;
  ParameterArena arena_;
  StateBlock state_;
  const int in_flight_;  // the most micro-batches between their forward and backward pass
  std::vector<std::unique_ptr<Model>> models_;  // one for each of them
  std::vector<float> sum_;
  Handover outputs_;               // to the next stage
  Handover gradients_of_outputs_;  // from the next stage
  Scores scores_;
};

PipelineModel::PipelineModel(std::span<const StageParts> stages, int micro_batches,
                             ThreadTeam& team, ParameterArena& arena, StateBlock& state,
                             const CompileOptions& options)
    : batch_size_(options.batch_size), micro_batches_(micro_batches), team_(team), arena_(arena) {
  check(options.mode == Mode::kTrain && options.statistics == nullptr,
        "a pipeline trains, and each stage normalises its own micro-batches");
  CompileOptions of_stage = options;
  of_stage.batch_size = (options.batch_size + micro_batches - 1) / micro_batches;
  of_stage.updates_on_device = false;
  const int count = static_cast<int>(stages.size());
  for (int s = 0; s < count; ++s) {
    workers_.push_back(std::make_unique<Worker>(stages[static_cast<std::size_t>(s)], s, count,
                                                micro_batches, arena, state, of_stage));
  }
}

void PipelineModel::start_forward(const Batch& batch, const ValuesHook& before_use) {
  for (std::size_t b = 0; b < arena_.buckets().size(); ++b) before_use(static_cast<BucketId>(b));
  for (const auto& worker : workers_) worker->reset();
  team_.run(
      [&](int s) {
        const auto stage = static_cast<std::size_t>(s);
        workers_[stage]->run(batch, s == 0 ? nullptr : workers_[stage - 1].get());
      },
      [&](const std::exception_ptr&) {
        for (const auto& worker : workers_) worker->give_up();
      });
  scores_ = workers_.back()->scores();
}

void PipelineModel::backward(const GradientHook& on_ready) {
  for (std::size_t b = 0; b < arena_.buckets().size(); ++b) on_ready(static_cast<BucketId>(b));
}

void PipelineModel::accumulate() {
  check(false, "a pipeline divides a step into micro-batches itself");
}

Tensor PipelineModel::logits() const {
  throw UnavailableError("a pipeline in training keeps no logits; compile for evaluation");
}

}  // namespace syncopate
