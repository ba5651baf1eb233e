#include "models/backend/cpu/convolution.h"

namespace syncopate {
namespace {

using dnnl::memory;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

dnnl::algorithm to_onednn(ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kWinograd ? dnnl::algorithm::convolution_winograd
                                               : dnnl::algorithm::convolution_direct;
}

// The caller supplies scratch memory for primitives, because oneDNN crashes with scratch memory of
// its own when a primitive runs on another thread than the one that made it.
dnnl::primitive_attr callers_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

memory::desc activation(const memory::dims& dims, Maps maps, bool planar, int block) {
  const auto tag = maps == Maps::kPlain ? memory::format_tag::nhwc
                   : planar             ? memory::format_tag::nchw
                   : block == 16        ? memory::format_tag::nChw16c
                                        : memory::format_tag::nChw8c;
  return {dims, memory::data_type::f32, tag};
}

std::int64_t out_size(std::int64_t size, int padding, int kernel, int stride) {
  return (size + padding - kernel) / stride + 1;
}

}  // namespace

memory::desc Convolution::x(Maps maps) const {
  return activation({problem.n, channels(), problem.h, problem.w}, maps, planar_input, block);
}

memory::dims Convolution::weight_dims(std::int64_t channels) const {
  const std::int64_t groups = problem.groups;
  if (groups == 1) return {problem.k, channels, problem.kernel_h, problem.kernel_w};
  return {groups, problem.k / groups, channels / groups, problem.kernel_h, problem.kernel_w};
}

memory::desc Convolution::plain_format_of(std::int64_t channels) const {
  return {weight_dims(channels), memory::data_type::f32,
          problem.groups == 1 ? memory::format_tag::ohwi : memory::format_tag::gohwi};
}

memory::desc Convolution::without_padding(memory::desc format) const {
  if (problem.groups > 1) return format;
  format.data.dims[1] = problem.c;  // the padded size stays
  return format;
}

memory::desc Convolution::y(Maps maps) const {
  return activation({problem.n, problem.k,
                     out_size(problem.h, problem.pad.rows(), problem.kernel_h, problem.stride),
                     out_size(problem.w, problem.pad.columns(), problem.kernel_w, problem.stride)},
                    maps, false, block);
}

memory::desc Convolution::bias_format() const {
  return {{problem.k}, memory::data_type::f32, memory::format_tag::x};
}

Forward::primitive_desc Convolution::forward_with(const dnnl::engine& engine,
                                                  ConvAlgorithm algorithm,
                                                  const dnnl::primitive_attr& attributes,
                                                  Maps maps) const {
  // Evaluation uses oneDNN's propagation kind forward_training, too. With forward_inference, oneDNN
  // could not convert the arena's weights to the format that its Winograd convolution requires.
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  const memory::desc weight = any_format(weight_dims(channels()));
  const auto desc = bias
                        ? Forward::desc(kKind, to_onednn(algorithm), x(maps), weight, bias_format(),
                                        y(maps), strides(), first_padding(), last_padding())
                        : Forward::desc(kKind, to_onednn(algorithm), x(maps), weight, y(maps),
                                        strides(), first_padding(), last_padding());
  return {desc, attributes, engine};
}

Forward::primitive_desc Convolution::forward(const dnnl::engine& engine,
                                             ConvAlgorithm algorithm) const {
  dnnl::primitive_attr attributes = callers_scratchpad();
  if (relu) {
    dnnl::post_ops after;
    after.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    attributes.set_post_ops(after);
  }
  return forward_with(engine, algorithm, attributes);
}

BackwardData::primitive_desc Convolution::backward_data(const dnnl::engine& engine,
                                                        ConvAlgorithm algorithm) const {
  const dnnl::primitive_attr attributes = callers_scratchpad();
  const BackwardData::desc desc(to_onednn(algorithm), x(), any_format(weight_dims(channels())), y(),
                                strides(), first_padding(), last_padding());
  return {desc, attributes, engine, forward_with(engine, algorithm, attributes)};
}

BackwardWeights::primitive_desc Convolution::backward_weights(const dnnl::engine& engine,
                                                              ConvAlgorithm algorithm,
                                                              Maps maps) const {
  const dnnl::primitive_attr attributes = callers_scratchpad();
  const memory::desc weight = any_format(weight_dims(channels()));
  const auto desc =
      bias ? BackwardWeights::desc(to_onednn(algorithm), x(maps), weight, bias_format(), y(maps),
                                   strides(), first_padding(), last_padding())
           : BackwardWeights::desc(to_onednn(algorithm), x(maps), weight, y(maps), strides(),
                                   first_padding(), last_padding());
  return {desc, attributes, engine, forward_with(engine, algorithm, attributes, maps)};
}

}  // namespace syncopate
