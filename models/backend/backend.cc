#include "models/backend/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
#include "models/optim/gradient_clip.h"

namespace syncopate {

void Backend::clip_gradients(ParameterArena& arena, double max_norm) {
  syncopate::clip_gradients(arena.gradients().f32(), max_norm);
}

void Model::copy_logits(std::span<float> into) const {
  const Tensor all = logits();
  check(all.f32().size() == into.size(), "the logits of the last forward pass fit");
  std::ranges::copy(all.f32(), into.begin());
}

Tensor Model::input_gradient() const {
  throw UnavailableError(
      "this device computes no gradient of a network's input; choose --devices cpu");
}

std::unique_ptr<Backend> make_backend(const BackendOptions& options) {
  if (options.device.kind == DeviceKind::kCuda) return load_cuda_module().make_backend(options);
  if (options.precision != Precision::kF32) {
    throw UnavailableError(
        fmt::format("--precision {}: the CPU computes in f32; choose --precision f32 or "
                    "--devices cuda",
                    name(options.precision)));
  }
  return make_cpu_backend(options.lanes);
}

Batch Batch::rows(std::int64_t begin, std::int64_t end) const {
  Batch part{.inputs = {},
             .target = target.rows(begin, end),
             .num_samples = end - begin,
             .loss_divisor = loss_divisor};
  part.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) part.inputs.push_back(input.rows(begin, end));
  if (!keys.shape().empty()) part.keys = keys.rows(begin, end);
  return part;
}

Scores& Scores::operator+=(const Scores& other) noexcept {
  loss += other.loss;
  num_samples += other.num_samples;
  num_bad += other.num_bad;
  for (std::size_t i = 0; i < metrics.size(); ++i) metrics[i] += other.metrics[i];
  return *this;
}

namespace {

// Throws ShapeError unless a tensor of the batch has `n` samples of this shape and dtype. Called in
// every step, so shapes are compared in place and nothing is allocated.
void check_samples(const Tensor& found, std::string_view what, std::int64_t n,
                   std::span<const std::int64_t> sample, DType dtype, std::int64_t most) {
  const Shape& shape = found.shape();
  if (n <= most && found.dtype() == dtype && !shape.empty() && shape.front() == n &&
      std::ranges::equal(std::span(shape).subspan(1), sample)) {
    return;
  }
  Shape expected = {n};
  expected.insert(expected.end(), sample.begin(), sample.end());
  throw ShapeError(fmt::format("forward: found {} {} {}; expected {} {}, at most {} samples", what,
                               to_string(shape), name(found.dtype()), to_string(expected),
                               name(dtype), most));
}

}  // namespace

void check_batch(const Graph& graph, const Batch& batch, std::int64_t most, Mode mode) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes) {
    const auto* input = std::get_if<InputOp>(&node.operation);
    if (input == nullptr) continue;
    if (count == batch.inputs.size()) break;
    check_samples(batch.inputs[count++], node.name, batch.num_samples, node.shape, input->dtype,
                  most);
  }
  if (count != batch.inputs.size() || count != graph.num_inputs()) {
    throw ShapeError(fmt::format("forward: found {} inputs; expected {}", batch.inputs.size(),
                                 graph.num_inputs()));
  }
  const bool of_classes = has_classes(graph.loss().kind);
  const std::span<const std::int64_t> logits(graph.logits_shape());
  // Graph::target_shape(), not allocated.
  const auto target = logits.first(logits.size() - (of_classes ? 1 : 0));
  check_samples(batch.target, "targets", batch.num_samples, target, graph.target_dtype(), most);
  if (mode == Mode::kTrain && graph.uses_keys()) {
    check_samples(batch.keys, "keys of dropout", batch.num_samples, {}, DType::kI64, most);
  }
  if (batch.loss_divisor < 1) {
    throw ShapeError(
        fmt::format("forward: the loss divisor is {}; expected at least 1", batch.loss_divisor));
  }
  if (!of_classes) return;
  const std::int64_t classes = graph.num_classes();
  for (const std::int32_t label : batch.target.i32()) {
    const bool counts = target.empty() || label != kUncounted;
    if (counts && (label < 0 || label >= classes)) {
      throw ShapeError(
          fmt::format("forward: found label {}; expected 0 to {}, the classes of the network",
                      label, classes - 1));
    }
  }
}

}  // namespace syncopate
