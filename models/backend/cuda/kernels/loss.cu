// The CUDA kernels of softmax and cross entropy: a group of threads computes each sample, then one
// block adds the samples.
#include <climits>
#include <cmath>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// SampleLoss holds the contribution of one sample to the loss.
struct SampleLoss {
  double loss;
  std::int64_t correct;
};

// The loss kernel uses kLanes threads per sample; all threads of a block reach every barrier.
template <int kLanes, typename T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(const T* logits, const std::int32_t* labels, std::int64_t n, int classes,
                         float smoothing, double inverse_divisor, const float* scale, T* dlogits,
                         SampleLoss* losses) {
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
  if (dlogits != nullptr) {
    const double scaled = scale == nullptr ? 1.0 : static_cast<double>(*scale);
    const auto factor = static_cast<float>(scaled * inverse_divisor);
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
    losses[sample] = {log(static_cast<double>(sum)) - expected, largest_index == label ? 1 : 0};
  }
}

// Adds the samples' contributions to the loss with one block of threads.
__global__ void __launch_bounds__(kThreads)
    add_losses_kernel(const SampleLoss* losses, std::int64_t n, double divisor, LossSums* sums) {
  __shared__ double totals[kThreads];
  __shared__ std::int64_t corrects[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  double total = 0.0;
  std::int64_t correct = 0;
#pragma unroll 4
  for (std::int64_t sample = thread; sample < n; sample += kThreads) {
    total += losses[sample].loss;
    correct += losses[sample].correct;
  }
  totals[thread] = total;
  corrects[thread] = correct;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      totals[thread] += totals[thread + half];
      corrects[thread] += corrects[thread + half];
    }
    __syncthreads();
  }
  if (thread == 0) {
    sums->loss = totals[0] / divisor;
    sums->num_correct = corrects[0];
  }
}

template <int kLanes, typename T>
void launch_cross_entropy(const T* logits, const std::int32_t* labels, std::int64_t n, int classes,
                          float smoothing, double inverse_divisor, const float* scale, T* dlogits,
                          SampleLoss* losses, cudaStream_t stream) {
  const std::int64_t samples = kThreads / kLanes;
  const auto blocks = static_cast<unsigned>((n + samples - 1) / samples);
  launch({"softmax_cross_entropy", dim3(blocks), kThreads, stream}, cross_entropy_kernel<kLanes, T>,
         logits, labels, n, classes, smoothing, inverse_divisor, scale, dlogits, losses);
}

}  // namespace

template <typename T>
void softmax_cross_entropy(const T* logits, const std::int32_t* labels, std::int64_t n, int classes,
                           float smoothing, double divisor, const float* scale, T* dlogits,
                           LossSums* sums, void* scratch, cudaStream_t stream) {
  auto* const losses = static_cast<SampleLoss*>(scratch);
  const double inverse_divisor = 1.0 / divisor;
  if (n > 0 && classes <= kThreads) {
    launch_cross_entropy<32>(logits, labels, n, classes, smoothing, inverse_divisor, scale, dlogits,
                             losses, stream);
  } else if (n > 0) {
    launch_cross_entropy<kThreads>(logits, labels, n, classes, smoothing, inverse_divisor, scale,
                                   dlogits, losses, stream);
  }
  launch({"add_losses", dim3(1), kThreads, stream}, add_losses_kernel, losses, n, divisor, sums);
}

std::int64_t softmax_cross_entropy_scratch(std::int64_t n) {
  return n * static_cast<std::int64_t>(sizeof(SampleLoss));
}

// Instantiates the loss functions for float, __nv_bfloat16 and __half.
template void softmax_cross_entropy(const float*, const std::int32_t*, std::int64_t, int, float,
                                    double, const float*, float*, LossSums*, void*, cudaStream_t);
template void softmax_cross_entropy(const __nv_bfloat16*, const std::int32_t*, std::int64_t, int,
                                    float, double, const float*, __nv_bfloat16*, LossSums*, void*,
                                    cudaStream_t);
template void softmax_cross_entropy(const __half*, const std::int32_t*, std::int64_t, int, float,
                                    double, const float*, __half*, LossSums*, void*, cudaStream_t);

}  // namespace syncopate::cuda
