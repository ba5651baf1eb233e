// Implements batch norm in double precision. Source: Ioffe and Szegedy 2015, algorithm 1 and
// section 3.
#include <cmath>

#include "tests/reference/operations.h"

namespace syncopate::reference {
namespace {

// Returns the channel of element i of a map.
std::size_t channel(const Map& x, std::size_t i) { return i % static_cast<std::size_t>(x.c); }

double inverse_deviation(const Moments& moments, const BatchNormOp& operation, std::size_t c) {
  return 1.0 / std::sqrt(moments.variance[c] + static_cast<double>(operation.epsilon));
}

}  // namespace

Moments batch_moments(const Map& x) {
  const auto channels = static_cast<std::size_t>(x.c);
  const auto count = static_cast<double>(x.n * x.h * x.w);
  Moments moments{Values(channels), Values(channels)};
  for (std::size_t i = 0; i < x.values.size(); ++i)
    moments.mean[channel(x, i)] += x.values[i] / count;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double centred = x.values[i] - moments.mean[channel(x, i)];
    moments.variance[channel(x, i)] += centred * centred / count;
  }
  return moments;
}

Moments updated_statistics(const Moments& running, const Moments& batch,
                           const BatchNormOp& operation, std::int64_t count) {
  const double momentum = operation.momentum;
  const double unbias = static_cast<double>(count) / static_cast<double>(count - 1);
  Moments updated = running;
  for (std::size_t c = 0; c < running.mean.size(); ++c) {
    updated.mean[c] = (1.0 - momentum) * running.mean[c] + momentum * batch.mean[c];
    updated.variance[c] =
        (1.0 - momentum) * running.variance[c] + momentum * batch.variance[c] * unbias;
  }
  return updated;
}

Map batch_norm(const Map& x, const Moments& moments, const BatchNormOp& operation,
               const Values& scale, const Values& shift) {
  Map y = x;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t c = channel(x, i);
    const double normalised =
        (x.values[i] - moments.mean[c]) * inverse_deviation(moments, operation, c);
    y.values[i] = scale[c] * normalised + shift[c];
  }
  return y;
}

BatchNormGradients batch_norm_backward(const Map& x, const Moments& moments,
                                       const BatchNormOp& operation, const Values& scale,
                                       const Map& dy) {
  const auto count = static_cast<double>(x.n * x.h * x.w);
  BatchNormGradients gradients{x, Values(scale.size()), Values(scale.size())};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t c = channel(x, i);
    const double normalised =
        (x.values[i] - moments.mean[c]) * inverse_deviation(moments, operation, c);
    gradients.scale[c] += dy.values[i] * normalised;
    gradients.shift[c] += dy.values[i];
  }
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t c = channel(x, i);
    const double inverse = inverse_deviation(moments, operation, c);
    const double normalised = (x.values[i] - moments.mean[c]) * inverse;
    gradients.x.values[i] =
        scale[c] * inverse *
        (dy.values[i] - gradients.shift[c] / count - normalised * gradients.scale[c] / count);
  }
  return gradients;
}

}  // namespace syncopate::reference
