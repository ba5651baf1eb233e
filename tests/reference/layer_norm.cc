// Implements layer norm in double precision. Source: Ba et al. 2016, section 3.
#include <cmath>

#include "tests/reference/operations.h"

namespace syncopate::reference {
namespace {

// The channels of one pixel, normalised, and the inverse of their standard deviation.
struct Row {
  Values normalised;
  double inverse = 0.0;
};

Row row_at(const Map& x, std::size_t first, const LayerNormOp& operation) {
  const auto channels = static_cast<std::size_t>(x.c);
  double mean = 0.0;
  double variance = 0.0;
  for (std::size_t c = 0; c < channels; ++c) mean += x.values[first + c];
  mean /= static_cast<double>(channels);
  for (std::size_t c = 0; c < channels; ++c) variance += std::pow(x.values[first + c] - mean, 2);
  variance /= static_cast<double>(channels);
  Row row{.inverse = 1.0 / std::sqrt(variance + static_cast<double>(operation.epsilon))};
  for (std::size_t c = 0; c < channels; ++c) {
    row.normalised.push_back((x.values[first + c] - mean) * row.inverse);
  }
  return row;
}

}  // namespace

Map layer_norm(const Map& x, const LayerNormOp& operation, const Values& weight,
               const Values& bias) {
  Map y = x;
  for (std::size_t first = 0; first < x.values.size(); first += weight.size()) {
    const Row row = row_at(x, first, operation);
    for (std::size_t c = 0; c < weight.size(); ++c) {
      y.values[first + c] = row.normalised[c] * weight[c] + bias[c];
    }
  }
  return y;
}

BatchNormGradients layer_norm_backward(const Map& x, const LayerNormOp& operation,
                                       const Values& weight, const Map& dy) {
  BatchNormGradients gradients{x, Values(weight.size()), Values(weight.size())};
  const auto channels = static_cast<double>(weight.size());
  for (std::size_t first = 0; first < x.values.size(); first += weight.size()) {
    const Row row = row_at(x, first, operation);
    double mean = 0.0;
    double product_mean = 0.0;
    for (std::size_t c = 0; c < weight.size(); ++c) {
      const double gradient = dy.values[first + c];
      gradients.scale[c] += gradient * row.normalised[c];
      gradients.shift[c] += gradient;
      mean += gradient * weight[c] / channels;
      product_mean += gradient * weight[c] * row.normalised[c] / channels;
    }
    for (std::size_t c = 0; c < weight.size(); ++c) {
      gradients.x.values[first + c] = row.inverse * (dy.values[first + c] * weight[c] - mean -
                                                     row.normalised[c] * product_mean);
    }
  }
  return gradients;
}

}  // namespace syncopate::reference
