// Lowers groups without parameters: the samples, activations, sums, products, concat, pooling,
// flattening, shortcuts.
#include <fmt/format.h>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/group.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class InputGroup final : public PlainGroup {
 public:
  InputGroup(const GroupContext& context, const FusedGroup& group)
      : PlainGroup(context, group),
        op_(std::get<InputOp>(main().operation)),
        index_(context.graph.input_index(main().name)),
        constants_(make_device_buffer(2 * row_bytes(), context.device)) {
    for (const auto& [values, into] : {std::pair(&op_.mean, mean()), {&op_.stddev, stddev()}}) {
      copy_to_device(into, std::as_bytes(std::span(*values)));
    }
  }

  void forward(const Step& step) override {
    const void* const x = step.inputs[index_];
    const auto fold = context().input_fold(group().main);
    const auto apply = [&](const auto* samples) {
      if (fold) {
        fold_normalised(*fold, samples, op_.unit(), mean(), stddev(), y<T>(), stream());
      } else {
        normalise(samples, op_.unit(), mean(), stddev(), y<T>(), output_elements(),
                  static_cast<int>(op_.mean.size()), stream());
      }
    };
    if (op_.dtype == DType::kU8) {
      apply(static_cast<const std::uint8_t*>(x));
    } else if (op_.dtype == DType::kU16) {
      apply(static_cast<const std::uint16_t*>(x));
    } else {
      apply(static_cast<const float*>(x));
    }
  }

 private:
  std::size_t row_bytes() const { return op_.mean.size() * sizeof(float); }
  float* mean() const { return reinterpret_cast<float*>(constants_->data()); }
  float* stddev() const { return mean() + op_.mean.size(); }

  const InputOp op_;
  const std::size_t index_;                  // of the input in Step::inputs
  const std::shared_ptr<Buffer> constants_;  // the mean, then the standard deviation, by channel
};

template <typename T>
class ReluGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  GroupNeeds needs() const override { return {.output_in_backward = context().trains()}; }
  void forward(const Step& /*step*/) override {
    relu_forward(x<T>(), y<T>(), output_elements(), stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    relu_backward(y<T>(), dy<T>(), dx<T>(), output_elements(), stream());
  }
};

template <typename T>
class AddGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  void forward(const Step& /*step*/) override {
    add(x<T>(), x<T>(1), y<T>(), output_elements(), stream());
  }
  void backward(const Step& /*step*/) override {
    for (void* const gradient : memory().input_gradients) {
      if (gradient == nullptr) continue;
      check_cuda(cudaMemcpyAsync(gradient, memory().output_gradients[0],
                                 static_cast<std::size_t>(output_elements()) * sizeof(T),
                                 cudaMemcpyDeviceToDevice, stream()));
    }
  }
};

template <typename T>
class ActivationGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  GroupNeeds needs() const override { return {.inputs_in_backward = context().trains() ? 1 : 0}; }
  void forward(const Step& /*step*/) override {
    activate_forward(op(), x<T>(), y<T>(), output_elements(), stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    activate_backward(op(), x<T>(), dy<T>(), dx<T>(), output_elements(), stream());
  }

 private:
  const ActivationOp& op() const { return std::get<ActivationOp>(main().operation); }
};

template <typename T>
class MultiplyGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  GroupNeeds needs() const override { return {.inputs_in_backward = context().trains() ? 2 : 0}; }
  void forward(const Step& /*step*/) override {
    multiply(x<T>(), x<T>(1), y<T>(), output_elements(), stream());
  }
  void backward(const Step& /*step*/) override {
    for (std::size_t k = 0; k < 2; ++k) {
      if (!wants_input_gradient(k)) continue;
      multiply(dy<T>(), x<T>(1 - k), dx<T>(k), output_elements(), stream());
    }
  }
};

