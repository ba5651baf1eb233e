// The group dropout. The masks are kept for the backward pass, a byte per element in the order H,
// W, C; the layout of the values differs between instruction sets.
#include <algorithm>
#include <cstring>

#include "models/backend/cpu/group.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

class DropoutGroup final : public PlainGroup {
 public:
  DropoutGroup(const GroupSite& site, const DropoutOp& op)
      : PlainGroup(site),
        op_(op),
        stream_(hash_name(site.node().name)),
        drops_(trains() && op.threshold() > 0),
        elements_(num_elements(site.output.shape)),
        count_(site.output_elements()),
        shape_(site.output_rows()) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (drops_) needs.saved = static_cast<std::size_t>(context().n * elements_ + kMaskSlack);
    if (trains()) needs.gradient_in_place = 0;
    return needs;
  }

  void forward(LaneStep& step) override {
    if (!drops_) {
      std::copy_n(x(), count_, y());
      return;
    }
    for (std::int64_t i = 0; i < context().n; ++i) {
      kernels().dropout_mask(step.keys[i], stream_, op_.threshold(), mask() + i * elements_,
                             elements_);
    }
    kernels().dropout(x(), mask(), op_.scale(), y(), shape_);
  }

  void backward(LaneStep& /*step*/) override {
    if (dx() == nullptr) return;
    if (drops_) {
      kernels().dropout(dy(), mask(), op_.scale(), dx(), shape_);
    } else {
      std::memmove(dx(), dy(), static_cast<std::size_t>(count_) * sizeof(float));
    }
  }

 private:
  std::uint8_t* mask() const { return reinterpret_cast<std::uint8_t*>(memory().saved); }

  const DropoutOp op_;
  const std::uint64_t stream_;
  const bool drops_;
  const std::int64_t elements_;  // of a sample, without the padding of channels
  const std::int64_t count_;     // of all samples, with it
  const ChannelRows shape_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const DropoutOp& op) {
  return std::make_unique<DropoutGroup>(site, op);
}

}  // namespace syncopate
