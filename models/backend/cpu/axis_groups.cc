// The groups that give a value other sides or read it along its axes: softmax, reshape, transpose
// and mean.
#include <algorithm>
#include <array>

#include "models/backend/cpu/group.h"

namespace syncopate {
namespace {

class SoftmaxGroup final : public PlainGroup {
 public:
  explicit SoftmaxGroup(const GroupSite& site) : PlainGroup(site), shape_(site.output_rows()) {}
  GroupNeeds needs() const override { return {.output_in_backward = trains()}; }
  void forward(LaneStep& /*step*/) override { kernels().softmax(x(), y(), shape_); }
  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    kernels().softmax_backward(y(), dy(), dx(), shape_);
  }

 private:
  const ChannelRows shape_;
};

// Gives the elements other sides, in the order H, W, C. Maps with blocked channels are brought into
// that order and back.
class ReshapeGroup final : public PlainGroup {
 public:
  explicit ReshapeGroup(const GroupSite& site)
      : PlainGroup(site), input_(site.input()), output_(site.output) {}
  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (input_.layout != Layout::kBlocked || output_.layout != Layout::kBlocked) return needs;
    needs.forward_scratch = static_cast<std::size_t>(elements()) * sizeof(float);
    if (trains()) needs.backward_scratch = needs.forward_scratch;
    return needs;
  }
  void forward(LaneStep& /*step*/) override {
    copy(x(), input_, y(), output_, memory().forward_scratch);
  }
  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    copy(dy(), output_, dx(), input_, memory().backward_scratch);
  }

 private:
  std::int64_t elements() const { return context().n * num_elements(input_.shape); }

  void copy(const float* x, const ValueType& from, float* y, const ValueType& into,
            std::byte* scratch) const {
    const bool is_from_blocked = from.layout == Layout::kBlocked;
    const bool is_into_blocked = into.layout == Layout::kBlocked;
    if (!is_from_blocked && !is_into_blocked) {
      std::copy_n(x, elements(), y);
      return;
    }
    const float* rows = x;
    if (is_from_blocked) {
      float* const ordered = is_into_blocked ? reinterpret_cast<float*>(scratch) : y;
      kernels().blocked_to_interleaved(x, ordered, context().blocked(from), from.channels());
      rows = ordered;
    }
    if (is_into_blocked) {
      kernels().interleaved_to_blocked(rows, y, context().blocked(into), into.channels());
    }
  }

  const ValueType input_;
  const ValueType output_;
};

// The place of an element of a sample in memory is the sum of one place for each axis H, W, C.
using Places = std::array<std::vector<std::int64_t>, 3>;

Places places_of(const ValueType& type, int block) {
  Places places = {{{0}, {0}, {}}};
  const bool is_map = type.shape.size() == 3;
  const bool is_blocked = type.layout == Layout::kBlocked;
  const std::int64_t pixel = is_blocked ? block : type.channels();
  for (std::size_t axis = 0; is_map && axis < 2; ++axis) {
    places[axis].clear();
    const std::int64_t step = axis == 0 ? type.shape[1] * pixel : pixel;
    for (std::int64_t i = 0; i < type.shape[axis]; ++i) places[axis].push_back(i * step);
  }
  for (std::int64_t c = 0; c < type.channels(); ++c) {
    places[2].push_back(is_blocked ? c / block * type.pixels() * block + c % block : c);
  }
  return places;
}

// Each element of y is the sum of elements of x, times a factor. The elements of x begin at the sum
// of the outer places of the element of y and lie at the inner places from there.
struct AxisSums {
  Places y;
  Places outer;
  Places inner = {{{0}, {0}, {0}}};
  float factor = 1.0F;
  std::int64_t x_elements = 0;  // of a sample in memory
  std::int64_t y_elements = 0;

  void compute(const float* x, float* result, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::size_t h = 0; h < y[0].size(); ++h) {
        for (std::size_t w = 0; w < y[1].size(); ++w) {
          float* const out = result + i * y_elements + y[0][h] + y[1][w];
          const float* const in = x + i * x_elements + outer[0][h] + outer[1][w];
          for (std::size_t c = 0; c < y[2].size(); ++c) out[y[2][c]] = sum_at(in + outer[2][c]);
        }
      }
    }
  }

 private:
  float sum_at(const float* x) const {
    double sum = 0.0;
    for (const std::int64_t h : inner[0]) {
      for (const std::int64_t w : inner[1]) {
        for (const std::int64_t c : inner[2]) sum += static_cast<double>(x[h + w + c]);
      }
    }
    return static_cast<float>(sum) * factor;
  }
};

class AxisGroup final : public PlainGroup {
 public:
  AxisGroup(const GroupSite& site, AxisSums forward, AxisSums backward)
      : PlainGroup(site),
        forward_(std::move(forward)),
        backward_(std::move(backward)),
        shape_(site.blocked(site.output)),
        channels_(site.output.channels()),
        has_padding_(site.output.layout == Layout::kBlocked &&
                     channels_ % site.kernels.block != 0) {}
  void forward(LaneStep& /*step*/) override {
    forward_.compute(x(), y(), context().n);
    if (has_padding_) kernels().clear_padding(y(), shape_, channels_);
  }
  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    backward_.compute(dy(), dx(), context().n);
  }

 private:
  const AxisSums forward_;
  const AxisSums backward_;
  const BlockedShape shape_;
  const std::int64_t channels_;
  const bool has_padding_;
};

// Returns sums over nothing but the element itself.
AxisSums one_to_one(const GroupContext& context, const ValueType& x, const ValueType& y) {
  const int block = context.kernels.block;
  return {.y = places_of(y, block),
          .outer = places_of(x, block),
          .x_elements = elements_per_sample(x, block),
          .y_elements = elements_per_sample(y, block)};
}

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const SoftmaxOp& /*op*/) {
  return std::make_unique<SoftmaxGroup>(site);
}

std::unique_ptr<Group> make_group(const GroupSite& site, const ReshapeOp& /*op*/) {
  return std::make_unique<ReshapeGroup>(site);
}

std::unique_ptr<Group> make_group(const GroupSite& site, const TransposeOp& op) {
  AxisSums forward = one_to_one(site, site.input(), site.output);
  AxisSums backward = one_to_one(site, site.output, site.input());
  const Places x = forward.outer;
  const Places y = backward.outer;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto from = static_cast<std::size_t>(op.order[axis]);
    forward.outer[axis] = x[from];
    backward.outer[from] = y[axis];
  }
  return std::make_unique<AxisGroup>(site, std::move(forward), std::move(backward));
}

std::unique_ptr<Group> make_group(const GroupSite& site, const ReduceMeanOp& op) {
  const Shape& in = site.input().shape;
  AxisSums forward = one_to_one(site, site.input(), site.output);
  AxisSums backward = one_to_one(site, site.output, site.input());
  std::int64_t count = 1;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!op.axes[i]) continue;
    const std::size_t axis = in.size() == 1 ? 2 : i;  // a vector has channels alone
    count *= in[i];
    std::swap(forward.inner[axis], forward.outer[axis]);
    backward.outer[axis].assign(backward.y[axis].size(), 0);
  }
  forward.factor = 1.0F / static_cast<float>(count);
  backward.factor = forward.factor;
  return std::make_unique<AxisGroup>(site, std::move(forward), std::move(backward));
}

}  // namespace syncopate
