// The CUDA kernels of the losses: a group of threads computes each sample, then one block adds the
// samples.
#include <climits>
#include <cmath>
#include <cstddef>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

constexpr int kUncounted = 255;  // as in models/graph/graph.h, which nvcc does not compile

// RowLoss holds the contribution of one row of logits to the loss and to the main metric.
struct RowLoss {
  double loss;
  double metric;
};

// Writes 1 / the number of the pixels that count of each sample; 0 where none does. One block per
// sample.
__global__ void __launch_bounds__(kThreads)
    count_pixels_kernel(const std::int32_t* labels, int pixels, float* weights) {
  __shared__ int counts[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int32_t* const own = labels + static_cast<std::int64_t>(blockIdx.x) * pixels;
  int count = 0;
  for (int p = thread; p < pixels; p += kThreads) count += own[p] != kUncounted ? 1 : 0;
  counts[thread] = count;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) counts[thread] += counts[thread + half];
    __syncthreads();
  }
  if (thread == 0) {
    weights[blockIdx.x] = counts[0] == 0 ? 0.0F : 1.0F / static_cast<float>(counts[0]);
  }
}

// The loss kernel uses kLanes threads per row; all threads of a block reach every barrier. weights:
// of each sample's rows; null for samples of one row.
template <int kLanes, typename T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(const T* logits, const std::int32_t* labels, std::int64_t n, int classes,
                         int pixels, const float* weights, float smoothing, double inverse_divisor,
                         const float* scale, T* dlogits, RowLoss* losses) {
  __shared__ float values[kThreads];
  __shared__ int indices[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kLanes;
  const int leader = thread - lane;
  const std::int64_t sample =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kLanes) + thread / kLanes;
  const int end = sample < n ? classes : 0;
  const std::int64_t first = sample * classes;

  // Finds the largest logit of a sample; of equal logits the first wins.
  float best = -INFINITY;
  int best_index = INT_MAX;
  for (int k = lane; k < end; k += kLanes) {
    const float value = to_float(logits[first + k]);
    if (value > best || best_index == INT_MAX) {
      best = value;
      best_index = k;
    }
  }
  values[thread] = best;
  indices[thread] = best_index;
  __syncthreads();
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) {
      const float other = values[thread + half];
      const int other_index = indices[thread + half];
      if (other > values[thread] || (other == values[thread] && other_index < indices[thread])) {
        values[thread] = other;
        indices[thread] = other_index;
      }
    }
    __syncthreads();
  }
  const float largest = values[leader];
  const int largest_index = indices[leader];
  __syncthreads();

  float sum = 0.0F;
  for (int k = lane; k < end; k += kLanes) sum += expf(to_float(logits[first + k]) - largest);
  values[thread] = sum;
  __syncthreads();
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) values[thread] += values[thread + half];
    __syncthreads();
  }
  sum = values[leader];

  float all = 0.0F;  // the sum of the logits minus the largest, which label smoothing needs
  if (smoothing != 0.0F) {
    __syncthreads();
    for (int k = lane; k < end; k += kLanes) all += to_float(logits[first + k]) - largest;
    values[thread] = all;
    __syncthreads();
    for (int half = kLanes / 2; half > 0; half /= 2) {
      if (lane < half) values[thread] += values[thread + half];
      __syncthreads();
    }
    all = values[leader];
  }

  if (sample >= n) return;
  const int label = labels[sample];
  const float weight = weights == nullptr ? 1.0F : weights[sample / pixels];
  if (weights != nullptr && label == kUncounted) {
    if (dlogits != nullptr) {
      for (int k = lane; k < classes; k += kLanes) dlogits[first + k] = from_float<T>(0.0F);
    }
    // A sample without a pixel that counts has the accuracy 1, which its first pixel gives.
    if (lane == 0) {
      losses[sample] = {0.0, weight == 0.0F && sample % pixels == 0 ? 1.0 : 0.0};
    }
    return;
  }
  if (dlogits != nullptr) {
    const double scaled = scale == nullptr ? 1.0 : static_cast<double>(*scale);
    const auto factor = static_cast<float>(scaled * inverse_divisor * static_cast<double>(weight));
    const float other = smoothing / static_cast<float>(classes);  // target of the other classes
    const float own = 1.0F - smoothing + other;
    for (int k = lane; k < classes; k += kLanes) {
      const float softmax = expf(to_float(logits[first + k]) - largest) / sum;
      dlogits[first + k] = from_float<T>((softmax - (k == label ? own : other)) * factor);
    }
  }
  if (lane == 0) {
    // A label outside the classes makes the loss NaN, so that no memory beyond the logits is read.
    const double chosen = label >= 0 && label < classes
                              ? static_cast<double>(to_float(logits[first + label]))
                              : static_cast<double>(NAN);
    double expected = chosen - static_cast<double>(largest);
    if (smoothing != 0.0F) {
      const auto part = static_cast<double>(smoothing);
      expected = (1.0 - part) * expected + part * static_cast<double>(all) / classes;
    }
    const auto part = static_cast<double>(weight);
    losses[sample] = {(log(static_cast<double>(sum)) - expected) * part,
                      largest_index == label ? part : 0.0};
  }
}

