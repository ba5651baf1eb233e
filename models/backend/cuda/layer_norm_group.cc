// Lowers layer norm to our kernels.
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class LayerNormGroup final : public PlainGroup {
 public:
  LayerNormGroup(const GroupContext& context, const FusedGroup& group)
      : PlainGroup(context, group),
        shape_{.rows = output_elements() / out().back(),
               .channels = static_cast<int>(out().back()),
               .epsilon = std::get<LayerNormOp>(main().operation).epsilon} {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (!context().trains()) return needs;
    needs.saved = 2 * aligned(row_bytes());
    needs.backward_scratch =
        aligned(gradient_bytes()) + static_cast<std::size_t>(layer_norm_scratch(shape_));
    needs.inputs_in_backward = 1;
    needs.gradient_in_place = 0;
    return needs;
  }

  void forward(const Step& /*step*/) override {
    layer_norm(shape_, x<T>(), weight(), variables().value(main().parameters[1]), y<T>(), mean(),
               inverse_stddev(), stream());
  }

  void backward(const Step& /*step*/) override {
    auto* const gradients = static_cast<float*>(memory().backward_scratch);
    layer_norm_parameter_gradients(shape_, x<T>(), dy<T>(), mean(), inverse_stddev(), gradients,
                                   behind(gradients, gradient_bytes()), stream());
    for (std::size_t p = 0; p < 2; ++p) {
      check_cuda(cudaMemcpyAsync(variables().gradient(main().parameters[p]),
                                 gradients + p * static_cast<std::size_t>(shape_.channels),
                                 gradient_bytes() / 2, cudaMemcpyDeviceToDevice, stream()));
    }
    if (!wants_input_gradient()) return;
    layer_norm_backward(shape_, x<T>(), dy<T>(), weight(), mean(), inverse_stddev(), dx<T>(),
                        stream());
  }

 private:
  std::size_t row_bytes() const { return static_cast<std::size_t>(shape_.rows) * sizeof(float); }
  std::size_t gradient_bytes() const {
    return 2 * static_cast<std::size_t>(shape_.channels) * sizeof(float);
  }
  const float* weight() const { return variables().value(main().parameters[0]); }
  // The statistics of each row, which evaluations do not keep.
  float* mean() const { return context().trains() ? static_cast<float*>(memory().saved) : nullptr; }
  float* inverse_stddev() const {
    if (mean() == nullptr) return nullptr;
    return static_cast<float*>(behind(memory().saved, row_bytes()));
  }

  const LayerNormShape shape_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const LayerNormOp& /*op*/) {
  return make_typed<LayerNormGroup>(site);
}

}  // namespace syncopate::cuda
