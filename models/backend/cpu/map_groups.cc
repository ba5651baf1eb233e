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
        layout_(site.output.layout) {
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
    const CpuKernels& kernels = context().kernels;
    const std::int64_t n = context().n;
    const auto channels = static_cast<int>(channels_);
    const std::byte* x = step.inputs[index_];
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(x);
    const bool is_planar = layout_ == Layout::kPlanar && channels_ > 1;
    if (is_planar && op_.dtype == DType::kU8) {
      kernels.pixels_to_planar(pixels, memory().output, n, pixels_, channels, scale_.data(),
                               shift_.data());
      return;
    }
    float* interleaved = layout_ == Layout::kBlocked
                             ? reinterpret_cast<float*>(memory().forward_scratch)
                             : memory().output;
    if (op_.dtype == DType::kU8) {
      kernels.pixels_to_interleaved(pixels, interleaved, n, pixels_, channels, scale_.data(),
                                    shift_.data());
    } else if (op_.dtype == DType::kU16) {
      normalise(reinterpret_cast<const std::uint16_t*>(x), interleaved, is_planar);
    } else {
      normalise(reinterpret_cast<const float*>(x), interleaved, is_planar);
    }
    if (layout_ == Layout::kBlocked) {
      const std::int64_t blocks = (channels_ + kernels.block - 1) / kernels.block;
      kernels.interleaved_to_blocked(interleaved, memory().output, {n, blocks, pixels_}, channels_);
    }
  }

  void backward(LaneStep& step) override {
    if (!is_differentiated_) return;
    const float* gradient = memory().output_gradients[0];
    if (layout_ == Layout::kBlocked) {
      const CpuKernels& kernels = context().kernels;
      const std::int64_t blocks = (channels_ + kernels.block - 1) / kernels.block;
      kernels.blocked_to_interleaved(gradient, step.input_gradient, {context().n, blocks, pixels_},
                                     channels_);
    } else {
      std::copy_n(gradient, context().n * pixels_ * channels_, step.input_gradient);
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
  std::int64_t channels_ = 1;
  std::int64_t pixels_ = 1;
  std::vector<float> scale_;
  std::vector<float> shift_;
};

class ReluGroup final : public PlainGroup {
 public:
  explicit ReluGroup(const GroupSite& site) : PlainGroup(site), count_(site.output_elements()) {}
  GroupNeeds needs() const override { return {.output_in_backward = trains()}; }
  void forward(LaneStep& /*step*/) override {
    context().kernels.relu(memory().inputs[0], memory().output, count_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.relu_backward(memory().output_gradients[0], memory().output,
                                    memory().input_gradients[0], count_);
  }

 private:
  const std::int64_t count_;
};

class AddGroup final : public PlainGroup {
 public:
  explicit AddGroup(const GroupSite& site) : PlainGroup(site), count_(site.output_elements()) {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.add(memory().inputs[0], memory().inputs[1], memory().output, count_);
  }
  void backward(LaneStep& /*step*/) override {
    for (float* gradient : memory().input_gradients) {
      if (gradient != nullptr) std::copy_n(memory().output_gradients[0], count_, gradient);
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
        shape_(blocked(site.output)),
        channels_(site.output.channels()),
        count_(site.output_elements()),
        // The channels are padded with zeros, and the function of 0 may be another number.
        clears_padding_(!keeps_zero(op) && site.output.layout == Layout::kBlocked &&
                        channels_ % site.kernels.block != 0) {}
  GroupNeeds needs() const override { return {.inputs_in_backward = trains() ? 1 : 0}; }
  void forward(LaneStep& /*step*/) override {
    context().kernels.activate(op_, memory().inputs[0], memory().output, count_);
    if (clears_padding_) context().kernels.clear_padding(memory().output, shape_, channels_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.activate_backward(op_, memory().inputs[0], memory().output_gradients[0],
                                        memory().input_gradients[0], count_);
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
  void forward(LaneStep& /*step*/) override {
    context().kernels.multiply(memory().inputs[0], memory().inputs[1], memory().output, count_);
  }
  void backward(LaneStep& /*step*/) override {
    for (std::size_t k = 0; k < 2; ++k) {
      if (memory().input_gradients[k] == nullptr) continue;
      context().kernels.multiply(memory().output_gradients[0], memory().inputs[1 - k],
                                 memory().input_gradients[k], count_);
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
        shape_(blocked(site.output)),
        factors_(elements_per_sample(site.inputs[1], site.kernels.block)) {}
  GroupNeeds needs() const override { return {.inputs_in_backward = trains() ? 2 : 0}; }
  void forward(LaneStep& /*step*/) override {
    context().kernels.multiply_channels(memory().inputs[0], memory().inputs[1], memory().output,
                                        shape_, factors_);
  }
  void backward(LaneStep& /*step*/) override {
    const float* dy = memory().output_gradients[0];
    if (memory().input_gradients[1] != nullptr) {
      context().kernels.multiply_channels_gradient(dy, memory().inputs[0],
                                                   memory().input_gradients[1], shape_, factors_);
    }
    if (memory().input_gradients[0] != nullptr) {
      context().kernels.multiply_channels(dy, memory().inputs[1], memory().input_gradients[0],
                                          shape_, factors_);
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
  Part part_of(const ValueType& type) const { return {blocked(type).blocks, type.channels()}; }
  const Part& output_part() const { return output_; }

  void copy(const float* x, const Part& from, std::int64_t x_first, float* y, const Part& into,
            std::int64_t y_first, std::int64_t count) const {
    if (is_map_) {
      context().kernels.copy_channels(x, from.blocks, x_first, y, into.blocks, y_first, n_, pixels_,
                                      count);
      return;
    }
    for (std::int64_t i = 0; i < n_; ++i) {
      std::copy_n(x + i * from.channels + x_first, count, y + i * into.channels + y_first);
    }
  }
  void clear_padding_of_output() const {
    if (!is_map_ || output_.channels % context().kernels.block == 0) return;
    context().kernels.clear_padding(memory().output, {n_, output_.blocks, pixels_},
                                    output_.channels);
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
    std::int64_t first = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      copy(memory().inputs[k], parts_[k], 0, memory().output, output_part(), first,
           parts_[k].channels);
      first += parts_[k].channels;
    }
    clear_padding_of_output();
  }
  void backward(LaneStep& /*step*/) override {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      if (memory().input_gradients[k] != nullptr) {
        copy(memory().output_gradients[0], output_part(), first, memory().input_gradients[k],
             parts_[k], 0, parts_[k].channels);
      }
      first += parts_[k].channels;
    }
  }

 private:
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
    copy(memory().inputs[0], input_, first_, memory().output, output_part(), 0,
         output_part().channels);
    clear_padding_of_output();
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    std::fill_n(memory().input_gradients[0], input_elements_, 0.0F);
    copy(memory().output_gradients[0], output_part(), 0, memory().input_gradients[0], input_,
         first_, output_part().channels);
  }

 private:
  const std::int64_t first_;
  const Part input_;
  const std::int64_t input_elements_;
};

// Flattens a map of any layout to a vector in H, W, C order.
class FlattenGroup final : public PlainGroup {
 public:
  explicit FlattenGroup(const GroupSite& site)
      : PlainGroup(site),
        shape_(blocked(site.input())),
        channels_(site.input().channels()),
        layout_(site.input().layout) {}
  void forward(LaneStep& /*step*/) override {
    if (layout_ == Layout::kBlocked) {
      context().kernels.blocked_to_interleaved(memory().inputs[0], memory().output, shape_,
                                               channels_);
    } else {
      std::copy_n(memory().inputs[0], shape_.n * shape_.pixels * channels_, memory().output);
    }
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    if (layout_ == Layout::kBlocked) {
      context().kernels.interleaved_to_blocked(memory().output_gradients[0],
                                               memory().input_gradients[0], shape_, channels_);
    } else {
      std::copy_n(memory().output_gradients[0], shape_.n * shape_.pixels * channels_,
                  memory().input_gradients[0]);
    }
  }

 private:
  const BlockedShape shape_;
  const std::int64_t channels_;
  const Layout layout_;
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
std::unique_ptr<Group> make_group(const GroupSite& site, const FlattenOp& /*op*/) {
  return std::make_unique<FlattenGroup>(site);
}

}  // namespace syncopate
