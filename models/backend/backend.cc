#include "models/backend/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/backend/cuda_module.h"
#include "models/base/errors.h"

namespace syncopate {

std::string_view name(Precision precision) noexcept {
  switch (precision) {
    case Precision::kF32:
      return "f32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kF16:
      return "fp16";
  }
  return "unknown";
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

void check_batch(const Graph& graph, const Batch& batch, std::int64_t most) {
  const std::int64_t n = batch.size();
  const auto& input = std::get<InputOp>(graph.nodes.front().operation);
  const Shape& sample = graph.input_shape();
  const Shape& found = batch.x.shape();
  const bool fits = found.size() == sample.size() + 1 && found[0] == n &&
                    std::equal(sample.begin(), sample.end(), found.begin() + 1);
  if (n > most || !fits || batch.x.dtype() != input.dtype) {
    Shape expected = sample;
    expected.insert(expected.begin(), n);
    throw ShapeError(fmt::format("forward: found samples {} {}; expected {} {}, at most {} samples",
                                 to_string(found), name(batch.x.dtype()), to_string(expected),
                                 name(input.dtype), most));
  }
  if (batch.loss_divisor < 1) {
    throw ShapeError(
        fmt::format("forward: the loss divisor is {}; expected at least 1", batch.loss_divisor));
  }
  const std::int64_t classes = graph.num_classes();
  for (const std::int32_t label : batch.label.i32()) {
    if (label < 0 || label >= classes) {
      throw ShapeError(
          fmt::format("forward: found label {}; expected 0 to {}, the classes of the network",
                      label, classes - 1));
    }
  }
}

}  // namespace syncopate
