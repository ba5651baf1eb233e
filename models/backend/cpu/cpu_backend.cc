// The CPU backend: lanes, kernels for the instruction set of this machine, and oneDNN.
#include <dnnl.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>

#include "models/backend/backend.h"
#include "models/backend/cpu/cpu_model.h"
#include "models/backend/cpu/onednn.h"
#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/optim/optimizer.h"

namespace syncopate {

namespace v2 {
CpuKernels make_cpu_kernels();
}
namespace v3 {
CpuKernels make_cpu_kernels();
}
namespace v4 {
CpuKernels make_cpu_kernels();
}

namespace {

std::string version_text(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(int lanes, Isa isa) : isa_(isa), kernels_(cpu_kernels(isa_)), lanes_(lanes) {}

  Device device() const noexcept override { return {}; }

  std::string description() const override {
    std::string text = fmt::format("cpu, {}, {} {}", name(isa_), lanes_.count(),
                                   lanes_.count() == 1 ? "lane" : "lanes");
    for (const LibraryVersion& library : cpu_library_versions()) {
      text += fmt::format(", {} {}", library.name, library.loaded);
    }
    return text;
  }

  std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena, StateBlock& state,
                                 const CompileOptions& options) override {
    return std::make_unique<CpuModel>(onednn_, graph, arena, state, lanes_, kernels_, options);
  }

  void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
              std::span<const Tensor> slots, Bucket range) override {
    check(slots.size() == optimizer.slot_names().size(),
          "there is one tensor for each slot of the optimizer");
    update_ = {&optimizer, &step, &arena, slots, range};
    lanes_.run([this](int lane) { update_lane(lane); });
  }

 private:
  struct Update {
    const Optimizer* optimizer = nullptr;
    const UpdateStep* step = nullptr;
    const ParameterArena* arena = nullptr;
    std::span<const Tensor> slots;
    Bucket range;
  };

  // Makes the optimizer's update of the part of the arena that belongs to this lane.
  void update_lane(int lane) const {
    const std::int64_t length = update_.range.end - update_.range.begin;
    const Share share = share_of(length, lane, lanes_.count(), kAlignmentBytes / sizeof(float));
    const Bucket range{update_.range.begin + share.begin, update_.range.begin + share.end};
    const auto window = [&](const Tensor& block) {
      return block.f32().subspan(static_cast<std::size_t>(range.begin),
                                 static_cast<std::size_t>(range.end - range.begin));
    };
    std::array<std::span<float>, kMaxSlots> slots;
    check(update_.slots.size() <= slots.size(), "an optimizer has at most kMaxSlots slots");
    for (std::size_t s = 0; s < update_.slots.size(); ++s) slots[s] = window(update_.slots[s]);
    update_range(*update_.optimizer, *update_.step, update_.arena->layout(), range,
                 window(update_.arena->values()), window(update_.arena->gradients()),
                 std::span(slots).first(update_.slots.size()));
  }

  const OneDnn onednn_;
  const Isa isa_;
  const CpuKernels kernels_;
  LanePool lanes_;
  Update update_;  // the arguments that the lanes read during update()
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int lanes, Isa isa) {
  if (isa > detect_isa()) {
    throw UnavailableError(fmt::format("this machine does not support {}; choose {} or lower",
                                       name(isa), name(detect_isa())));
  }
  return std::make_unique<CpuBackend>(lanes, isa);
}

std::vector<LibraryVersion> cpu_library_versions() {
  const dnnl_version_t* loaded = dnnl_version();
  return {{"oneDNN", version_text(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH),
           version_text(loaded->major, loaded->minor, loaded->patch)}};
}

CpuKernels cpu_kernels(Isa isa) noexcept {
  switch (isa) {
    case Isa::kV4:
      return v4::make_cpu_kernels();
    case Isa::kV3:
      return v3::make_cpu_kernels();
    case Isa::kV2:
      break;
  }
  return v2::make_cpu_kernels();
}

}  // namespace syncopate