// Adds the rows' contributions to the loss with one block of threads.
__global__ void __launch_bounds__(kThreads)
    add_losses_kernel(const RowLoss* losses, std::int64_t n, double divisor, LossSums* sums) {
  __shared__ double totals[kThreads];
  __shared__ double metrics[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  double total = 0.0;
  double metric = 0.0;
#pragma unroll 4
  for (std::int64_t sample = thread; sample < n; sample += kThreads) {
    total += losses[sample].loss;
    metric += losses[sample].metric;
  }
  totals[thread] = total;
  metrics[thread] = metric;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      totals[thread] += totals[thread + half];
      metrics[thread] += metrics[thread + half];
    }
    __syncthreads();
  }
  if (thread == 0) {
    sums->loss = totals[0] / divisor;
    sums->metric = metrics[0];
  }
}

// The loss kernel of numbers uses kLanes threads per sample; all threads of a block reach every
// barrier.
template <int kLanes, typename T>
__global__ void __launch_bounds__(kThreads)
    number_loss_kernel(const T* x, const float* targets, std::int64_t n, int values,
                       bool is_binary_cross_entropy, double inverse_divisor, const float* scale,
                       T* dx, RowLoss* losses) {
  __shared__ double sums[kThreads];
  __shared__ double metrics[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kLanes;
  const std::int64_t sample =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kLanes) + thread / kLanes;
  const int end = sample < n ? values : 0;
  const double scaled = scale == nullptr ? 1.0 : static_cast<double>(*scale);
  const auto factor = static_cast<float>(scaled * inverse_divisor / values);

  double sum = 0.0;
  double metric = 0.0;
  for (int k = lane; k < end; k += kLanes) {
    const std::int64_t at = sample * values + k;
    const float value = to_float(x[at]);
    const float target = targets[at];
    float slope = 2.0F * (value - target);
    if (is_binary_cross_entropy) {
      const float decay = expf(-fabsf(value));  // does not overflow
      sum += static_cast<double>(fmaxf(value, 0.0F) - value * target) +
             log1p(static_cast<double>(decay));
      metric += (value >= 0.0F) == (target >= 0.5F) ? 1.0 : 0.0;
      slope = (value >= 0.0F ? 1.0F : decay) / (1.0F + decay) - target;
    } else {
      const auto difference = static_cast<double>(value - target);
      sum += difference * difference;
      metric += fabs(difference);
    }
    if (dx != nullptr) dx[at] = from_float<T>(slope * factor);
  }
  sums[thread] = sum;
  metrics[thread] = metric;
  __syncthreads();
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) {
      sums[thread] += sums[thread + half];
      metrics[thread] += metrics[thread + half];
    }
    __syncthreads();
  }
  if (lane == 0 && sample < n) losses[sample] = {sums[thread] / values, metrics[thread] / values};
}

// The scratch memory: the contribution of every row, then the weight of every sample.
std::int64_t loss_bytes(const LossShape& shape) {
  return shape.rows() * static_cast<std::int64_t>(sizeof(RowLoss));
}

template <int kLanes, typename T>
void launch_cross_entropy(const LossShape& shape, const T* logits, const std::int32_t* labels,
                          const float* weights, const float* scale, T* dlogits, RowLoss* losses,
                          cudaStream_t stream) {
  const std::int64_t rows = kThreads / kLanes;  // of a block
  const auto blocks = static_cast<unsigned>((shape.rows() + rows - 1) / rows);
  launch({"softmax_cross_entropy", dim3(blocks), kThreads, stream}, cross_entropy_kernel<kLanes, T>,
         logits, labels, shape.rows(), shape.classes, shape.pixels, weights, shape.smoothing,
         1.0 / shape.divisor, scale, dlogits, losses);
}

