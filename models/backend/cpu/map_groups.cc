// The groups without parameters: input, activations, sums, products, concat and flatten.
#include <algorithm>

#include "models/backend/cpu/group.h"

namespace syncopate {
namespace {

// Converts the samples of a batch to f32 in the layout of the network's first layer.
class InputGroup final : public PlainGroup {
 public:
  InputGroup(const GroupSite& site, const InputOp& op)
      : PlainGroup(site),
        op_(op),
        index_(site.graph.input_index(site.node().name)),
        is_differentiated_(trains() && op.is_differentiated),
        layout_(site.output.layout),
        shape_(site.blocked(site.output)) {
    channels_ = static_cast<std::int64_t>(op_.mean.size());
    pixels_ = num_elements(site.node().shape) / channels_;
    for (std::size_t c = 0; c < op_.mean.size(); ++c) {
      scale_.push_back(1.0F / (op_.unit() * op_.stddev[c]));
      shift_.push_back(-op_.mean[c] / op_.stddev[c]);
    }
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (layout_ == Layout::kBlocked) needs.forward_scratch = sample_bytes();
    return needs;
  }

  void forward(LaneStep& step) override {
    const std::int64_t n = context().n;
    const auto channels = static_cast<int>(channels_);
    const std::byte* x = step.inputs[index_];
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(x);
    const bool is_planar = layout_ == Layout::kPlanar && channels_ > 1;
    if (is_planar && op_.dtype == DType::kU8) {
      kernels().pixels_to_planar(pixels, y(), n, pixels_, channels, scale_.data(), shift_.data());
      return;
    }
    float* interleaved =
        layout_ == Layout::kBlocked ? reinterpret_cast<float*>(memory().forward_scratch) : y();
    if (op_.dtype == DType::kU8) {
      kernels().pixels_to_interleaved(pixels, interleaved, n, pixels_, channels, scale_.data(),
                                      shift_.data());
    } else if (op_.dtype == DType::kU16) {
      normalise(reinterpret_cast<const std::uint16_t*>(x), interleaved, is_planar);
    } else {
      normalise(reinterpret_cast<const float*>(x), interleaved, is_planar);
    }
    if (layout_ == Layout::kBlocked) {
      kernels().interleaved_to_blocked(interleaved, y(), shape_, channels_);
    }
  }

  void backward(LaneStep& step) override {
    if (!is_differentiated_) return;
    if (layout_ == Layout::kBlocked) {
      kernels().blocked_to_interleaved(dy(), step.input_gradient, shape_, channels_);
    } else {
      std::copy_n(dy(), context().n * pixels_ * channels_, step.input_gradient);
    }
  }

 private:
  std::size_t sample_bytes() const {
    return static_cast<std::size_t>(context().n * pixels_ * channels_) * sizeof(float);
  }

  // Writes x [n, pixels, channels] to y, which has the same order or is [n, channels, pixels].
  template <typename T>
  void normalise(const T* x, float* y, bool is_planar) const {
    const std::int64_t pixel_step = is_planar ? 1 : channels_;
    const std::int64_t channel_step = is_planar ? pixels_ : 1;
    for (std::int64_t i = 0; i < context().n; ++i) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const T* const in = x + i * pixels_ * channels_ + c;
        float* const out = y + i * pixels_ * channels_ + c * channel_step;
        const float scale = scale_[static_cast<std::size_t>(c)];
        const float shift = shift_[static_cast<std::size_t>(c)];
        for (std::int64_t p = 0; p < pixels_; ++p) {
          out[p * pixel_step] = static_cast<float>(in[p * channels_]) * scale + shift;
        }
      }
    }
  }

  const InputOp& op_;
  const std::size_t index_;  // of the input in LaneStep::inputs
  const bool is_differentiated_;
  const Layout layout_;
  const BlockedShape shape_;  // of the output if its channels are blocked
  std::int64_t channels_ = 1;
  std::int64_t pixels_ = 1;
  std::vector<float> scale_;
  std::vector<float> shift_;
};

