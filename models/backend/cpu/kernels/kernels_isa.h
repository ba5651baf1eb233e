// The functions behind one instruction set's table, in that set's namespace; see kernels.h for what
// each does.
#pragma once

#include "models/backend/cpu/kernels/kernels.h"

namespace syncopate::SYNCOPATE_ISA {

void pixels_to_planar(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                      int channels, const float* scale, const float* shift);
void pixels_to_interleaved(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                           int channels, const float* scale, const float* shift);
void batch_norm_statistics(const float* x, BlockedShape shape, double* sums);
void batch_norm_apply(const float* x, const float* added, float* y, BlockedShape shape,
                      const float* scale, const float* shift, bool relu);
void batch_norm_backward_sums(const BatchNormBackward& args, BlockedShape shape, double* sums);
void batch_norm_backward_apply(const BatchNormInputGradient& args, BlockedShape shape);
void relu(const float* x, float* y, std::int64_t count);
void relu_backward(const float* dy, const float* y, float* dx, std::int64_t count);
void add(const float* a, const float* b, float* y, std::int64_t count);
void max_pool(const float* x, float* y, std::uint8_t* winner, const PoolShape& shape);
void max_pool_backward(const float* dy, const std::uint8_t* winner, float* dx,
                       const PoolShape& shape);
void global_average_pool(const float* x, float* y, BlockedShape shape, std::int64_t channels);
void global_average_pool_backward(const float* dy, float* dx, BlockedShape shape,
                                  std::int64_t channels);
void blocked_to_interleaved(const float* x, float* y, BlockedShape shape, std::int64_t channels);
void interleaved_to_blocked(const float* x, float* y, BlockedShape shape, std::int64_t channels);
void shortcut(const float* x, float* y, const PoolShape& shape, std::int64_t in_blocks);
void shortcut_backward(const float* dy, float* dx, const PoolShape& shape, std::int64_t in_blocks);
void add_bias(float* y, const float* bias, std::int64_t n, std::int64_t features, bool relu);
void bias_gradient(const float* dy, float* dbias, std::int64_t n, std::int64_t features);
void conv_pool_pack(const float* weight, float* packed, const ConvPoolShape& shape);
void conv_pool(const float* x, const float* packed, const float* bias, float* y,
               std::uint8_t* winner, const ConvPoolShape& shape);
void conv_pool_backward(const float* x, const float* dy, const std::uint8_t* winner, float* dweight,
                        float* dbias, float* scratch, const ConvPoolShape& shape);

}  // namespace syncopate::SYNCOPATE_ISA
