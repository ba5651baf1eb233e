// Lowers batch_norm (+ add) (+ ReLU) to our kernels. Synchronised statistics are summed over the
// replicas between the two kernels of a pass. Sums that the preceding convolution has left are used
// instead of being computed again.
#include <algorithm>
#include <span>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class BatchNormGroup final : public PlainGroup {
 public:
  BatchNormGroup(const GroupContext& context, const FusedGroup& group)
      : PlainGroup(context, group), totals_(sum_count()) {
    const auto& op = std::get<BatchNormOp>(main().operation);
    const Shape& shape = out();
    shape_ = {.rows = context.n * num_elements(shape) / shape.back(),
              .channels = static_cast<int>(shape.back()),
              .epsilon = op.epsilon,
              .momentum = op.momentum,
              .relu = group.relu};
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.forward_scratch = scratch_bytes();
    if (!context().trains()) return needs;
    needs.saved = 2 * aligned(row_bytes());
    if (shape_.relu) needs.saved += static_cast<std::size_t>(batch_norm_mask_bytes<T>(shape_));
    needs.backward_scratch = scratch_bytes() + aligned(sum_bytes()) + aligned(3 * row_bytes());
    needs.inputs_in_backward = 1;
    needs.takes_two_gradients = true;
    return needs;
  }

  void forward(const Step& /*step*/) override {
    const GroupMemory& m = memory();
    const T* const x = static_cast<const T*>(m.inputs[0]);
    const float* mean = running_mean();
    float* inverse_stddev = static_cast<float*>(m.forward_scratch);
    if (context().trains()) {
      auto* const sums = static_cast<double*>(m.forward_scratch);
      if (const OutputSums left = output_sums_at(m.input_sums, shape_.channels);
          left.sums != nullptr) {
        batch_norm_shift_sums(shape_, left.sums, left.squares, running_mean(), sums, stream());
      } else {
        batch_norm_sums(shape_, x, running_mean(), sums, behind(sums, sum_bytes()), stream());
      }
      sum_over_replicas(sums, sums, nullptr);
      inverse_stddev = saved_inverse_stddev();
      batch_norm_finish(shape_, sums, running_mean(), saved_mean(), inverse_stddev, running_mean(),
                        running_variance(), stream());
      mean = saved_mean();
    } else {
      batch_norm_inverse_stddev(shape_, running_variance(), inverse_stddev, stream());
    }
    const T* const added = group().add ? static_cast<const T*>(m.inputs[1]) : nullptr;
    batch_norm_apply(shape_, x, mean, inverse_stddev, parameter(0), parameter(1), added,
                     static_cast<T*>(m.output), context().trains() ? saved_mask() : nullptr,
                     stream());
  }

  void backward(const Step& /*step*/) override {
    const GroupMemory& m = memory();
    const T* const x = static_cast<const T*>(m.inputs[0]);
    const T* const dy = static_cast<const T*>(m.output_gradients[0]);
    const T* const dy2 =
        m.output_gradients.size() > 1 ? static_cast<const T*>(m.output_gradients[1]) : nullptr;
    auto* const own_sums = static_cast<double*>(m.backward_scratch);
    auto* const all_sums = static_cast<double*>(behind(own_sums, sum_bytes()));
    auto* const coefficients = static_cast<float*>(behind(all_sums, sum_bytes()));
    T* const dadded = group().add ? static_cast<T*>(m.input_gradients[1]) : nullptr;
    batch_norm_gradient_sums(shape_, x, saved_mask(), dy, dy2, saved_mean(), saved_inverse_stddev(),
                             dadded, own_sums, behind(coefficients, 3 * row_bytes()), stream());
    // The gradients of gamma and beta take this replica's sums only; the gradient of x takes the
    // sums of all replicas.
    const double* const sums = sum_over_replicas(own_sums, all_sums, variables().loss_scale());
    batch_norm_finish_gradient(shape_, own_sums, sums, saved_mean(), saved_inverse_stddev(),
                               parameter(0), variables().gradient(main().parameters[0]),
                               variables().gradient(main().parameters[1]), coefficients, stream());
    T* const dx = static_cast<T*>(m.input_gradients[0]);
    if (dx == nullptr) return;
    if (dadded != nullptr) {
      batch_norm_backward<T>(shape_, x, nullptr, dadded, nullptr, coefficients, dx, stream());
    } else {
      batch_norm_backward(shape_, x, saved_mask(), dy, dy2, coefficients, dx, stream());
    }
  }

 private:
  std::size_t sum_count() const { return 2 * static_cast<std::size_t>(out().back()) + 1; }
  std::size_t sum_bytes() const { return sum_count() * sizeof(double); }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(shape_.channels) * sizeof(float);
  }
  std::size_t scratch_bytes() const {
    return aligned(sum_bytes()) + static_cast<std::size_t>(batch_norm_scratch(shape_));
  }
  const float* parameter(std::size_t i) const { return variables().value(main().parameters[i]); }
  float* running_mean() const { return variables().state(main().state[0]); }
  float* running_variance() const { return variables().state(main().state[1]); }
  float* saved_mean() const { return static_cast<float*>(memory().saved); }
  float* saved_inverse_stddev() const {
    return static_cast<float*>(behind(memory().saved, row_bytes()));
  }
  // Returns where batch norm keeps which elements its ReLU lets pass; null without ReLU.
  std::uint8_t* saved_mask() const {
    if (!shape_.relu) return nullptr;
    return static_cast<std::uint8_t*>(behind(saved_inverse_stddev(), row_bytes()));
  }

  // Sums batch norm's statistics over the replicas into all_sums, which may be own_sums, on the
  // host, so the host waits for the stream once per layer and direction. Returns where the sums
  // are: own_sums if statistics are not synchronised. `scaled` is the scale of this replica's loss,
  // which is divided out because another replica may use another scale; null means that the sums
  // are not scaled.
  const double* sum_over_replicas(const double* own_sums, double* all_sums,
                                  const LossScale* scaled) {
    if (context().statistics == nullptr) return own_sums;
    LossScale scale;
    if (scaled != nullptr) {
      check_cuda(cudaMemcpyAsync(&scale, scaled, sizeof scale, cudaMemcpyDeviceToHost, stream()));
    }
    check_cuda(
        cudaMemcpyAsync(totals_.data(), own_sums, sum_bytes(), cudaMemcpyDeviceToHost, stream()));
    check_cuda(cudaStreamSynchronize(stream()));
    // The loss scale is a power of two, so the division is exact. The last sum counts rows and has
    // no scale.
    const auto gradients = std::span(totals_).first(totals_.size() - 1);
    for (double& sum : gradients) sum /= static_cast<double>(scale.scale);
    context().statistics->sum(totals_);
    for (double& sum : gradients) sum *= static_cast<double>(scale.scale);
    check_cuda(
        cudaMemcpyAsync(all_sums, totals_.data(), sum_bytes(), cudaMemcpyHostToDevice, stream()));
    // The copy from `totals_` to the device may still run when this function returns: the next copy
    // that overwrites `totals_` is made on the same stream.
    return all_sums;
  }

  BatchNormShape shape_;
  std::vector<double> totals_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const BatchNormOp& /*op*/) {
  return make_typed<BatchNormGroup>(site);
}

}  // namespace syncopate::cuda
