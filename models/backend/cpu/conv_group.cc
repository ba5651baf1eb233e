// The groups of convolutions: conv2d (+ bias) (+ ReLU) by oneDNN, with blocked activations and
// weights in the format that oneDNN chooses, and the fused first layer by our own kernels.
#include <vector>

#include "models/backend/cpu/convolution_group.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

class ConvGroup final : public ConvolutionGroup {
 public:
  ConvGroup(const GroupSite& site, const Conv2dOp& op)
      : ConvolutionGroup(site, Roles::kConvolution, "convolution") {
    const ValueType& input = site.input();
    const ValueType& output = site.output;
    if (site.n == 0) return;  // oneDNN would use its slow reference code for an empty batch
    const std::int64_t area = std::int64_t{op.kernel_h} * op.kernel_w;
    const JoinedGroups joined = {
        .rows = output.channels() * area,
        .rows_per_group = output.channels() / op.groups * area,
        .channels = input.channels() / op.groups,
        .count = groups_to_join(input.channels(), output.channels(), op.groups, site.kernels.block,
                                input.layout == Layout::kBlocked)};
    const Convolution convolution = {.problem = {.n = site.n,
                                                 .c = input.channels(),
                                                 .k = output.channels(),
                                                 .h = input.shape[0],
                                                 .w = input.shape[1],
                                                 .kernel_h = op.kernel_h,
                                                 .kernel_w = op.kernel_w,
                                                 .stride = op.stride,
                                                 .pad = op.pad,
                                                 .groups = op.groups / joined.count},
                                     .block = site.kernels.block,
                                     .planar_input = input.layout == Layout::kPlanar,
                                     .bias = op.bias,
                                     .relu = site.group.relu};
    // The table of algorithms was measured with AVX-512; oneDNN has no Winograd kernel without it.
    const bool may_choose =
        site.winograd && site.kernels.block == 16 && !convolution.pads_channels();
    describe(convolution, joined, [&](ConvPass pass) {
      return may_choose ? choose_algorithm(convolution.problem, pass) : ConvAlgorithm::kDirect;
    });
  }

  void forward(LaneStep& /*step*/) override {
    if (context().n > 0) run_forward();
  }

  void backward(LaneStep& /*step*/) override {
    if (context().n == 0) return;
    mask_gradient();
    run_backward();
  }
};

// The first layer of a network for small images, computed in one pass over the samples; see
// kernels/conv_pool.cc.
class ConvPoolGroup final : public PlainGroup {
 public:
  explicit ConvPoolGroup(const GroupSite& site) : PlainGroup(site) {
    const ValueType& input = site.input();
    const std::int64_t out_channels = site.node().shape[2];
    shape_ = {.n = site.n,
              .in_h = input.shape[0],
              .in_w = input.shape[1],
              .in_channels = static_cast<int>(input.channels()),
              .out_channels = out_channels,
              .pooled_h = site.node().shape[0] / 2,
              .pooled_w = site.node().shape[1] / 2,
              .channels_last = site.output.layout != Layout::kBlocked};
    check(num_elements(site.output.shape) == shape_.pooled_h * shape_.pooled_w * out_channels,
          "the pooled map is half the size of the convolution's map");
    const std::int64_t blocks = (out_channels + site.kernels.block - 1) / site.kernels.block;
    const std::int64_t packed_elements = blocks * 9 * shape_.in_channels * site.kernels.block;
    winner_bytes_ = static_cast<std::size_t>(site.n * blocks * shape_.pooled_h * shape_.pooled_w) *
                    static_cast<std::size_t>(site.kernels.block);
    packed_.assign(static_cast<std::size_t>(packed_elements), 0.0F);
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (!trains()) return needs;
    needs.saved = winner_bytes_;
    needs.backward_scratch = packed_.size() * sizeof(float);
    needs.inputs_in_backward = 1;
    return needs;
  }

  void forward(LaneStep& /*step*/) override {
    // The first layer's weights are packed in every step: packing a few hundred weights takes less
    // time than checking whether they have changed.
    kernels().conv_pool_pack(value(0), packed_.data(), shape_);
    kernels().conv_pool(x(), packed_.data(), value(1), y(), winners(), shape_);
  }

  void backward(LaneStep& /*step*/) override {
    kernels().conv_pool_backward(x(), dy(), winners(), gradient(0), gradient(1),
                                 reinterpret_cast<float*>(memory().backward_scratch), shape_);
  }

 private:
  std::uint8_t* winners() const { return reinterpret_cast<std::uint8_t*>(memory().saved); }

  ConvPoolShape shape_{};
  std::size_t winner_bytes_ = 0;
  std::vector<float> packed_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const Conv2dOp& op) {
  if (site.group.pool) return std::make_unique<ConvPoolGroup>(site);
  return std::make_unique<ConvGroup>(site, op);
}

}  // namespace syncopate
