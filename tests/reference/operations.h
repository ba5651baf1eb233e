// The operations of a graph, forward and backward, in double precision and plain loops. Tests
// compare backends with them. The code is written to resemble the formulas, not to be fast.
// models/graph/graph.h specifies the operations.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate::reference {

using Values = std::vector<double>;

// A Map holds N samples of a map [H, W, C]; a vector [F] is a map [1, 1, F].
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

// Returns a map of n samples of shape [H, W, C] or [F], filled with zeros.
Map make_map(std::int64_t n, const Shape& sample_shape);

// Normalises samples. u8 pixels have values 0 to 255.
Map input(const Map& x, const InputOp& operation);

// Computes a convolution; weight is [K, R, S, C], bias is [K] or empty.
Map conv2d(const Map& x, const Conv2dOp& operation, const Values& weight, const Values& bias,
           const Shape& out_shape);
struct ConvGradients {
  Map x;
  Values weight;
  Values bias;  // computed also for a convolution without bias
};
ConvGradients conv2d_backward(const Map& x, const Conv2dOp& operation, const Values& weight,
                              const Map& dy);
// Computes a transposed convolution; weight is [C, R, S, K], bias is [K] or empty.
Map conv_transpose2d(const Map& x, const ConvTranspose2dOp& operation, const Values& weight,
                     const Values& bias, const Shape& out_shape);
ConvGradients conv_transpose2d_backward(const Map& x, const ConvTranspose2dOp& operation,
                                        const Values& weight, const Map& dy);

struct Moments {
  Values mean;      // [C]
  Values variance;  // [C], biased: divided by N * H * W
};
Moments batch_moments(const Map& x);
// Returns the running statistics after a training step with count = N * H * W values per channel,
// count > 1.
Moments updated_statistics(const Moments& running, const Moments& batch,
                           const BatchNormOp& operation, std::int64_t count);
Map batch_norm(const Map& x, const Moments& moments, const BatchNormOp& operation,
               const Values& scale, const Values& shift);
struct BatchNormGradients {
  Map x;
  Values scale;
  Values shift;
};
// Computes batch norm's gradients. The moments are those of x, as in training, so their gradients
// are included.
BatchNormGradients batch_norm_backward(const Map& x, const Moments& moments,
                                       const BatchNormOp& operation, const Values& scale,
                                       const Map& dy);

Map layer_norm(const Map& x, const LayerNormOp& operation, const Values& weight,
               const Values& bias);
// Computes layer norm's gradients: scale is that of the weight, shift that of the bias.
BatchNormGradients layer_norm_backward(const Map& x, const LayerNormOp& operation,
                                       const Values& weight, const Map& dy);

// Multiplies each element by its factor: 0 for one that the mask of its sample drops. `name` is
// that of the node, keys: one per sample. The gradient is the dropout of dy.
Map dropout(const Map& x, const DropoutOp& operation, std::string_view name,
            const std::vector<std::uint64_t>& keys);

Map relu(const Map& x);
Map relu_backward(const Map& x, const Map& dy);  // the gradient at x = 0 is 0

// The max pool passes the whole gradient to the first, in row order, of equal maxima.
Map max_pool(const Map& x, const MaxPoolOp& operation, const Shape& out_shape);
Map max_pool_backward(const Map& x, const MaxPoolOp& operation, const Map& dy);

Map global_average_pool(const Map& x);
Map global_average_pool_backward(const Map& x, const Map& dy);

// Computes a dense layer; weight is [out, in], bias is [out].
Map dense(const Map& x, const Values& weight, const Values& bias);
struct DenseGradients {
  Map x;
  Values weight;
  Values bias;
};
DenseGradients dense_backward(const Map& x, const Values& weight, const Map& dy);

Map add(const Map& a, const Map& b);

Map activate(const Map& x, const ActivationOp& operation);
Map activate_backward(const Map& x, const ActivationOp& operation, const Map& dy);
Map average_pool(const Map& x, const AveragePoolOp& operation, const Shape& out_shape);
Map average_pool_backward(const Map& x, const AveragePoolOp& operation, const Map& dy);
// b may be one factor for each channel of a: [1, 1, C].
Map multiply(const Map& a, const Map& b);
// Returns the sums over the pixels of each channel of a * b, [1, 1, C].
Map channel_products(const Map& a, const Map& b);

// axes.cc
Map upsample2d(const Map& x, const UpsampleOp& operation, const Shape& out_shape);
Map upsample2d_backward(const Map& x, const UpsampleOp& operation, const Map& dy);
Map softmax(const Map& x);
Map softmax_backward(const Map& y, const Map& dy);
Map transpose(const Map& x, const std::array<int, 3>& order);
Map transpose_backward(const Map& x, const std::array<int, 3>& order, const Map& dy);
Map reduce_mean(const Map& x, const Shape& out_shape);
Map reduce_mean_backward(const Map& x, const Map& dy);
Map matmul(const Map& a, const Map& b);
struct MatmulGradients {
  Map a;
  Map b;
};
MatmulGradients matmul_backward(const Map& a, const Map& b, const Map& dy);

Map concat(const std::vector<const Map*>& inputs);
// Returns the channels of y that are those of one input of concat(): `count` from `first` on.
Map channels_of(const Map& y, std::int64_t first, std::int64_t count);
Map shortcut(const Map& x, const ShortcutOp& operation, const Shape& out_shape);
Map shortcut_backward(const Map& x, const ShortcutOp& operation, const Map& dy);

struct Loss {
  double loss = 0.0;    // the sum of the sample losses / loss_divisor
  double metric = 0.0;  // the sum of the samples' main metric
  Map dlogits;
};
// The labels are those of samples or, if the map has several pixels, of pixels.
Loss softmax_cross_entropy(const Map& logits, const std::vector<std::int32_t>& labels,
                           double loss_divisor, double label_smoothing = 0.0);
// The losses of numbers, x and targets [N, K].
Loss binary_cross_entropy(const Map& x, const Values& targets, double loss_divisor);
Loss mean_squared_error(const Map& x, const Values& targets, double loss_divisor);

}  // namespace syncopate::reference
