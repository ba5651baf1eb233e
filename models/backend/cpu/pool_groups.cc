// The groups of pooling, upsampling and ResNet's parameter-free shortcut, over blocked maps.
#include <fmt/format.h>

#include "models/backend/cpu/group.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

PoolShape pool_shape(const GroupContext& context, const ValueType& input, const ValueType& output,
                     int window, int stride, int pad) {
  return {.n = context.n,
          .blocks = (output.channels() + context.kernels.block - 1) / context.kernels.block,
          .in_h = input.shape[0],
          .in_w = input.shape[1],
          .out_h = output.shape[0],
          .out_w = output.shape[1],
          .window = window,
          .stride = stride,
          .pad = pad};
}

class MaxPoolGroup final : public PlainGroup {
 public:
  MaxPoolGroup(const GroupContext& context, const MaxPoolOp& op, const ValueType& input,
               const ValueType& output)
      : PlainGroup(context),
        shape_(pool_shape(context, input, output, op.window, op.stride, op.pad)),
        winner_bytes_(static_cast<std::size_t>(
            context.n * elements_per_sample(output, context.kernels.block))) {
    if (op.window > kLargestWindow) {
      throw UnavailableError(
          fmt::format("max_pool: found a window of {}; the CPU backend supports windows up to {}",
                      op.window, kLargestWindow));
    }
  }
  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (trains()) needs.saved = winner_bytes_;
    return needs;
  }
  void forward(LaneStep& /*step*/) override {
    context().kernels.max_pool(memory().inputs[0], memory().output, winners(), shape_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.max_pool_backward(memory().output_gradients[0], winners(),
                                        memory().input_gradients[0], shape_);
  }

 private:
  static constexpr int kLargestWindow = 16;  // the position of the maximum is stored in one byte

  std::uint8_t* winners() const {
    return trains() ? reinterpret_cast<std::uint8_t*>(memory().saved) : nullptr;
  }

  const PoolShape shape_;
  const std::size_t winner_bytes_;
};

class AveragePoolGroup final : public PlainGroup {
 public:
  AveragePoolGroup(const GroupContext& context, const AveragePoolOp& op, const ValueType& input,
                   const ValueType& output)
      : PlainGroup(context),
        shape_(pool_shape(context, input, output, op.window, op.stride, op.pad)) {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.average_pool(memory().inputs[0], memory().output, shape_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.average_pool_backward(memory().output_gradients[0],
                                            memory().input_gradients[0], shape_);
  }

 private:
  const PoolShape shape_;
};

class GlobalAveragePoolGroup final : public PlainGroup {
 public:
  GlobalAveragePoolGroup(const GroupContext& context, const ValueType& input)
      : PlainGroup(context), shape_(blocked(input)), channels_(input.channels()) {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.global_average_pool(memory().inputs[0], memory().output, shape_, channels_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.global_average_pool_backward(memory().output_gradients[0],
                                                   memory().input_gradients[0], shape_, channels_);
  }

 private:
  const BlockedShape shape_;
  const std::int64_t channels_;
};

class UpsampleGroup final : public PlainGroup {
 public:
  UpsampleGroup(const GroupContext& context, const UpsampleOp& op, const ValueType& input)
      : PlainGroup(context),
        shape_{.n = context.n,
               .blocks = blocked(input).blocks,
               .h = input.shape[0],
               .w = input.shape[1],
               .scale = op.scale,
               .is_bilinear = op.mode == Interpolation::kBilinear} {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.upsample(memory().inputs[0], memory().output, shape_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.upsample_backward(memory().output_gradients[0], memory().input_gradients[0],
                                        shape_);
  }

 private:
  const UpsampleShape shape_;
};

class ShortcutGroup final : public PlainGroup {
 public:
  ShortcutGroup(const GroupContext& context, const ShortcutOp& op, const ValueType& input,
                const ValueType& output)
      : PlainGroup(context),
        shape_(pool_shape(context, input, output, 1, op.stride, 0)),
        in_blocks_((input.channels() + context.kernels.block - 1) / context.kernels.block) {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.shortcut(memory().inputs[0], memory().output, shape_, in_blocks_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.shortcut_backward(memory().output_gradients[0], memory().input_gradients[0],
                                        shape_, in_blocks_);
  }

 private:
  const PoolShape shape_;
  const std::int64_t in_blocks_;
};

template <typename Op>
const Op& pool_operation_of(const GroupContext& context, const FusedGroup& group) {
  return std::get<Op>(context.graph.nodes[static_cast<std::size_t>(group.main)].operation);
}

}  // namespace

std::unique_ptr<Group> make_max_pool_group(const GroupContext& context, const FusedGroup& group,
                                           const ValueType& input, const ValueType& output) {
  return std::make_unique<MaxPoolGroup>(context, pool_operation_of<MaxPoolOp>(context, group),
                                        input, output);
}
std::unique_ptr<Group> make_average_pool_group(const GroupContext& context, const FusedGroup& group,
                                               const ValueType& input, const ValueType& output) {
  return std::make_unique<AveragePoolGroup>(
      context, pool_operation_of<AveragePoolOp>(context, group), input, output);
}
std::unique_ptr<Group> make_global_average_pool_group(const GroupContext& context,
                                                      const ValueType& input) {
  return std::make_unique<GlobalAveragePoolGroup>(context, input);
}
std::unique_ptr<Group> make_upsample_group(const GroupContext& context, const FusedGroup& group,
                                           const ValueType& input) {
  return std::make_unique<UpsampleGroup>(context, pool_operation_of<UpsampleOp>(context, group),
                                         input);
}
std::unique_ptr<Group> make_shortcut_group(const GroupContext& context, const FusedGroup& group,
                                           const ValueType& input, const ValueType& output) {
  return std::make_unique<ShortcutGroup>(context, pool_operation_of<ShortcutOp>(context, group),
                                         input, output);
}

}  // namespace syncopate
