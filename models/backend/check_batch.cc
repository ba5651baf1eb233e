#include "models/backend/check_batch.h"

#include <algorithm>
#include <string>

#include "models/base/errors.h"

namespace syncopate {

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
    throw ShapeError("forward: samples " + to_string(found) + " of " +
                     std::string(name(batch.x.dtype())) + "; expected " + to_string(expected) +
                     " of " + std::string(name(input.dtype)) + ", at most " + std::to_string(most));
  }
  if (batch.loss_divisor < 1) {
    throw ShapeError("forward: the loss divisor is " + std::to_string(batch.loss_divisor) +
                     ", expected >= 1");
  }
  const std::int64_t classes = graph.num_classes();
  for (const std::int32_t label : batch.label.i32()) {
    if (label < 0 || label >= classes) {
      throw ShapeError("forward: label " + std::to_string(label) + " of a network with " +
                       std::to_string(classes) + " classes");
    }
  }
}

}  // namespace syncopate
