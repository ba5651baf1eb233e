// Delay compensation: a gradient corrected for what has happened to the values since they were
// read. Element by element, so that pieces cut anyhow give the same bits.
// Source: Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay compensation",
// eq. 10 and 14.
#pragma once

#include <span>

namespace syncopate::ps {

struct DelayCompensation {
  float lambda = 0.04F;
  float mean_square_decay = 0.95F;
  // [bucket] f32: what the worker computed with. Empty: the values have not changed since, or it is
  // not known; the gradient stays as it is.
  std::span<const float> read;
  // [bucket] f32, moving average of the squared gradients; empty: lambda is not adaptive.
  std::span<float> mean_square;

  bool is_needed() const noexcept { return !read.empty() || !mean_square.empty(); }
};

// The mean square moves on to include the gradient g; then g + lambda g g (w - w_read), adaptive:
// lambda / sqrt(mean square + 1e-7). `compensation`'s spans, `gradient` and `values` [n], windows
// on the same elements; `result` [n] may be the gradient. Returns `result`, or the gradient where
// nothing was read. Threads: any, on elements of their own.
std::span<const float> compensate(const DelayCompensation& compensation,
                                  std::span<const float> gradient, std::span<const float> values,
                                  std::span<float> result);

}  // namespace syncopate::ps
