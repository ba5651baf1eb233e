#include "bench/virtual_clock/virtual_device.h"

#include <cstring>

#include "worker/checkpoint/weights_file.h"

namespace syncopate::bench {
namespace {

// Copies by memmove, because std::ranges::copy of GCC 12 copies spans one float at a time.
void copy_values(std::span<const float> from, std::span<float> to) {
  if (!from.empty()) std::memmove(to.data(), from.data(), from.size_bytes());
}

}  // namespace

VirtualDevice::VirtualDevice(const StrategyOptions& options, const Graph& graph,
                             const Dataset& test, const EvaluationOptions& evaluation)
    : graph_(graph),
      evaluation_(evaluation),
      backend_(make_cpu_backend(options.lanes)),
      test_(test) {
  const ArenaLayout layout = graph.parameter_layout();
  // The arena's buckets have no effect: the server's shard splits gradients into its own buckets.
  arena_ = std::make_unique<ParameterArena>(layout, plan_buckets(layout, options.bucket_bytes));
  state_ = std::make_unique<StateBlock>(graph.state_layout());
  fill_initial_values(graph, options.seed, *arena_);
  fill_initial_state(graph, *state_);
  model_ = backend_->compile(graph, *arena_, *state_,
                             {.mode = Mode::kTrain, .batch_size = micro_batch_size(options)});
  evaluator_ =
      std::make_unique<PartialEvaluator>(*backend_, graph, *arena_, *state_, test, evaluation);
}

void VirtualDevice::load_weights(const std::filesystem::path& file, std::uint64_t seed) {
  // Host tensors are handles: the snapshot has the memory of the device, which is the CPU.
  syncopate::load_weights(file, graph_, seed,
                          {.values = arena_->values(), .slots = {}, .state = state_->values});
  note_written();
}

void VirtualDevice::load(std::span<const float> values) {
  copy_values(values, arena_->values().f32());
  note_written();
}

Scores VirtualDevice::train(const Batch& batch, std::span<float> state) {
  copy_values(state, state_->values.f32());
  const Scores scores = model_->forward(batch, [](BucketId) {});
  model_->backward([](BucketId) {});
  if (!state.empty()) copy_values(state_->values.f32(), state);
  return scores;
}

void VirtualDevice::update(const OptimizerSlots& slots, const UpdateStep& step) {
  backend_->update(slots.optimizer(), step, *arena_, slots.tensors(),
                   {0, arena_->layout().total()});
  note_written();
}

Evaluation VirtualDevice::evaluate(std::span<const float> state) {
  copy_values(state, state_->values.f32());
  return *evaluator_->run();
}

Evaluation VirtualDevice::evaluate_on(const Dataset& split, std::span<const float> state) {
  copy_values(state, state_->values.f32());
  PartialEvaluator evaluator(*backend_, graph_, *arena_, *state_, split, evaluation_);
  return *evaluator.run();
}

}  // namespace syncopate::bench