class ReluGroup final : public PlainGroup {
 public:
  explicit ReluGroup(const GroupSite& site) : PlainGroup(site), count_(site.output_elements()) {}
  GroupNeeds needs() const override { return {.output_in_backward = trains()}; }
  void forward(LaneStep& /*step*/) override { kernels().relu(x(), y(), count_); }
  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    kernels().relu_backward(dy(), y(), dx(), count_);
  }

 private:
  const std::int64_t count_;
};

class AddGroup final : public PlainGroup {
 public:
  explicit AddGroup(const GroupSite& site) : PlainGroup(site), count_(site.output_elements()) {}
  void forward(LaneStep& /*step*/) override { kernels().add(x(), x(1), y(), count_); }
  void backward(LaneStep& /*step*/) override {
    for (float* gradient : memory().input_gradients) {
      if (gradient != nullptr) std::copy_n(dy(), count_, gradient);
    }
  }

 private:
  const std::int64_t count_;
};

// y = f(x), element by element.
class ActivationGroup final : public PlainGroup {
 public:
  ActivationGroup(const GroupSite& site, const ActivationOp& op)
      : PlainGroup(site),
        op_(op),
        shape_(site.blocked(site.output)),
        channels_(site.output.channels()),
        count_(site.output_elements()),
        // The channels are padded with zeros, and the function of 0 may be another number.
        clears_padding_(!keeps_zero(op) && site.output.layout == Layout::kBlocked &&
                        channels_ % site.kernels.block != 0) {}
  GroupNeeds needs() const override { return {.inputs_in_backward = trains() ? 1 : 0}; }
  void forward(LaneStep& /*step*/) override {
    kernels().activate(op_, x(), y(), count_);
    if (clears_padding_) kernels().clear_padding(y(), shape_, channels_);
  }
  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    kernels().activate_backward(op_, x(), dy(), dx(), count_);
  }

 private:
  const ActivationOp op_;
  const BlockedShape shape_;
  const std::int64_t channels_;
  const std::int64_t count_;
  const bool clears_padding_;
};

class MultiplyGroup final : public PlainGroup {
 public:
  explicit MultiplyGroup(const GroupSite& site)
      : PlainGroup(site), count_(site.output_elements()) {}
  GroupNeeds needs() const override { return {.inputs_in_backward = trains() ? 2 : 0}; }
  void forward(LaneStep& /*step*/) override { kernels().multiply(x(), x(1), y(), count_); }
  void backward(LaneStep& /*step*/) override {
    for (std::size_t k = 0; k < 2; ++k) {
      if (dx(k) == nullptr) continue;
      kernels().multiply(dy(), x(1 - k), dx(k), count_);
    }
  }

 private:
  const std::int64_t count_;
};

// The product of a map and one factor for each of its channels.
class ChannelProductGroup final : public PlainGroup {
 public:
  explicit ChannelProductGroup(const GroupSite& site)
      : PlainGroup(site),
        shape_(site.blocked(site.output)),
        factors_(elements_per_sample(site.inputs[1], site.kernels.block)) {}
  GroupNeeds needs() const override { return {.inputs_in_backward = trains() ? 2 : 0}; }
  void forward(LaneStep& /*step*/) override {
    kernels().multiply_channels(x(), x(1), y(), shape_, factors_);
  }
  void backward(LaneStep& /*step*/) override {
    if (dx(1) != nullptr) {
      kernels().multiply_channels_gradient(dy(), x(), dx(1), shape_, factors_);
    }
    if (dx() != nullptr) {
      kernels().multiply_channels(dy(), x(1), dx(), shape_, factors_);
    }
  }

 private:
  const BlockedShape shape_;
  const std::int64_t factors_;
};

// Copies channels between maps, or features between vectors.
class ChannelCopies : public PlainGroup {
 protected:
  explicit ChannelCopies(const GroupSite& site)
      : PlainGroup(site),
        n_(site.n),
        pixels_(site.output.pixels()),
        is_map_(site.output.layout == Layout::kBlocked),
        output_(part_of(site.output)) {}

