// Implements the operations without parameters, and the loss, in double precision.
#include "tests/reference/operations.h"

#include <algorithm>
#include <cmath>

#include "models/base/random.h"

namespace syncopate::reference {
namespace {

Map zeros_like(const Map& x) { return make_map(x.n, {x.h, x.w, x.c}); }

// Calls visit(n, oh, ow, c, winning row, winning column) for every window of a max pool.
template <typename Visit>
void for_each_maximum(const Map& x, const MaxPoolOp& op, std::int64_t out_h, std::int64_t out_w,
                      const Visit& visit) {
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t oh = 0; oh < out_h; ++oh) {
      for (std::int64_t ow = 0; ow < out_w; ++ow) {
        for (std::int64_t c = 0; c < x.c; ++c) {
          const std::int64_t top = oh * op.stride - op.pad;
          const std::int64_t left = ow * op.stride - op.pad;
          // The search for the maximum begins with the first pixel of the window that is not
          // padding.
          std::int64_t best_h = std::max<std::int64_t>(top, 0);
          std::int64_t best_w = std::max<std::int64_t>(left, 0);
          for (std::int64_t ih = top; ih < top + op.window; ++ih) {
            for (std::int64_t iw = left; iw < left + op.window; ++iw) {
              const bool inside = ih >= 0 && ih < x.h && iw >= 0 && iw < x.w;
              if (inside && x.at(n, ih, iw, c) > x.at(n, best_h, best_w, c)) {
                best_h = ih;
                best_w = iw;
              }
            }
          }
          visit(n, oh, ow, c, best_h, best_w);
        }
      }
    }
  }
}

}  // namespace

Map make_map(std::int64_t n, const Shape& sample_shape) {
  Map map{.n = n, .h = 1, .w = 1, .c = sample_shape.back()};
  if (sample_shape.size() == 3) {
    map.h = sample_shape[0];
    map.w = sample_shape[1];
  }
  map.values.resize(static_cast<std::size_t>(n * num_elements(sample_shape)));
  return map;
}

Map input(const Map& x, const InputOp& operation) {
  Map y = x;
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const std::size_t c = i % operation.mean.size();
    y.values[i] = (x.values[i] / static_cast<double>(operation.unit()) -
                   static_cast<double>(operation.mean[c])) /
                  static_cast<double>(operation.stddev[c]);
  }
  return y;
}

Map dropout(const Map& x, const DropoutOp& operation, std::string_view name,
            const std::vector<std::uint64_t>& keys) {
  Map y = x;
  const auto elements = static_cast<std::size_t>(x.h * x.w * x.c);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const RandomStream random(keys.at(i / elements), hash_name(name));
    const double number = random.bits(i % elements) / 4294967296.0;
    const auto rate = static_cast<double>(operation.rate);
    y.values[i] *= number < rate ? 0.0 : 1.0 / (1.0 - rate);
  }
  return y;
}

Map relu(const Map& x) {
  Map y = x;
  for (double& value : y.values) value = std::max(value, 0.0);
  return y;
}

Map relu_backward(const Map& x, const Map& dy) {
  Map dx = dy;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    if (x.values[i] <= 0.0) dx.values[i] = 0.0;
  }
  return dx;
}

Map max_pool(const Map& x, const MaxPoolOp& operation, const Shape& out_shape) {
  Map y = make_map(x.n, out_shape);
  for_each_maximum(
      x, operation, y.h, y.w,
      [&](std::int64_t n, std::int64_t oh, std::int64_t ow, std::int64_t c, std::int64_t ih,
          std::int64_t iw) { y.at(n, oh, ow, c) = x.at(n, ih, iw, c); });
  return y;
}

Map max_pool_backward(const Map& x, const MaxPoolOp& operation, const Map& dy) {
  Map dx = zeros_like(x);
  for_each_maximum(
      x, operation, dy.h, dy.w,
      [&](std::int64_t n, std::int64_t oh, std::int64_t ow, std::int64_t c, std::int64_t ih,
          std::int64_t iw) { dx.at(n, ih, iw, c) += dy.at(n, oh, ow, c); });
  return dx;
}

