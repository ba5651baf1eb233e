// Defines the kernel table of one instruction set; compiled once per instruction set.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {

extern const CpuKernels kCpuKernels;
const CpuKernels kCpuKernels = {
    .block = kBlock,
    .pixels_to_planar = pixels_to_planar,
    .pixels_to_interleaved = pixels_to_interleaved,
    .batch_norm_statistics = batch_norm_statistics,
    .batch_norm_apply = batch_norm_apply,
    .batch_norm_backward_sums = batch_norm_backward_sums,
    .batch_norm_backward_apply = batch_norm_backward_apply,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .dropout_mask = dropout_mask,
    .dropout = dropout,
    .relu = relu,
    .relu_backward = relu_backward,
    .add = add,
    .multiply = multiply,
    .multiply_channels = multiply_channels,
    .multiply_channels_gradient = multiply_channels_gradient,
    .activate = activate,
    .activate_backward = activate_backward,
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .clear_padding = clear_padding,
    .copy_channels = copy_channels,
    .max_pool = max_pool,
    .max_pool_backward = max_pool_backward,
    .average_pool = average_pool,
    .average_pool_backward = average_pool_backward,
    .upsample = upsample,
    .upsample_backward = upsample_backward,
    .global_average_pool = global_average_pool,
    .global_average_pool_backward = global_average_pool_backward,
    .blocked_to_interleaved = blocked_to_interleaved,
    .interleaved_to_blocked = interleaved_to_blocked,
    .shortcut = shortcut,
    .shortcut_backward = shortcut_backward,
    .add_bias = add_bias,
    .bias_gradient = bias_gradient,
    .conv_pool_pack = conv_pool_pack,
    .conv_pool = conv_pool,
    .conv_pool_backward = conv_pool_backward,
};

}  // namespace syncopate::SYNCOPATE_ISA