  struct Part {
    std::int64_t blocks;
    std::int64_t channels;
  };
  Part part_of(const ValueType& type) const {
    return {context().blocked(type).blocks, type.channels()};
  }
  const Part& output_part() const { return output_; }

  void copy(const float* x, const Part& from, std::int64_t x_first, float* y, const Part& into,
            std::int64_t y_first, std::int64_t count) const {
    if (is_map_) {
      kernels().copy_channels(x, from.blocks, x_first, y, into.blocks, y_first, n_, pixels_, count);
      return;
    }
    for (std::int64_t i = 0; i < n_; ++i) {
      std::copy_n(x + i * from.channels + x_first, count, y + i * into.channels + y_first);
    }
  }
  void clear_padding_of_output() const {
    if (!is_map_ || output_.channels % kernels().block == 0) return;
    kernels().clear_padding(y(), {n_, output_.blocks, pixels_}, output_.channels);
  }

 private:
  const std::int64_t n_;
  const std::int64_t pixels_;
  const bool is_map_;
  const Part output_;
};

class ConcatGroup final : public ChannelCopies {
 public:
  explicit ConcatGroup(const GroupSite& site) : ChannelCopies(site) {
    for (const ValueType& input : site.inputs) parts_.push_back(part_of(input));
  }
  void forward(LaneStep& /*step*/) override {
    for_each_part([&](std::size_t k, std::int64_t first) {
      copy(x(k), parts_[k], 0, y(), output_part(), first, parts_[k].channels);
    });
    clear_padding_of_output();
  }
  void backward(LaneStep& /*step*/) override {
    for_each_part([&](std::size_t k, std::int64_t first) {
      if (dx(k) == nullptr) return;
      copy(dy(), output_part(), first, dx(k), parts_[k], 0, parts_[k].channels);
    });
  }

 private:
  // Calls visit(k, first) with the number of each input and its first channel of the output.
  template <typename Visit>
  void for_each_part(const Visit& visit) const {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      visit(k, first);
      first += parts_[k].channels;
    }
  }

  std::vector<Part> parts_;
};

class SliceGroup final : public ChannelCopies {
 public:
  SliceGroup(const GroupSite& site, const SliceOp& op)
      : ChannelCopies(site),
        first_(op.first),
        input_(part_of(site.input())),
        input_elements_(site.n * elements_per_sample(site.input(), site.kernels.block)) {}
  void forward(LaneStep& /*step*/) override {
    copy(x(), input_, first_, y(), output_part(), 0, output_part().channels);
    clear_padding_of_output();
  }
  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    std::fill_n(dx(), input_elements_, 0.0F);
    copy(dy(), output_part(), 0, dx(), input_, first_, output_part().channels);
  }

 private:
  const std::int64_t first_;
  const Part input_;
  const std::int64_t input_elements_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const InputOp& op) {
  return std::make_unique<InputGroup>(site, op);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ReluOp& /*op*/) {
  return std::make_unique<ReluGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ActivationOp& op) {
  return std::make_unique<ActivationGroup>(site, op);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const AddOp& /*op*/) {
  return std::make_unique<AddGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const MultiplyOp& /*op*/) {
  if (site.inputs[1].shape == site.output.shape) return std::make_unique<MultiplyGroup>(site);
  return std::make_unique<ChannelProductGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ConcatOp& /*op*/) {
  return std::make_unique<ConcatGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const SliceOp& op) {
  return std::make_unique<SliceGroup>(site, op);
}

// Flattens a map of any layout to a vector in H, W, C order.
std::unique_ptr<Group> make_group(const GroupSite& site, const FlattenOp& /*op*/) {
  const ValueType& input = site.input();
  if (input.layout == Layout::kBlocked) {
    return make_kernel_group(site, site.kernels.blocked_to_interleaved,
                             site.kernels.interleaved_to_blocked, site.blocked(input),
                             input.channels());
  }
  const auto copy =
      +[](const float* from, float* into, std::int64_t count) { std::copy_n(from, count, into); };
  return make_kernel_group(site, copy, copy, site.n * num_elements(input.shape));
}

}  // namespace syncopate
