// Lowers the groups that enlarge a map or read it along its axes: upsampling, softmax, transposes
// and means.
#include <array>

#include "models/backend/cuda/group.h"

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
    upsample_forward(shape_, x<T>(), y<T>(), stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    upsample_backward(shape_, dy<T>(), dx<T>(), stream());
  }

 private:
  UpsampleShape shape_;
};

template <typename T>
class SoftmaxGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  GroupNeeds needs() const override { return {.output_in_backward = context().trains()}; }
  void forward(const Step& /*step*/) override {
    softmax(rows(), channels(), x<T>(), y<T>(), stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    softmax_backward(rows(), channels(), y<T>(), dy<T>(), dx<T>(), stream());
  }

 private:
  std::int64_t rows() const { return output_elements() / out().back(); }
  int channels() const { return static_cast<int>(out().back()); }
};

// The sides of a value, seen as a map, and the distances between neighbours along each side.
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
  void forward(const Step& /*step*/) override { axis_sums(forward_, x<T>(), y<T>(), stream()); }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    axis_sums(backward_, dy<T>(), dx<T>(), stream());
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

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const UpsampleOp& /*op*/) {
  return make_typed<UpsampleGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const SoftmaxOp& /*op*/) {
  return make_typed<SoftmaxGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const TransposeOp& /*op*/) {
  return make_typed<AxisGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ReduceMeanOp& /*op*/) {
  return make_typed<AxisGroup>(site);
}

}  // namespace syncopate::cuda
