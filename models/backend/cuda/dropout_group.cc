// Lowers dropout to our kernel.
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/group.h"
#include "models/base/random.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class DropoutGroup final : public PlainGroup {
 public:
  DropoutGroup(const GroupContext& context, const FusedGroup& group) : PlainGroup(context, group) {
    const auto& op = std::get<DropoutOp>(main().operation);
    how_ = {.n = context.n,
            .elements = num_elements(out()),
            .stream = hash_name(main().name),
            .threshold = op.threshold(),
            .scale = op.scale()};
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context().trains()) needs.gradient_in_place = 0;
    return needs;
  }
  void forward(const Step& step) override { apply(step, memory().inputs[0], memory().output); }
  void backward(const Step& step) override {
    if (!wants_input_gradient()) return;
    apply(step, memory().output_gradients[0], memory().input_gradients[0]);
  }

 private:
  void apply(const Step& step, const void* x, void* y) const {
    if (context().trains() && how_.threshold > 0) {
      dropout(how_, step.keys, static_cast<const T*>(x), static_cast<T*>(y), stream());
    } else if (x != y) {
      check_cuda(cudaMemcpyAsync(y, x, static_cast<std::size_t>(output_elements()) * sizeof(T),
                                 cudaMemcpyDeviceToDevice, stream()));
    }
  }

  Dropout how_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const DropoutOp& /*op*/) {
  return make_typed<DropoutGroup>(site);
}

}  // namespace syncopate::cuda
