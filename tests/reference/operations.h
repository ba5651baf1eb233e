// What every operation of a graph means, forward and backward, in double precision and plain loops:
// the side that backends are held against. Written to be compared with a formula, not to be fast.
// models/graph/graph.h says what the operations promise.
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate::reference {

using Values = std::vector<double>;

// N samples of a map [H, W, C]; a vector [F] is a map [1, 1, F].
struct Map {
  std::int64_t n = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;
  std::int64_t c = 0;
  Values values;

  double& at(std::int64_t in, std::int64_t ih, std::int64_t iw, std::int64_t ic) {
    return values[index(in, ih, iw, ic)];
  }
  double at(std::int64_t in, std::int64_t ih, std::int64_t iw, std::int64_t ic) const {
    return values[index(in, ih, iw, ic)];
  }

 private:
  std::size_t index(std::int64_t in, std::int64_t ih, std::int64_t iw, std::int64_t ic) const {
    return static_cast<std::size_t>(((in * h + ih) * w + iw) * c + ic);
  }
};

// Zeroed. `sample_shape`: [H, W, C] or [F].
Map make_map(std::int64_t n, const Shape& sample_shape);

// u8 pixels come as 0 .. 255.
Map input(const Map& x, const InputOp& operation);

// weight [K, R, S, C], bias [K] or empty.
Map conv2d(const Map& x, const Conv2dOp& operation, const Values& weight, const Values& bias,
           const Shape& out_shape);
struct ConvGradients {
  Map x;
  Values weight;
  Values bias;  // also when there is none
};
ConvGradients conv2d_backward(const Map& x, const Conv2dOp& operation, const Values& weight,
                              const Map& dy);

struct Moments {
  Values mean;      // [C]
  Values variance;  // [C], biased: divided by N * H * W
};
Moments batch_moments(const Map& x);
// Running statistics after a training step. Needs N * H * W > 1.
Moments updated_statistics(const Moments& running, const Moments& batch,
                           const BatchNormOp& operation, std::int64_t count);
Map batch_norm(const Map& x, const Moments& moments, const BatchNormOp& operation,
               const Values& scale, const Values& shift);
struct BatchNormGradients {
  Map x;
  Values scale;
  Values shift;
};
// The moments are functions of x, as in training.
BatchNormGradients batch_norm_backward(const Map& x, const Moments& moments,
                                       const BatchNormOp& operation, const Values& scale,
                                       const Map& dy);

Map relu(const Map& x);
Map relu_backward(const Map& x, const Map& dy);  // 0 at 0

// Of equal values the first in row order wins, and takes the whole gradient.
Map max_pool(const Map& x, const MaxPoolOp& operation, const Shape& out_shape);
Map max_pool_backward(const Map& x, const MaxPoolOp& operation, const Map& dy);

Map global_average_pool(const Map& x);
Map global_average_pool_backward(const Map& x, const Map& dy);

// weight [out, in], bias [out].
Map dense(const Map& x, const Values& weight, const Values& bias);
struct DenseGradients {
  Map x;
  Values weight;
  Values bias;
};
DenseGradients dense_backward(const Map& x, const Values& weight, const Map& dy);

Map add(const Map& a, const Map& b);

Map shortcut(const Map& x, const ShortcutOp& operation, const Shape& out_shape);
Map shortcut_backward(const Map& x, const ShortcutOp& operation, const Map& dy);

struct Loss {
  double loss = 0.0;  // sum over samples / loss_divisor
  std::int64_t num_correct = 0;
  Map dlogits;
};
Loss softmax_cross_entropy(const Map& logits, const std::vector<std::int32_t>& labels,
                           double loss_divisor);

}  // namespace syncopate::reference