Map global_average_pool(const Map& x) {
  Map y = make_map(x.n, {x.c});
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t h = 0; h < x.h; ++h) {
      for (std::int64_t w = 0; w < x.w; ++w) {
        for (std::int64_t c = 0; c < x.c; ++c) {
          y.at(n, 0, 0, c) += x.at(n, h, w, c) / static_cast<double>(x.h * x.w);
        }
      }
    }
  }
  return y;
}

Map global_average_pool_backward(const Map& x, const Map& dy) {
  Map dx = zeros_like(x);
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t h = 0; h < x.h; ++h) {
      for (std::int64_t w = 0; w < x.w; ++w) {
        for (std::int64_t c = 0; c < x.c; ++c) {
          dx.at(n, h, w, c) = dy.at(n, 0, 0, c) / static_cast<double>(x.h * x.w);
        }
      }
    }
  }
  return dx;
}

Map add(const Map& a, const Map& b) {
  Map y = a;
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += b.values[i];
  return y;
}

namespace {

double normal_distribution(double x) { return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double value_of(functions::Sigmoid /*f*/, double x) { return sigmoid(x); }
double slope_of(functions::Sigmoid /*f*/, double x) { return sigmoid(x) * (1.0 - sigmoid(x)); }

double value_of(functions::Tanh /*f*/, double x) { return std::tanh(x); }
double slope_of(functions::Tanh /*f*/, double x) { return 1.0 - std::tanh(x) * std::tanh(x); }

double value_of(functions::Gelu /*f*/, double x) { return x * normal_distribution(x); }
double slope_of(functions::Gelu /*f*/, double x) {
  constexpr double kPi = 3.14159265358979323846;
  return normal_distribution(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * kPi);
}

double value_of(functions::Silu /*f*/, double x) { return x * sigmoid(x); }
double slope_of(functions::Silu /*f*/, double x) {
  const double s = sigmoid(x);
  return s + x * s * (1.0 - s);
}

double value_of(functions::HardSwish /*f*/, double x) {
  return x * std::min(std::max(x + 3.0, 0.0), 6.0) / 6.0;
}
double slope_of(functions::HardSwish /*f*/, double x) {
  // At the kinks, the slope between them, as in PyTorch 1.13.
  if (x < -3.0) return 0.0;
  return x > 3.0 ? 1.0 : x / 3.0 + 0.5;
}

double value_of(functions::Relu6 /*f*/, double x) { return std::min(std::max(x, 0.0), 6.0); }
double slope_of(functions::Relu6 /*f*/, double x) { return x > 0.0 && x < 6.0 ? 1.0 : 0.0; }

double value_of(functions::HardSigmoid /*f*/, double x) {
  return std::min(std::max(x + 3.0, 0.0), 6.0) / 6.0;
}
double slope_of(functions::HardSigmoid /*f*/, double x) {
  return x > -3.0 && x < 3.0 ? 1.0 / 6.0 : 0.0;
}

double value_of(functions::LeakyRelu f, double x) { return x > 0.0 ? x : double{f.slope} * x; }
double slope_of(functions::LeakyRelu f, double x) { return x > 0.0 ? 1.0 : double{f.slope}; }

double value_of(functions::Clip f, double x) {
  return std::min(std::max(x, double{f.low}), double{f.high});
}
double slope_of(functions::Clip f, double x) {
  return x >= double{f.low} && x <= double{f.high} ? 1.0 : 0.0;
}

double value_of(functions::Linear f, double x) { return x * double{f.factor} + double{f.offset}; }
double slope_of(functions::Linear f, double /*x*/) { return double{f.factor}; }

// Calls visit(n, oh, ow, c, ih, iw) for each pixel of the map in each window of an average pool.
template <typename Visit>
void for_each_in_windows(const Map& x, const AveragePoolOp& op, std::int64_t out_h,
                         std::int64_t out_w, const Visit& visit) {
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t oh = 0; oh < out_h; ++oh) {
      for (std::int64_t ow = 0; ow < out_w; ++ow) {
        for (int r = 0; r < op.window; ++r) {
          for (int s = 0; s < op.window; ++s) {
            const std::int64_t ih = oh * op.stride - op.pad + r;
            const std::int64_t iw = ow * op.stride - op.pad + s;
            if (ih < 0 || ih >= x.h || iw < 0 || iw >= x.w) continue;
            for (std::int64_t c = 0; c < x.c; ++c) visit(n, oh, ow, c, ih, iw);
          }
        }
      }
    }
  }
}

}  // namespace

