// The groups of pooling, upsampling and ResNet's parameter-free shortcut, over blocked maps.
#include <fmt/format.h>

#include "models/backend/cpu/group.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

PoolShape pool_shape(const GroupSite& site, int window, int stride, int pad) {
  return {.n = site.n,
          .blocks = (site.output.channels() + site.kernels.block - 1) / site.kernels.block,
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
  void forward(LaneStep& /*step*/) override {
    context().kernels.max_pool(memory().inputs[0], memory().output, winners(), shape_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.max_pool_backward(memory().output_gradients[0], winners(),
                                        memory().input_gradients[0], shape_);
  }

 private:
  static constexpr int kLargestWindow = 16;  // the position of the maximum is stored in one byte

  std::uint8_t* winners() const {
    return trains() ? reinterpret_cast<std::uint8_t*>(memory().saved) : nullptr;
  }

  const PoolShape shape_;
  const std::size_t winner_bytes_;
};

class AveragePoolGroup final : public PlainGroup {
 public:
  AveragePoolGroup(const GroupSite& site, const AveragePoolOp& op)
      : PlainGroup(site), shape_(pool_shape(site, op.window, op.stride, op.pad)) {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.average_pool(memory().inputs[0], memory().output, shape_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.average_pool_backward(memory().output_gradients[0],
                                            memory().input_gradients[0], shape_);
  }

 private:
  const PoolShape shape_;
};

class GlobalAveragePoolGroup final : public PlainGroup {
 public:
  explicit GlobalAveragePoolGroup(const GroupSite& site)
      : PlainGroup(site), shape_(blocked(site.input())), channels_(site.input().channels()) {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.global_average_pool(memory().inputs[0], memory().output, shape_, channels_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.global_average_pool_backward(memory().output_gradients[0],
                                                   memory().input_gradients[0], shape_, channels_);
  }

 private:
  const BlockedShape shape_;
  const std::int64_t channels_;
};

class UpsampleGroup final : public PlainGroup {
 public:
  UpsampleGroup(const GroupSite& site, const UpsampleOp& op)
      : PlainGroup(site),
        shape_{.n = site.n,
               .blocks = blocked(site.input()).blocks,
               .h = site.input().shape[0],
               .w = site.input().shape[1],
               .scale = op.scale,
               .is_bilinear = op.mode == Interpolation::kBilinear} {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.upsample(memory().inputs[0], memory().output, shape_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.upsample_backward(memory().output_gradients[0], memory().input_gradients[0],
                                        shape_);
  }

 private:
  const UpsampleShape shape_;
};

class ShortcutGroup final : public PlainGroup {
 public:
  ShortcutGroup(const GroupSite& site, const ShortcutOp& op)
      : PlainGroup(site),
        shape_(pool_shape(site, 1, op.stride, 0)),
        in_blocks_(blocked(site.input()).blocks) {}
  void forward(LaneStep& /*step*/) override {
    context().kernels.shortcut(memory().inputs[0], memory().output, shape_, in_blocks_);
  }
  void backward(LaneStep& /*step*/) override {
    if (memory().input_gradients[0] == nullptr) return;
    context().kernels.shortcut_backward(memory().output_gradients[0], memory().input_gradients[0],
                                        shape_, in_blocks_);
  }

 private:
  const PoolShape shape_;
  const std::int64_t in_blocks_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const MaxPoolOp& op) {
  return std::make_unique<MaxPoolGroup>(site, op);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const AveragePoolOp& op) {
  return std::make_unique<AveragePoolGroup>(site, op);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const GlobalAveragePoolOp& /*op*/) {
  return std::make_unique<GlobalAveragePoolGroup>(site);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const UpsampleOp& op) {
  return std::make_unique<UpsampleGroup>(site, op);
}
std::unique_ptr<Group> make_group(const GroupSite& site, const ShortcutOp& op) {
  return std::make_unique<ShortcutGroup>(site, op);
}

}  // namespace syncopate
