// The CUDA kernels of the losses: a group of threads computes each sample, then one block adds the
// samples.
#include <climits>
#include <cmath>
#include <cstddef>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"
#include "models/backend/cuda/kernels/row_threads.h"

namespace syncopate::cuda {
namespace {

constexpr int kUncounted = 255;  // as in models/graph/graph.h, which nvcc does not compile

// RowLoss holds the contribution of one row of logits to the loss and to the main metric.
struct RowLoss {
  double loss;
  double metric;
};
__device__ inline RowLoss operator+(const RowLoss& a, const RowLoss& b) {
  return {a.loss + b.loss, a.metric + b.metric};
}

// Writes 1 / the number of the pixels that count of each sample; 0 where none does. One block per
// sample.
__global__ void __launch_bounds__(kThreads)
    count_pixels_kernel(const std::int32_t* labels, int pixels, float* weights) {
  __shared__ int counts[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int32_t* const own = labels + static_cast<std::int64_t>(blockIdx.x) * pixels;
  int count = 0;
  for (int p = thread; p < pixels; p += kThreads) count += own[p] != kUncounted ? 1 : 0;
  count = sum_of_row<kThreads>(count, counts);
  if (thread == 0) weights[blockIdx.x] = count == 0 ? 0.0F : 1.0F / static_cast<float>(count);
}

// A logit and its class.
struct Logit {
  float value;
  int index;
};

// The loss kernel uses kLanes threads per row; all threads of a block reach every barrier. weights:
// of each sample's rows; null for samples of one row.
template <int kLanes, typename T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(const T* logits, const std::int32_t* labels, std::int64_t n, int classes,
                         int pixels, const float* weights, float smoothing, double inverse_divisor,
                         const float* scale, T* dlogits, RowLoss* losses) {
  __shared__ Logit logits_of_block[kThreads];
  __shared__ float values[kThreads];
  const auto part = part_of_thread<kLanes, 1>(n, classes);
  const std::int64_t sample = part.row;
  const int lane = part.first;
  const std::int64_t first = sample * classes;

  // Finds the largest logit of a sample; of equal logits the first wins.
  Logit best = {-INFINITY, INT_MAX};
  for (int k = lane; k < part.end; k += kLanes) {
    const float value = to_float(logits[first + k]);
    if (value > best.value || best.index == INT_MAX) best = {value, k};
  }
  best = combined_in_row<kLanes>(best, logits_of_block, [](const Logit& a, const Logit& b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
  });
  const float largest = best.value;

  float sum = 0.0F;
  for (int k = lane; k < part.end; k += kLanes) sum += expf(to_float(logits[first + k]) - largest);
  sum = sum_of_row<kLanes>(sum, values);

  float all = 0.0F;  // the sum of the logits minus the largest, which label smoothing needs
  if (smoothing != 0.0F) {
    for (int k = lane; k < part.end; k += kLanes) all += to_float(logits[first + k]) - largest;
    all = sum_of_row<kLanes>(all, values);
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
      const auto spread = static_cast<double>(smoothing);
      expected = (1.0 - spread) * expected + spread * static_cast<double>(all) / classes;
    }
    const auto share = static_cast<double>(weight);
    losses[sample] = {(log(static_cast<double>(sum)) - expected) * share,
                      best.index == label ? share : 0.0};
  }
}

// Adds the rows' contributions to the loss with one block of threads.
__global__ void __launch_bounds__(kThreads)
    add_losses_kernel(const RowLoss* losses, std::int64_t n, double divisor, LossSums* sums) {
  __shared__ RowLoss totals[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  RowLoss total = {0.0, 0.0};
#pragma unroll 4
  for (std::int64_t sample = thread; sample < n; sample += kThreads) total = total + losses[sample];
  total = sum_of_row<kThreads>(total, totals);
  if (thread == 0) {
    sums->loss = total.loss / divisor;
    sums->metric = total.metric;
  }
}

// The loss kernel of numbers uses kLanes threads per sample; all threads of a block reach every
// barrier.
template <int kLanes, typename T>
__global__ void __launch_bounds__(kThreads)
    number_loss_kernel(const T* x, const float* targets, std::int64_t n, int values,
                       bool is_binary_cross_entropy, double inverse_divisor, const float* scale,
                       T* dx, RowLoss* losses) {
  __shared__ RowLoss sums[kThreads];
  const auto part = part_of_thread<kLanes, 1>(n, values);
  const double scaled = scale == nullptr ? 1.0 : static_cast<double>(*scale);
  const auto factor = static_cast<float>(scaled * inverse_divisor / values);

  RowLoss sum = {0.0, 0.0};
  for (int k = part.first; k < part.end; k += kLanes) {
    const std::int64_t at = part.row * values + k;
    const float value = to_float(x[at]);
    const float target = targets[at];
    float slope = 2.0F * (value - target);
    if (is_binary_cross_entropy) {
      const float decay = expf(-fabsf(value));  // does not overflow
      sum.loss += static_cast<double>(fmaxf(value, 0.0F) - value * target) +
                  log1p(static_cast<double>(decay));
      sum.metric += (value >= 0.0F) == (target >= 0.5F) ? 1.0 : 0.0;
      slope = (value >= 0.0F ? 1.0F : decay) / (1.0F + decay) - target;
    } else {
      const auto difference = static_cast<double>(value - target);
      sum.loss += difference * difference;
      sum.metric += fabs(difference);
    }
    if (dx != nullptr) dx[at] = from_float<T>(slope * factor);
  }
  sum = sum_of_row<kLanes>(sum, sums);
  if (part.first == 0 && part.row < n) losses[part.row] = {sum.loss / values, sum.metric / values};
}

// The scratch memory: the contribution of every row, then the weight of every sample.
std::int64_t loss_bytes(const LossShape& shape) {
  return shape.rows() * static_cast<std::int64_t>(sizeof(RowLoss));
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
  const auto start = [&](auto lanes) {
    launch({"softmax_cross_entropy", blocks_for_rows<lanes.value>(shape.rows()), kThreads, stream},
           cross_entropy_kernel<lanes.value, T>, logits, labels, shape.rows(), shape.classes,
           shape.pixels, weights, shape.smoothing, 1.0 / shape.divisor, scale, dlogits, losses);
  };
  if (shape.n > 0 && shape.classes <= 8) {
    start(std::integral_constant<int, 8>{});
  } else if (shape.n > 0 && shape.classes <= kThreads) {
    start(std::integral_constant<int, 32>{});
  } else if (shape.n > 0) {
    start(std::integral_constant<int, kThreads>{});
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
  const auto start = [&](auto lanes) {
    launch({"number_loss", blocks_for_rows<lanes.value>(shape.n), kThreads, stream},
           number_loss_kernel<lanes.value, T>, x, targets, shape.n, shape.values,
           shape.is_binary_cross_entropy, 1.0 / shape.divisor, scale, dx, losses);
  };
  if (shape.n > 0 && shape.values <= 8) {
    start(std::integral_constant<int, 8>{});
  } else if (shape.n > 0) {
    start(std::integral_constant<int, kThreads>{});
  }
  launch({"add_losses", dim3(1), kThreads, stream}, add_losses_kernel, losses, shape.n,
         shape.divisor, sums);
}

std::int64_t number_loss_scratch(const NumberLossShape& shape) {
  return shape.n * static_cast<std::int64_t>(sizeof(RowLoss));
}

template decltype(softmax_cross_entropy<float>) softmax_cross_entropy<float>;
template decltype(softmax_cross_entropy<__nv_bfloat16>) softmax_cross_entropy<__nv_bfloat16>;
template decltype(softmax_cross_entropy<__half>) softmax_cross_entropy<__half>;
template decltype(number_loss<float>) number_loss<float>;
template decltype(number_loss<__nv_bfloat16>) number_loss<__nv_bfloat16>;
template decltype(number_loss<__half>) number_loss<__half>;

}  // namespace syncopate::cuda