Map activate(const Map& x, const ActivationOp& operation) {
  Map y = x;
  with_function(operation, [&](auto function) {
    for (double& value : y.values) value = value_of(function, value);
  });
  return y;
}

Map activate_backward(const Map& x, const ActivationOp& operation, const Map& dy) {
  Map dx = dy;
  with_function(operation, [&](auto function) {
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      dx.values[i] *= slope_of(function, x.values[i]);
    }
  });
  return dx;
}

Map average_pool(const Map& x, const AveragePoolOp& operation, const Shape& out_shape) {
  Map y = make_map(x.n, out_shape);
  const double area = operation.window * operation.window;
  for_each_in_windows(x, operation, y.h, y.w,
                      [&](auto n, auto oh, auto ow, auto c, auto ih, auto iw) {
                        y.at(n, oh, ow, c) += x.at(n, ih, iw, c) / area;
                      });
  return y;
}

Map average_pool_backward(const Map& x, const AveragePoolOp& operation, const Map& dy) {
  Map dx = zeros_like(x);
  const double area = operation.window * operation.window;
  for_each_in_windows(x, operation, dy.h, dy.w,
                      [&](auto n, auto oh, auto ow, auto c, auto ih, auto iw) {
                        dx.at(n, ih, iw, c) += dy.at(n, oh, ow, c) / area;
                      });
  return dx;
}

Map multiply(const Map& a, const Map& b) {
  Map y = a;
  const bool are_factors = a.values.size() != b.values.size();
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.values.size()); ++i) {
    const std::int64_t factor = i / (a.h * a.w * a.c) * a.c + i % a.c;
    y.values[static_cast<std::size_t>(i)] *=
        b.values[static_cast<std::size_t>(are_factors ? factor : i)];
  }
  return y;
}

Map channel_products(const Map& a, const Map& b) {
  Map sums = make_map(a.n, {1, 1, a.c});
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(a.values.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    sums.at(i / (a.h * a.w * a.c), 0, 0, i % a.c) += a.values[at] * b.values[at];
  }
  return sums;
}

Map concat(const std::vector<const Map*>& inputs) {
  const Map& like = *inputs.front();
  std::int64_t channels = 0;
  for (const Map* input : inputs) channels += input->c;
  Map y = make_map(like.n, {like.h, like.w, channels});
  y.values.clear();
  for (std::size_t pixel = 0; pixel < static_cast<std::size_t>(like.n * like.h * like.w); ++pixel) {
    for (const Map* input : inputs) {
      const auto width = static_cast<std::size_t>(input->c);
      for (std::size_t c = 0; c < width; ++c) y.values.push_back(input->values[pixel * width + c]);
    }
  }
  return y;
}

Map channels_of(const Map& y, std::int64_t first, std::int64_t count) {
  Map x = make_map(y.n, {y.h, y.w, count});
  for (std::int64_t n = 0; n < y.n; ++n) {
    for (std::int64_t h = 0; h < y.h; ++h) {
      for (std::int64_t w = 0; w < y.w; ++w) {
        for (std::int64_t c = 0; c < count; ++c) x.at(n, h, w, c) = y.at(n, h, w, first + c);
      }
    }
  }
  return x;
}

Map shortcut(const Map& x, const ShortcutOp& operation, const Shape& out_shape) {
  Map y = make_map(x.n, out_shape);
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t h = 0; h < y.h; ++h) {
      for (std::int64_t w = 0; w < y.w; ++w) {
        for (std::int64_t c = 0; c < x.c; ++c) {
          y.at(n, h, w, c) = x.at(n, h * operation.stride, w * operation.stride, c);
        }
      }
    }
  }
  return y;
}

