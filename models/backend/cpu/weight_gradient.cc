#include "models/backend/cpu/weight_gradient.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace syncopate {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

bool is_reference(const dnnl::convolution_backward_weights::primitive_desc& kernel) {
  return std::string_view(kernel.impl_info_str()).starts_with("ref");
}

}  // namespace

float* packed_weight(const GroupContext& context, int parameter, const JoinedGroups& joined,
                     const Convolution& convolution, const dnnl::memory::desc& format) {
  return context.packed.request(parameter, joined, convolution.plain_format().data,
                                convolution.without_padding(format).data);
}

void WeightGradient::describe(const dnnl::engine& engine, const Convolution& convolution,
                              const JoinedGroups& joined, ConvAlgorithm algorithm) {
  convolution_ = convolution;
  joined_ = joined;
  maps_ = Maps::kBlocked;
  weights_ = convolution.backward_weights(engine, algorithm);
  // For some maps in blocks oneDNN has only its reference code, a hundred times slower than that
  // for plain maps: on processors with AVX2, of a 3x3 kernel on maps of 2x2.
  if (!is_reference(weights_)) return;
  const auto plain = convolution.backward_weights(engine, ConvAlgorithm::kDirect, Maps::kPlain);
  if (is_reference(plain)) return;
  maps_ = Maps::kPlain;
  weights_ = plain;
}

std::size_t WeightGradient::packed_bytes() const {
  return aligned(weights_.diff_weights_desc().get_size());
}

std::int64_t WeightGradient::weight_rows() const {
  const ConvProblem& problem = convolution_.problem;
  return problem.k * problem.kernel_h * problem.kernel_w;
}

std::size_t WeightGradient::padded_bytes() const {
  if (!convolution_.pads_channels()) return 0;
  return aligned(static_cast<std::size_t>(weight_rows() * convolution_.channels()) * sizeof(float));
}

std::size_t WeightGradient::joined_bytes() const {
  if (joined_.count == 1) return 0;
  return aligned(static_cast<std::size_t>(joined_.joined_elements()) * sizeof(float));
}

std::size_t WeightGradient::map_bytes(const dnnl::memory::desc& map) const {
  return maps_ == Maps::kBlocked ? 0 : aligned(map.get_size());
}

std::size_t WeightGradient::scratch_bytes() const {
  return packed_bytes() + padded_bytes() + joined_bytes() + map_bytes(convolution_.x(maps_)) +
         map_bytes(convolution_.y(maps_)) + weights_.scratchpad_desc().get_size();
}

void WeightGradient::bind(const dnnl::engine& engine, float* x, float* dy, float* gradient,
                          float* bias_gradient, std::byte* scratch) {
  gradient_ = gradient;
  std::byte* rest = scratch + packed_bytes();
  padded_gradient_ = reinterpret_cast<float*>(rest);
  rest += padded_bytes();
  joined_gradient_ = reinterpret_cast<float*>(rest);
  rest += joined_bytes();
  // Returns the map in the format that the kernel reads.
  const auto map = [&](const dnnl::memory::desc& blocked, const dnnl::memory::desc& plain,
                       float* data, BoundPrimitive& run) -> void* {
    if (maps_ == Maps::kBlocked) return data;
    void* const copy = rest;
    rest += map_bytes(plain);
    const dnnl::reorder::primitive_desc reorder(engine, blocked, engine, plain);
    run = BoundPrimitive(engine, dnnl::reorder(reorder),
                         {{DNNL_ARG_FROM, blocked, data}, {DNNL_ARG_TO, plain, copy}});
    return copy;
  };
  void* const x_read = map(convolution_.x(), convolution_.x(maps_), x, run_x_);
  void* const dy_read = map(convolution_.y(), convolution_.y(maps_), dy, run_dy_);
  std::vector<BoundPrimitive::Argument> arguments = {
      {DNNL_ARG_SRC, convolution_.x(maps_), x_read},
      {DNNL_ARG_DIFF_DST, convolution_.y(maps_), dy_read},
      {DNNL_ARG_DIFF_WEIGHTS, weights_.diff_weights_desc(), scratch},
      {DNNL_ARG_SCRATCHPAD, weights_.scratchpad_desc(), rest}};
  if (bias_gradient != nullptr) {
    arguments.push_back({DNNL_ARG_DIFF_BIAS, weights_.diff_bias_desc(), bias_gradient});
  }
  run_weights_ = BoundPrimitive(engine, dnnl::convolution_backward_weights(weights_), arguments);
  const auto source = weights_.diff_weights_desc();
  const auto target = convolution_.padded_plain_format();
  const dnnl::reorder::primitive_desc reorder(engine, source, engine, target);
  float* const unpacked = convolution_.pads_channels() ? padded_gradient_
                          : joined_.count > 1          ? joined_gradient_
                                                       : gradient;
  run_unpack_ = BoundPrimitive(engine, dnnl::reorder(reorder),
                               {{DNNL_ARG_FROM, source, scratch}, {DNNL_ARG_TO, target, unpacked}});
}

void WeightGradient::run() const {
  if (maps_ == Maps::kPlain) {
    run_x_.run();
    run_dy_.run();
  }
  run_weights_.run();
  run_unpack_.run();
  if (convolution_.pads_channels()) {
    const std::int64_t channels = convolution_.problem.c;
    float* const into = joined_.count > 1 ? joined_gradient_ : gradient_;
    for (std::int64_t row = 0; row < weight_rows(); ++row) {
      std::copy_n(padded_gradient_ + row * convolution_.channels(), channels,
                  into + row * channels);
    }
  }
  if (joined_.count > 1) joined_.separate(joined_gradient_, gradient_);
}

}  // namespace syncopate
