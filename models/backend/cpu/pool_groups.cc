// The groups of pooling, upsampling and ResNet's parameter-free shortcut, over blocked maps.
#include <fmt/format.h>

#include "models/backend/cpu/group.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

PoolShape pool_shape(const GroupSite& site, int window, int stride, int pad) {
  return {.n = site.n,
          .blocks = site.blocked(site.output).blocks,
          .in_h = site.input().shape[0],
          .in_w = site.input().shape[1],
          .out_h = site.output.shape[0],
          .out_w = site.output.shape[1],
          .window = window,
          .stride = stride,
          .pad = pad};
}

class MaxPoolGroup final : public PlainGroup {
 public:
  MaxPoolGroup(const GroupSite& site, const MaxPoolOp& op)
      : PlainGroup(site),
        shape_(pool_shape(site, op.window, op.stride, op.pad)),
        winner_bytes_(static_cast<std::size_t>(site.output_elements())) {
    if (op.window > kLargestWindow) {
      throw UnavailableError(
          fmt::format("max_pool: found a window of {}; the CPU backend supports windows up to {}",
                      op.window, kLargestWindow));
    }
  }
  GroupNeeds needs() const override { return {.saved = trains() ? winner_bytes_ : 0}; }
  void forward(LaneStep& /*step*/) override { kernels().max_pool(x(), y(), winners(), shape_); }
  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    kernels().max_pool_backward(dy(), winners(), dx(), shape_);
  }

 private:
  static constexpr int kLargestWindow = 16;  // the position of the maximum is stored in one byte

  std::uint8_t* winners() const {
    return trains() ? reinterpret_cast<std::uint8_t*>(memory().saved) : nullptr;
  }

  const PoolShape shape_;
  const std::size_t winner_bytes_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const MaxPoolOp& op) {
  return std::make_unique<MaxPoolGroup>(site, op);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const AveragePoolOp& op) {
  return make_kernel_group(site, site.kernels.average_pool, site.kernels.average_pool_backward,
                           pool_shape(site, op.window, op.stride, op.pad));
}
std::unique_ptr<Group> make_group(const GroupSite& site, const GlobalAveragePoolOp& /*op*/) {
  return make_kernel_group(site, site.kernels.global_average_pool,
                           site.kernels.global_average_pool_backward, site.blocked(site.input()),
                           site.input().channels());
}
std::unique_ptr<Group> make_group(const GroupSite& site, const UpsampleOp& op) {
  return make_kernel_group(site, site.kernels.upsample, site.kernels.upsample_backward,
                           {.n = site.n,
                            .blocks = site.blocked(site.input()).blocks,
                            .h = site.input().shape[0],
                            .w = site.input().shape[1],
                            .scale = op.scale,
                            .is_bilinear = op.mode == Interpolation::kBilinear});
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ShortcutOp& op) {
  return make_kernel_group(site, site.kernels.shortcut, site.kernels.shortcut_backward,
                           pool_shape(site, 1, op.stride, 0), site.blocked(site.input()).blocks);
}

}  // namespace syncopate