// The product of a map and one factor for each of its channels.
template <typename T>
class ChannelProductGroup final : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;
  GroupNeeds needs() const override { return {.inputs_in_backward = context().trains() ? 2 : 0}; }
  void forward(const Step& /*step*/) override { product(x<T>(), y<T>()); }
  void backward(const Step& /*step*/) override {
    if (wants_input_gradient(1)) {
      multiply_channels_gradient(x<T>(), dy<T>(), dx<T>(1), context().n, pixels(), channels(),
                                 stream());
    }
    if (wants_input_gradient(0)) product(dy<T>(), dx<T>());
  }

 private:
  int pixels() const { return static_cast<int>(out()[0] * out()[1]); }
  int channels() const { return static_cast<int>(out()[2]); }
  void product(const T* values, T* products) const {
    multiply_channels(values, x<T>(1), products, context().n, pixels(), channels(), stream());
  }
};

// Copies channels between maps, row by row.
class ChannelCopies : public PlainGroup {
 protected:
  using PlainGroup::PlainGroup;

  std::size_t channel_bytes() const { return element_bytes(context().precision); }
  std::size_t row_bytes(NodeId id) const {
    return static_cast<std::size_t>(context().node(id).shape.back()) * channel_bytes();
  }
  void copy(void* into, std::size_t into_row, const void* from, std::size_t from_row,
            std::size_t width) const {
    const auto rows = static_cast<std::size_t>(output_elements() / out().back());
    if (rows == 0) return;
    check_cuda(cudaMemcpy2DAsync(into, into_row, from, from_row, width, rows,
                                 cudaMemcpyDeviceToDevice, stream()));
  }
};

// Joins the channels of its inputs: each row of the output has a row of every input.
class ConcatGroup final : public ChannelCopies {
 public:
  using ChannelCopies::ChannelCopies;
  void forward(const Step& /*step*/) override {
    for_each_part([&](std::size_t k, std::size_t first, std::size_t width) {
      copy(y<std::byte>() + first, row_bytes(group().output), memory().inputs[k], width, width);
    });
  }
  void backward(const Step& /*step*/) override {
    for_each_part([&](std::size_t k, std::size_t first, std::size_t width) {
      if (!wants_input_gradient(k)) return;
      copy(memory().input_gradients[k], width, dy<std::byte>() + first, row_bytes(group().output),
           width);
    });
  }

 private:
  // Calls visit(k, first, width) with the number of each input, the place of its channels in a row
  // of the output, and their size, both in bytes.
  template <typename Visit>
  void for_each_part(const Visit& visit) const {
    std::size_t first = 0;
    for (std::size_t k = 0; k < group().inputs.size(); ++k) {
      const std::size_t width = row_bytes(group().inputs[k]);
      visit(k, first, width);
      first += width;
    }
  }
};

// Takes some of the channels of each row.
class SliceGroup final : public ChannelCopies {
 public:
  using ChannelCopies::ChannelCopies;
  void forward(const Step& /*step*/) override {
    copy(memory().output, width(), x<std::byte>() + first(), row_bytes(group().inputs[0]), width());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    const auto elements = static_cast<std::size_t>(context().n * num_elements(in()));
    check_cuda(cudaMemsetAsync(dx<std::byte>(), 0, elements * channel_bytes(), stream()));
    copy(dx<std::byte>() + first(), row_bytes(group().inputs[0]), memory().output_gradients[0],
         width(), width());
  }

 private:
  std::size_t first() const {
    return static_cast<std::size_t>(std::get<SliceOp>(main().operation).first) * channel_bytes();
  }
  std::size_t width() const { return row_bytes(group().output); }
};

template <typename T>
class MaxPoolGroup final : public PlainGroup {
 public:
  MaxPoolGroup(const GroupContext& context, const FusedGroup& group, const PoolShape& shape)
      : PlainGroup(context, group), shape_(shape) {
    if (shape.window > kLargestWindow) {
      throw UnavailableError(fmt::format("max_pool: a window of {}; the CUDA backend goes up to {}",
                                         shape.window, kLargestWindow));
    }
  }
  GroupNeeds needs() const override {
    // One byte per output element is reserved for the position of the window's maximum. Evaluation
    // reserves it, too, since the forward kernel of max-pooling always writes the positions.
    GroupNeeds needs;
    needs.saved = static_cast<std::size_t>(output_elements());
    return needs;
  }
  void forward(const Step& /*step*/) override {
    max_pool_forward(shape_, x<T>(), y<T>(), static_cast<std::uint8_t*>(memory().saved), stream());
  }
  void backward(const Step& /*step*/) override {
    if (!wants_input_gradient()) return;
    max_pool_backward(shape_, dy<T>(), static_cast<const std::uint8_t*>(memory().saved), dx<T>(),
                      stream());
  }