template <int kLanes, typename T>
void launch_number_loss(const NumberLossShape& shape, const T* x, const float* targets,
                        const float* scale, T* dx, RowLoss* losses, cudaStream_t stream) {
  const std::int64_t samples = kThreads / kLanes;  // of a block
  const auto blocks = static_cast<unsigned>((shape.n + samples - 1) / samples);
  launch({"number_loss", dim3(blocks), kThreads, stream}, number_loss_kernel<kLanes, T>, x, targets,
         shape.n, shape.values, shape.is_binary_cross_entropy, 1.0 / shape.divisor, scale, dx,
         losses);
}

}  // namespace

template <typename T>
void softmax_cross_entropy(const LossShape& shape, const T* logits, const std::int32_t* labels,
                           const float* scale, T* dlogits, LossSums* sums, void* scratch,
                           cudaStream_t stream) {
  auto* const losses = static_cast<RowLoss*>(scratch);
  float* weights = nullptr;
  if (shape.pixels > 0 && shape.n > 0) {
    weights = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + loss_bytes(shape));
    launch({"count_pixels", dim3(static_cast<unsigned>(shape.n)), kThreads, stream},
           count_pixels_kernel, labels, shape.pixels, weights);
  }
  if (shape.n > 0 && shape.classes <= 8) {
    launch_cross_entropy<8>(shape, logits, labels, weights, scale, dlogits, losses, stream);
  } else if (shape.n > 0 && shape.classes <= kThreads) {
    launch_cross_entropy<32>(shape, logits, labels, weights, scale, dlogits, losses, stream);
  } else if (shape.n > 0) {
    launch_cross_entropy<kThreads>(shape, logits, labels, weights, scale, dlogits, losses, stream);
  }
  launch({"add_losses", dim3(1), kThreads, stream}, add_losses_kernel, losses, shape.rows(),
         shape.divisor, sums);
}

std::int64_t softmax_cross_entropy_scratch(const LossShape& shape) {
  return loss_bytes(shape) + (shape.pixels > 0 ? shape.n * std::int64_t{sizeof(float)} : 0);
}

template <typename T>
void number_loss(const NumberLossShape& shape, const T* x, const float* targets, const float* scale,
                 T* dx, LossSums* sums, void* scratch, cudaStream_t stream) {
  auto* const losses = static_cast<RowLoss*>(scratch);
  if (shape.n > 0 && shape.values <= 8) {
    launch_number_loss<8>(shape, x, targets, scale, dx, losses, stream);
  } else if (shape.n > 0) {
    launch_number_loss<kThreads>(shape, x, targets, scale, dx, losses, stream);
  }
  launch({"add_losses", dim3(1), kThreads, stream}, add_losses_kernel, losses, shape.n,
         shape.divisor, sums);
}

std::int64_t number_loss_scratch(const NumberLossShape& shape) {
  return shape.n * static_cast<std::int64_t>(sizeof(RowLoss));
}

// Instantiates the loss functions for float, __nv_bfloat16 and __half.
template void softmax_cross_entropy(const LossShape&, const float*, const std::int32_t*,
                                    const float*, float*, LossSums*, void*, cudaStream_t);
template void softmax_cross_entropy(const LossShape&, const __nv_bfloat16*, const std::int32_t*,
                                    const float*, __nv_bfloat16*, LossSums*, void*, cudaStream_t);
template void softmax_cross_entropy(const LossShape&, const __half*, const std::int32_t*,
                                    const float*, __half*, LossSums*, void*, cudaStream_t);
template void number_loss(const NumberLossShape&, const float*, const float*, const float*, float*,
                          LossSums*, void*, cudaStream_t);
template void number_loss(const NumberLossShape&, const __nv_bfloat16*, const float*, const float*,
                          __nv_bfloat16*, LossSums*, void*, cudaStream_t);
template void number_loss(const NumberLossShape&, const __half*, const float*, const float*,
                          __half*, LossSums*, void*, cudaStream_t);

}  // namespace syncopate::cuda
