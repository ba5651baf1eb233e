#include "strategies/pipeline/stage_worker.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

#include "strategies/input_shard.h"

namespace syncopate {
namespace {

// All gradients of a stage are complete at the same time, after the last micro-batch.
constexpr std::int64_t kOneBucket = std::int64_t{1} << 40;

}  // namespace

StageWorker::StageWorker(const StageParts& parts, int micro_batches, ParameterArena& arena,
                         StateBlock& state, const CompileOptions& options)
    : graph_(parts.stage->graph),
      stage_(parts.index),
      micro_batches_(micro_batches),
      links_(parts.links),
      is_last_(parts.index + 1 == parts.stages),
      values_(arena.values().rows(parts.stage->first_value, parts.stage->end_value)),
      gradients_(arena.gradients().rows(parts.stage->first_value, parts.stage->end_value)),
      arena_(graph_.parameter_layout(), plan_buckets(graph_.parameter_layout(), kOneBucket),
             &values_, &gradients_),
      state_(graph_.state_layout()),
      in_flight_(micro_batches_in_flight(parts.index, parts.stages, micro_batches)) {
  state_.values = state.values.rows(parts.stage->first_state, parts.stage->end_state);
  for (int i = 0; i < in_flight_; ++i) {
    models_.push_back(parts.backend->compile(graph_, arena_, state_, options));
  }
  if (micro_batches > 1) sum_.resize(static_cast<std::size_t>(gradients_.num_elements()));
}

void StageWorker::reset() {
  scores_ = {};
  waited_seconds_ = 0.0;
  for (Handover* link : links_.all()) link->begin_step();
  arena_.bump_all_versions();  // the strategy has updated the whole arena
}

void StageWorker::give_up() {
  for (Handover* link : links_.all()) link->give_up();
}

void StageWorker::run(const Batch& batch) {
  int started = 0;
  for (int m = 0; m < micro_batches_; ++m) {
    while (started < std::min(m + in_flight_, micro_batches_)) {
      if (!forward(batch, started++)) return;
    }
    if (!backward(batch, m)) return;
  }
}

std::int64_t StageWorker::samples_of(const Batch& batch, int micro_batch) const {
  const BatchShare share = share_of_replica(batch.num_samples, micro_batch, micro_batches_);
  return share.end - share.begin;
}

bool StageWorker::receive(Handover& from, int m, std::int64_t samples) {
  const Span span(row_, TraceKind::kCommunication, m);
  const auto begun = std::chrono::steady_clock::now();
  const bool received = from.receive(m, samples);
  waited_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return received;
}

bool StageWorker::forward(const Batch& batch, int m) {
  const BatchShare share = share_of_replica(batch.num_samples, m, micro_batches_);
  Batch part = batch.rows(share.begin, share.end);
  if (links_.inputs != nullptr) {
    if (!receive(*links_.inputs, m, part.num_samples)) return false;
    part.inputs = {links_.inputs->memory(m, part.num_samples)};
  }
  if (!is_last_) part.target = links_.output_gradients->memory(m, part.num_samples);
  if (!graph_.uses_keys()) part.keys = Tensor();
  const Span span(row_, TraceKind::kForward, m);
  Model& model = model_of(m);
  model.start_forward(part, [](BucketId) {});
  if (is_last_) {
    scores_ += model.scores();
  } else {
    model.copy_logits(links_.outputs->memory(m, part.num_samples).f32());
    links_.outputs->send(m, part.num_samples);
  }
  return true;
}

bool StageWorker::backward(const Batch& batch, int m) {
  const std::int64_t samples = samples_of(batch, m);
  if (!is_last_ && !receive(*links_.output_gradients, m, samples)) return false;
  const Span span(row_, TraceKind::kBackward, m);
  Model& model = model_of(m);
  model.backward([](BucketId) {});
  if (links_.input_gradients != nullptr) {
    const std::span<const float> gradient = model.input_gradient().f32();
    std::ranges::copy(gradient, links_.input_gradients->memory(m, samples).f32().begin());
    links_.input_gradients->send(m, samples);
  }
  add_gradients(m);
  return true;
}

// Keeps the sum of the gradients of the micro-batches so far; the last one leaves it in the arena.
void StageWorker::add_gradients(int m) {
  if (micro_batches_ == 1) return;
  const std::span<float> gradients = gradients_.f32();
  if (m == 0) {
    std::ranges::copy(gradients, sum_.begin());
  } else {
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] = gradients[i] + sum_[i];
  }
  if (m + 1 == micro_batches_) std::ranges::copy(sum_, gradients.begin());
}

}  // namespace syncopate
