// Delay compensation: corrects a gradient for the updates since its values were read. The
// correction works element by element, so that any division of a bucket into pieces gives the same
// bits. Source: Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay
// compensation", eq. 10 and 14.
#pragma once

#include <span>

namespace syncopate::ps {

struct DelayCompensation {
  float lambda = 0.04F;
  float mean_square_decay = 0.95F;
  // [bucket] f32: the values that the worker read. Empty when the values have not changed since or
  // are unknown; the gradient is then not corrected.
  std::span<const float> read;
  // [bucket] f32, moving average of the squared gradients. Empty: lambda is not adaptive.
  std::span<float> mean_square;

  bool is_needed() const noexcept { return !read.empty() || !mean_square.empty(); }
};

// Includes the gradient g in the mean square, then computes g + lambda g g (w - w_read); adaptive:
// with lambda / sqrt(mean square + 1e-7). The spans of `compensation`, `gradient` and `values` [n]
// are windows on the same elements; `result` [n] may be the gradient. Returns `result`, or the
// gradient when `read` is empty. Any thread, on elements that no other thread uses.
std::span<const float> compensate(const DelayCompensation& compensation,
                                  std::span<const float> gradient, std::span<const float> values,
                                  std::span<float> result);

}  // namespace syncopate::ps