 private:
  static constexpr int kLargestWindow = 16;  // 16 * 16 positions fit into one byte
  const PoolShape shape_;
};

template <typename Op>
PoolShape pool_shape(const GroupSite& site, const Op& op) {
  return {.n = site.n,
          .height = static_cast<int>(site.in()[0]),
          .width = static_cast<int>(site.in()[1]),
          .channels = static_cast<int>(site.in()[2]),
          .window = op.window,
          .stride = op.stride,
          .pad = op.pad};
}

// Flattening or reshaping a map is a plain copy, since both sides are in the order H, W, C.
std::unique_ptr<Group> make_copy(const GroupSite& site) {
  const auto copy = [bytes = static_cast<std::size_t>(site.n * num_elements(site.out())) *
                             element_bytes(site.precision)](const auto* from, auto* into,
                                                            cudaStream_t stream) {
    check_cuda(cudaMemcpyAsync(into, from, bytes, cudaMemcpyDeviceToDevice, stream));
  };
  return make_kernel_group(site, copy, copy);
}

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const InputOp& /*op*/) {
  return make_typed<InputGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ReluOp& /*op*/) {
  return make_typed<ReluGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ActivationOp& /*op*/) {
  return make_typed<ActivationGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const AddOp& /*op*/) {
  return make_typed<AddGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const MultiplyOp& /*op*/) {
  const bool has_factors =
      site.node(site.group.inputs[1]).shape != site.node(site.group.output).shape;
  return has_factors ? make_typed<ChannelProductGroup>(site) : make_typed<MultiplyGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ConcatOp& /*op*/) {
  return std::make_unique<ConcatGroup>(site, site.group);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const SliceOp& /*op*/) {
  return std::make_unique<SliceGroup>(site, site.group);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const FlattenOp& /*op*/) {
  return make_copy(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ReshapeOp& /*op*/) {
  return make_copy(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const MaxPoolOp& op) {
  return make_typed<MaxPoolGroup>(site, pool_shape(site, op));
}
std::unique_ptr<Group> make_group(const GroupSite& site, const AveragePoolOp& op) {
  const PoolShape shape = pool_shape(site, op);
  return make_kernel_group(
      site,
      [=](const auto* x, auto* y, cudaStream_t stream) {
        window_average_forward(shape, x, y, stream);
      },
      [=](const auto* dy, auto* dx, cudaStream_t stream) {
        window_average_backward(shape, dy, dx, stream);
      });
}
std::unique_ptr<Group> make_group(const GroupSite& site, const GlobalAveragePoolOp& /*op*/) {
  const std::int64_t n = site.n;
  const auto pixels = static_cast<int>(site.in()[0] * site.in()[1]);
  const auto channels = static_cast<int>(site.in()[2]);
  return make_kernel_group(
      site,
      [=](const auto* x, auto* y, cudaStream_t stream) {
        average_pool_forward(x, y, n, pixels, channels, stream);
      },
      [=](const auto* dy, auto* dx, cudaStream_t stream) {
        average_pool_backward(dy, dx, n, pixels, channels, stream);
      });
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ShortcutOp& op) {
  const ShortcutShape shape{.n = site.n,
                            .height = static_cast<int>(site.in()[0]),
                            .width = static_cast<int>(site.in()[1]),
                            .channels = static_cast<int>(site.in()[2]),
                            .stride = op.stride,
                            .out_channels = static_cast<int>(site.out()[2])};
  return make_kernel_group(
      site,
      [=](const auto* x, auto* y, cudaStream_t stream) { shortcut_forward(shape, x, y, stream); },
      [=](const auto* dy, auto* dx, cudaStream_t stream) {
        shortcut_backward(shape, dy, dx, stream);
      });
}

}  // namespace syncopate::cuda
