// The group of a transposed convolution: conv_transpose2d (+ bias) (+ ReLU) by oneDNN.
#include <algorithm>
#include <vector>

#include "models/backend/cpu/convolution_group.h"

namespace syncopate {
namespace {

class ConvTransposeGroup final : public ConvolutionGroup {
 public:
  ConvTransposeGroup(const GroupSite& site, const ConvTranspose2dOp& op)
      : ConvolutionGroup(site, Roles::kTransposed, "transposed convolution"),
        op_(op),
        channels_(site.output.channels()),
        shape_(site.blocked(site.output)),
        scale_(static_cast<std::size_t>(shape_.blocks * site.kernels.block), 1.0F),
        shift_(scale_.size(), 0.0F),
        sums_(2 * scale_.size()) {
    if (site.n == 0) return;
    const std::int64_t rows = site.input().channels() * op_.kernel_h * op_.kernel_w;
    describe({.problem = {.n = site.n,
                          .c = channels_,
                          .k = site.input().channels(),
                          .h = site.output.shape[0],
                          .w = site.output.shape[1],
                          .kernel_h = op_.kernel_h,
                          .kernel_w = op_.kernel_w,
                          .stride = op_.stride,
                          .pad = op_.pad},
              .block = site.kernels.block},
             {.rows = rows, .rows_per_group = rows, .channels = channels_},
             [](ConvPass /*pass*/) { return ConvAlgorithm::kDirect; });
  }

  void forward(LaneStep& /*step*/) override {
    if (context().n == 0) return;
    run_forward();
    if (op_.bias) {
      std::copy_n(value(1), channels_, shift_.begin());
      kernels().batch_norm_apply(y(), nullptr, y(), shape_, scale_.data(), shift_.data(),
                                 group().relu);
    } else if (group().relu) {
      kernels().relu(y(), y(), output_elements());
    }
  }

  void backward(LaneStep& /*step*/) override {
    if (context().n == 0) return;
    mask_gradient();
    // oneDNN reads the channels that fill the last block.
    if (channels_ % kernels().block != 0) kernels().clear_padding(dy(), shape_, channels_);
    if (op_.bias) {
      kernels().batch_norm_statistics(dy(), shape_, sums_.data());
      for (std::int64_t c = 0; c < channels_; ++c) {
        gradient(1)[c] = static_cast<float>(sums_[static_cast<std::size_t>(c)]);
      }
    }
    run_backward();
  }

 private:
  const ConvTranspose2dOp op_;
  const std::int64_t channels_;
  const BlockedShape shape_;  // of the output
  // y * 1 + bias, as a batch norm computes it; channels that fill the last block stay zero.
  const std::vector<float> scale_;
  std::vector<float> shift_;
  std::vector<double> sums_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const ConvTranspose2dOp& op) {
  return std::make_unique<ConvTransposeGroup>(site, op);
}

}  // namespace syncopate