Map shortcut_backward(const Map& x, const ShortcutOp& operation, const Map& dy) {
  Map dx = zeros_like(x);
  for (std::int64_t n = 0; n < x.n; ++n) {
    for (std::int64_t h = 0; h < dy.h; ++h) {
      for (std::int64_t w = 0; w < dy.w; ++w) {
        for (std::int64_t c = 0; c < x.c; ++c) {
          dx.at(n, h * operation.stride, w * operation.stride, c) = dy.at(n, h, w, c);
        }
      }
    }
  }
  return dx;
}

namespace {

// Adds one pixel's loss, weighted, to the result.
void add_pixel(const Map& logits, std::int64_t n, std::int64_t h, std::int64_t w,
               std::int64_t label, double weight, double loss_divisor, double label_smoothing,
               Loss& result) {
  const auto x = [&](std::int64_t k) { return logits.at(n, h, w, k); };
  std::int64_t largest = 0;
  for (std::int64_t k = 1; k < logits.c; ++k) {
    if (x(k) > x(largest)) largest = k;
  }
  double sum = 0.0;
  for (std::int64_t k = 0; k < logits.c; ++k) sum += std::exp(x(k) - x(largest));
  result.metric += largest == label ? weight : 0.0;
  for (std::int64_t k = 0; k < logits.c; ++k) {
    const double probability = std::exp(x(k) - x(largest)) / sum;
    const double target = (k == label ? 1.0 - label_smoothing : 0.0) +
                          label_smoothing / static_cast<double>(logits.c);
    result.loss -= weight * target * (x(k) - x(largest) - std::log(sum)) / loss_divisor;
    result.dlogits.at(n, h, w, k) = weight * (probability - target) / loss_divisor;
  }
}

}  // namespace

Loss softmax_cross_entropy(const Map& logits, const std::vector<std::int32_t>& labels,
                           double loss_divisor, double label_smoothing) {
  Loss result{.dlogits = zeros_like(logits)};
  const std::int64_t pixels = logits.h * logits.w;
  for (std::int64_t n = 0; n < logits.n; ++n) {
    const auto* own = labels.data() + n * pixels;
    const auto counts = [&](std::int64_t p) { return pixels == 1 || own[p] != kUncounted; };
    double counted = 0.0;
    for (std::int64_t p = 0; p < pixels; ++p) counted += counts(p) ? 1.0 : 0.0;
    if (counted == 0.0) result.metric += 1.0;
    for (std::int64_t p = 0; p < pixels; ++p) {
      if (!counts(p)) continue;
      add_pixel(logits, n, p / logits.w, p % logits.w, own[p], 1.0 / counted, loss_divisor,
                label_smoothing, result);
    }
  }
  return result;
}

Loss binary_cross_entropy(const Map& x, const Values& targets, double loss_divisor) {
  Loss result{.dlogits = zeros_like(x)};
  const auto count = static_cast<double>(x.c);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double probability = 1.0 / (1.0 + std::exp(-x.values[i]));
    const double other = 1.0 / (1.0 + std::exp(x.values[i]));  // 1 - probability, not rounded
    result.loss -= (targets[i] * std::log(probability) + (1.0 - targets[i]) * std::log(other)) /
                   count / loss_divisor;
    result.metric += (x.values[i] >= 0.0) == (targets[i] >= 0.5) ? 1.0 / count : 0.0;
    result.dlogits.values[i] = (probability - targets[i]) / count / loss_divisor;
  }
  return result;
}

Loss mean_squared_error(const Map& x, const Values& targets, double loss_divisor) {
  Loss result{.dlogits = zeros_like(x)};
  const auto count = static_cast<double>(x.c);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double difference = x.values[i] - targets[i];
    result.loss += difference * difference / count / loss_divisor;
    result.metric += std::abs(difference) / count;
    result.dlogits.values[i] = 2.0 * difference / count / loss_divisor;
  }
  return result;
}

}  // namespace syncopate::reference
