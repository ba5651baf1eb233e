// Implements the operations with a weight, convolution and dense layers, in double precision.
#include "tests/reference/operations.h"

namespace syncopate::reference {
namespace {

// Calls visit(output index, weight index, input index) for every product of a convolution whose
// input is not padding.
template <typename Visit>
void for_each_product(const Map& x, const Conv2dOp& op, const Map& y, const Visit& visit) {
  for (std::int64_t n = 0; n < y.n; ++n) {
    for (std::int64_t oh = 0; oh < y.h; ++oh) {
      for (std::int64_t ow = 0; ow < y.w; ++ow) {
        for (std::int64_t k = 0; k < y.c; ++k) {
          for (std::int64_t r = 0; r < op.kernel_h; ++r) {
            for (std::int64_t s = 0; s < op.kernel_w; ++s) {
              const std::int64_t ih = oh * op.stride - op.pad.top + r;
              const std::int64_t iw = ow * op.stride - op.pad.left + s;
              if (ih < 0 || ih >= x.h || iw < 0 || iw >= x.w) continue;
              const std::int64_t channels = x.c / op.groups;
              const std::int64_t first = k / (y.c / op.groups) * channels;
              for (std::int64_t c = 0; c < channels; ++c) {
                const std::int64_t weight =
                    ((k * op.kernel_h + r) * op.kernel_w + s) * channels + c;
                visit(((n * y.h + oh) * y.w + ow) * y.c + k, weight,
                      ((n * x.h + ih) * x.w + iw) * x.c + first + c);
              }
            }
          }
        }
      }
    }
  }
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

Map conv2d(const Map& x, const Conv2dOp& operation, const Values& weight, const Values& bias,
           const Shape& out_shape) {
  Map y = make_map(x.n, out_shape);
  for_each_product(x, operation, y, [&](std::int64_t iy, std::int64_t iw, std::int64_t ix) {
    y.values[at(iy)] += weight[at(iw)] * x.values[at(ix)];
  });
  if (!bias.empty()) {
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += bias[i % bias.size()];
  }
  return y;
}

ConvGradients conv2d_backward(const Map& x, const Conv2dOp& operation, const Values& weight,
                              const Map& dy) {
  ConvGradients gradients{make_map(x.n, {x.h, x.w, x.c}), Values(weight.size()), Values(at(dy.c))};
  for_each_product(x, operation, dy, [&](std::int64_t iy, std::int64_t iw, std::int64_t ix) {
    gradients.x.values[at(ix)] += weight[at(iw)] * dy.values[at(iy)];
    gradients.weight[at(iw)] += x.values[at(ix)] * dy.values[at(iy)];
  });
  for (std::size_t i = 0; i < dy.values.size(); ++i) gradients.bias[i % at(dy.c)] += dy.values[i];
  return gradients;
}

namespace {

// Calls visit(output index, weight index, input index) for every product of a transposed
// convolution: an input pixel adds the kernel, times its value, to the output around it.
template <typename Visit>
void for_each_spread(const Map& x, const ConvTranspose2dOp& op, const Map& y, const Visit& visit) {
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t ih = 0; ih < x.h; ++ih) {
      for (std::int64_t iw = 0; iw < x.w; ++iw) {
        for (std::int64_t c = 0; c < x.c; ++c) {
          for (std::int64_t r = 0; r < op.kernel_h; ++r) {
            for (std::int64_t s = 0; s < op.kernel_w; ++s) {
              const std::int64_t oh = ih * op.stride - op.pad.top + r;
              const std::int64_t ow = iw * op.stride - op.pad.left + s;
              if (oh < 0 || oh >= y.h || ow < 0 || ow >= y.w) continue;
              for (std::int64_t k = 0; k < y.c; ++k) {
                visit(((n * y.h + oh) * y.w + ow) * y.c + k,
                      ((c * op.kernel_h + r) * op.kernel_w + s) * y.c + k,
                      ((n * x.h + ih) * x.w + iw) * x.c + c);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

Map conv_transpose2d(const Map& x, const ConvTranspose2dOp& operation, const Values& weight,
                     const Values& bias, const Shape& out_shape) {
  Map y = make_map(x.n, out_shape);
  for_each_spread(x, operation, y, [&](std::int64_t iy, std::int64_t iw, std::int64_t ix) {
    y.values[at(iy)] += weight[at(iw)] * x.values[at(ix)];
  });
  if (!bias.empty()) {
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += bias[i % bias.size()];
  }
  return y;
}

ConvGradients conv_transpose2d_backward(const Map& x, const ConvTranspose2dOp& operation,
                                        const Values& weight, const Map& dy) {
  ConvGradients gradients{make_map(x.n, {x.h, x.w, x.c}), Values(weight.size()), Values(at(dy.c))};
  for_each_spread(x, operation, dy, [&](std::int64_t iy, std::int64_t iw, std::int64_t ix) {
    gradients.x.values[at(ix)] += weight[at(iw)] * dy.values[at(iy)];
    gradients.weight[at(iw)] += x.values[at(ix)] * dy.values[at(iy)];
  });
  for (std::size_t i = 0; i < dy.values.size(); ++i) gradients.bias[i % at(dy.c)] += dy.values[i];
  return gradients;
}

Map dense(const Map& x, const Values& weight, const Values& bias) {
  const auto out = static_cast<std::int64_t>(bias.size());
  Map y = make_map(x.n, {out});
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias[at(o)];
      for (std::int64_t i = 0; i < x.c; ++i) sum += weight[at(o * x.c + i)] * x.at(n, 0, 0, i);
      y.at(n, 0, 0, o) = sum;
    }
  }
  return y;
}

DenseGradients dense_backward(const Map& x, const Values& weight, const Map& dy) {
  DenseGradients gradients{make_map(x.n, {x.c}), Values(weight.size()), Values(at(dy.c))};
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t o = 0; o < dy.c; ++o) {
      const double g = dy.at(n, 0, 0, o);
      gradients.bias[at(o)] += g;
      for (std::int64_t i = 0; i < x.c; ++i) {
        gradients.weight[at(o * x.c + i)] += g * x.at(n, 0, 0, i);
        gradients.x.at(n, 0, 0, i) += g * weight[at(o * x.c + i)];
      }
    }
  }
  return gradients;
}

}  // namespace syncopate::reference
