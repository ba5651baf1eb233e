// Lowers the groups that enlarge a map or read it along its axes: upsampling, softmax, transposes
// and means.
#include <array>

#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

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

// Returns sums of nothing but the element at the same place.
AxisSums one_to_one(std::int64_t n, const Axes& from, const Axes& into) {
  AxisSums sums{.n = n, .x_elements = from.sides[0] * from.steps[0]};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    sums.sides[axis] = static_cast<int>(into.sides[axis]);
    sums.outer[axis] = from.steps[axis];
  }
  return sums;
}

// A group that is a transpose or a mean; so is its backward pass, from the output to the input.
std::unique_ptr<Group> make_axis_group(const GroupSite& site, const AxisSums& forward,
                                       const AxisSums& backward) {
  return make_kernel_group(
      site, [=](const auto* x, auto* y, cudaStream_t stream) { axis_sums(forward, x, y, stream); },
      [=](const auto* dy, auto* dx, cudaStream_t stream) { axis_sums(backward, dy, dx, stream); });
}

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const UpsampleOp& op) {
  const UpsampleShape shape{.n = site.n,
                            .height = static_cast<int>(site.in()[0]),
                            .width = static_cast<int>(site.in()[1]),
                            .channels = static_cast<int>(site.in()[2]),
                            .scale = op.scale,
                            .is_bilinear = op.mode == Interpolation::kBilinear};
  return make_kernel_group(
      site,
      [=](const auto* x, auto* y, cudaStream_t stream) { upsample_forward(shape, x, y, stream); },
      [=](const auto* dy, auto* dx, cudaStream_t stream) {
        upsample_backward(shape, dy, dx, stream);
      });
}
std::unique_ptr<Group> make_group(const GroupSite& site, const SoftmaxOp& /*op*/) {
  return make_typed<SoftmaxGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const TransposeOp& op) {
  const Axes x(site.in());
  const Axes y(site.out());
  AxisSums forward = one_to_one(site.n, x, y);
  AxisSums backward = one_to_one(site.n, y, x);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto from = static_cast<std::size_t>(op.order[axis]);
    forward.outer[axis] = x.steps[from];
    backward.outer[from] = y.steps[axis];
  }
  return make_axis_group(site, forward, backward);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ReduceMeanOp& op) {
  const Axes x(site.in());
  const Axes y(site.out());
  AxisSums forward = one_to_one(site.n, x, y);
  AxisSums backward = one_to_one(site.n, y, x);
  std::int64_t count = 1;
  for (std::size_t i = 0; i < site.in().size(); ++i) {
    if (!op.axes[i]) continue;
    const std::size_t axis = site.in().size() == 1 ? 2 : i;
    count *= x.sides[axis];
    forward.counts[axis] = static_cast<int>(x.sides[axis]);
    forward.inner[axis] = x.steps[axis];
    backward.outer[axis] = 0;
  }
  forward.factor = 1.0F / static_cast<float>(count);
  backward.factor = forward.factor;
  return make_axis_group(site, forward, backward);
}

}  // namespace syncopate::cuda
