// Lowers the groups that enlarge a map or read it along its axes: upsampling, softmax, transposes,
// means, and products with the factors of channels.
#include <array>

#include "models/backend/cuda/group.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class UpsampleGroup final : public PlainGroup {
 public:
  UpsampleGroup(const GroupContext& context, const FusedGroup& group) : PlainGroup(context, group) {
    const auto& op = std::get<UpsampleOp>(main().operation);
    shape_ = {.n = context.n,
              .height = static_cast<int>(in()[0]),
              .width = static_cast<int>(in()[1]),
              .channels = static_cast<int>(in()[2]),
              .scale = op.scale,
              .is_bilinear = op.mode == Interpolation::kBilinear};
  }
  void forward(const Step& /*step*/) override {
    upsample_forward(shape_, static_cast<const T*>(memory().inputs[0]),
                     static_cast<T*>(memory().output), stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    upsample_backward(shape_, static_cast<const T*>(memory().output_gradients[0]),
                      static_cast<T*>(memory().input_gradients[0]), stream());
  }

 private:
  UpsampleShape shape_;
};

template <typename T>
class SoftmaxGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.output_in_backward = context().trains();
    return needs;
  }
  void forward(const Step& /*step*/) override {
    softmax(rows(), channels(), static_cast<const T*>(memory().inputs[0]),
            static_cast<T*>(memory().output), stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    softmax_backward(rows(), channels(), static_cast<const T*>(memory().output),
                     static_cast<const T*>(memory().output_gradients[0]),
                     static_cast<T*>(memory().input_gradients[0]), stream());
  }

 private:
  std::int64_t rows() const { return output_elements() / out().back(); }
  int channels() const { return static_cast<int>(out().back()); }
};

// The sides of a value as those of a map, and the distances between neighbours along each.
struct Axes {
  explicit Axes(const Shape& shape) {
    sides[2] = shape.back();
    for (std::size_t i = 0; shape.size() == 3 && i < 2; ++i) sides[i] = shape[i];
    steps = {sides[1] * sides[2], sides[2], 1};
  }
  std::array<std::int64_t, 3> sides = {1, 1, 1};
  std::array<std::int64_t, 3> steps{};
};

// A group that is a transpose or a mean; so is its backward pass, from the output to the input.
template <typename T>
class AxisGroup final : public PlainGroup {
 public:
  AxisGroup(const GroupContext& context, const FusedGroup& group) : PlainGroup(context, group) {
    const Axes x(in());
    const Axes y(out());
    forward_ = between(x, y);
    backward_ = between(y, x);
    if (const auto* transpose = std::get_if<TransposeOp>(&main().operation)) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const auto from = static_cast<std::size_t>(transpose->order[axis]);
        forward_.outer[axis] = x.steps[from];
        backward_.outer[from] = y.steps[axis];
      }
      return;
    }
    const auto& axes = std::get<ReduceMeanOp>(main().operation).axes;
    std::int64_t count = 1;
    for (std::size_t i = 0; i < in().size(); ++i) {
      if (!axes[i]) continue;
      const std::size_t axis = in().size() == 1 ? 2 : i;
      count *= x.sides[axis];
      forward_.counts[axis] = static_cast<int>(x.sides[axis]);
      forward_.inner[axis] = x.steps[axis];
      backward_.outer[axis] = 0;
    }
    forward_.factor = 1.0F / static_cast<float>(count);
    backward_.factor = forward_.factor;
  }
  void forward(const Step& /*step*/) override {
    axis_sums(forward_, static_cast<const T*>(memory().inputs[0]), static_cast<T*>(memory().output),
              stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    axis_sums(backward_, static_cast<const T*>(memory().output_gradients[0]),
              static_cast<T*>(memory().input_gradients[0]), stream());
  }

 private:
  // Returns sums of nothing but the element at the same place.
  AxisSums between(const Axes& from, const Axes& into) const {
    AxisSums sums{.n = context().n, .x_elements = from.sides[0] * from.steps[0]};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      sums.sides[axis] = static_cast<int>(into.sides[axis]);
      sums.outer[axis] = from.steps[axis];
    }
    return sums;
  }

  AxisSums forward_;
  AxisSums backward_;
};

template <typename T>
class ChannelProductGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.inputs_in_backward = context().trains() ? 2 : 0;
    return needs;
  }
  void forward(const Step& /*step*/) override { product(memory().inputs[0], memory().output); }
  void backward(const Step& /*step*/) override {
    const void* const dy = memory().output_gradients[0];
    if (wants_input_gradient(1)) {
      multiply_channels_gradient(static_cast<const T*>(memory().inputs[0]),
                                 static_cast<const T*>(dy),
                                 static_cast<T*>(memory().input_gradients[1]), context().n,
                                 pixels(), channels(), stream());
    }
    if (wants_input_gradient(0)) product(dy, memory().input_gradients[0]);
  }

 private:
  int pixels() const { return static_cast<int>(out()[0] * out()[1]); }
  int channels() const { return static_cast<int>(out()[2]); }
  void product(const void* x, void* y) const {
    multiply_channels(static_cast<const T*>(x), static_cast<const T*>(memory().inputs[1]),
                      static_cast<T*>(y), context().n, pixels(), channels(), stream());
  }
};

}  // namespace

std::unique_ptr<Group> make_axis_group(const GroupContext& context, const FusedGroup& group) {
  return with_type(context.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    if (group.kind == GroupKind::kUpsample) {
      return std::make_unique<UpsampleGroup<T>>(context, group);
    }
    if (group.kind == GroupKind::kSoftmax) {
      return std::make_unique<SoftmaxGroup<T>>(context, group);
    }
    return std::make_unique<AxisGroup<T>>(context, group);
  });
}

std::unique_ptr<Group> make_channel_product_group(const GroupContext& context,
                                                  const FusedGroup& group) {
  return with_type(context.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<ChannelProductGroup<T>>(context, group);
  });
}

}  // namespace syncopate::cuda
