#include "models/backend/cpu/weight_gradient.h"

#include <vector>

namespace syncopate {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
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
  weights_ = convolution.backward_weights(engine, algorithm);
}

std::size_t WeightGradient::packed_bytes() const {
  return aligned(weights_.diff_weights_desc().get_size());
}

std::size_t WeightGradient::joined_bytes() const {
  if (joined_.count == 1) return 0;
  return aligned(static_cast<std::size_t>(joined_.joined_elements()) * sizeof(float));
}

std::size_t WeightGradient::scratch_bytes() const {
  return packed_bytes() + joined_bytes() + weights_.scratchpad_desc().get_size();
}

void WeightGradient::bind(const dnnl::engine& engine, float* x, float* dy, float* gradient,
                          float* bias_gradient, std::byte* scratch) {
  gradient_ = gradient;
  joined_gradient_ = reinterpret_cast<float*>(scratch + packed_bytes());
  std::vector<BoundPrimitive::Argument> arguments = {
      {DNNL_ARG_SRC, convolution_.x(), x},
      {DNNL_ARG_DIFF_DST, convolution_.y(), dy},
      {DNNL_ARG_DIFF_WEIGHTS, weights_.diff_weights_desc(), scratch},
      {DNNL_ARG_SCRATCHPAD, weights_.scratchpad_desc(), scratch + packed_bytes() + joined_bytes()}};
  if (bias_gradient != nullptr) {
    arguments.push_back({DNNL_ARG_DIFF_BIAS, weights_.diff_bias_desc(), bias_gradient});
  }
  run_weights_ = BoundPrimitive(engine, dnnl::convolution_backward_weights(weights_), arguments);
  const auto target = convolution_.plain_format();
  const auto source = convolution_.without_padding(weights_.diff_weights_desc());
  const dnnl::reorder::primitive_desc reorder(engine, source, engine, target);
  run_unpack_ =
      BoundPrimitive(engine, dnnl::reorder(reorder),
                     {{DNNL_ARG_FROM, source, scratch},
                      {DNNL_ARG_TO, target, joined_.count > 1 ? joined_gradient_ : gradient}});
}

void WeightGradient::run() const {
  run_weights_.run();
  run_unpack_.run();
  if (joined_.count > 1) joined_.separate(joined_gradient_, gradient_);
}

}  // namespace syncopate
