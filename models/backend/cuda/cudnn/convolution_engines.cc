#include "models/backend/cuda/cudnn/convolution_engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/device_speed.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/precision.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

constexpr int kMostCandidates = 24;
// The number of runs that are timed together; their mean is the measured time.
constexpr int kTimedRuns = 20;
// Names, among the engines that sum, a plain engine and our kernel.
constexpr const char* kApart = "apart";

int present_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device));
  return device;
}

std::shared_ptr<Buffer> random_array(std::int64_t elements, Precision type) {
  auto made = make_device_buffer(static_cast<std::size_t>(elements) * element_bytes(type),
                                 present_device());
  fill_with_random_numbers(*made, type);
  return made;
}

BatchNormShape norm_of(const ConvShape& shape) {
  return {.rows = shape.n * shape.out_height() * shape.out_width(),
          .channels = static_cast<int>(shape.out_channels)};
}

}  // namespace

ConvolutionEngines::ConvolutionEngines(ConvPass pass, const ConvShape& shape,
                                       const PlanLimits& limits, const EngineTarget& target,
                                       PlanCache* cache)
    : pass_(pass), shape_(shape), limits_(limits), target_(target), cache_(cache) {}

std::optional<ConvPlan> ConvolutionEngines::choose() {
  if (!limits_.measures && cache_ != nullptr) {
    const auto kept = cache_->find(key());
    if (!kept || !prepare(*kept)) cache_ = nullptr;
  }
  const std::string engine = choose_engine(*this, cache_, key());
  if (engine.empty() || engine == kApart) return std::nullopt;
  const auto found = find(engine);
  check(found != plans_.end(), "the chosen engine is ready");
  return std::move(*found);
}

// The key contains everything that the fastest engine may depend on.
std::string ConvolutionEngines::key() const {
  return fmt::format("{}, {} of {}{}, {} MiB", target_.name, name(pass_), to_string(shape_),
                     limits_.rounds_inputs ? "" : " unrounded", limits_.most_workspace_bytes >> 20);
}

std::vector<std::string> ConvolutionEngines::candidates() {
  ConvOffers offers = plan_convolution(pass_, shape_, PlanTarget(target_.handle), limits_,
                                       cache_ == nullptr ? 1 : kMostCandidates);
  plans_ = std::move(offers.plans);
  refusal_ = std::move(offers.refusal);
  std::vector<std::string> names;
  for (const ConvPlan& plan : plans_) names.push_back(plan.engine());
  if (sums() && cache_ != nullptr && !names.empty()) names.emplace_back(kApart);
  return names;
}

bool ConvolutionEngines::prepare(const std::string& engine) {
  if (engine == kApart || find(engine) != plans_.end()) return true;
  std::optional<ConvPlan> plan =
      plan_convolution(pass_, shape_, PlanTarget(target_.handle), limits_, engine);
  if (!plan) return false;
  plans_.push_back(std::move(*plan));
  return true;
}

std::optional<std::chrono::nanoseconds> ConvolutionEngines::time(
    const std::string& engine, std::chrono::nanoseconds give_up_after) {
  try {
    make_arrays();
    const auto run = engine == kApart ? convolution_and_sums()
                     : sums()         ? convolution_with_sums(*find(engine))
                                      : convolution(*find(engine));
    if (run == nullptr) return std::nullopt;
    return time_on_device(target_.stream, kTimedRuns, run, give_up_after);
  } catch (const DeviceError&) {
    // A DeviceError here means that memory is short or the engine refuses to run; another engine
    // may succeed. CUDA's stored error code is cleared, because the next CUDA call would report it
    // again; a fault of the device itself cannot be cleared.
    cudaGetLastError();
    return std::nullopt;
  }
}

std::function<void()> ConvolutionEngines::convolution(const ConvPlan& plan) {
  workspace_ = nullptr;  // frees the last engine's
  workspace_ =
      make_device_buffer(static_cast<std::size_t>(plan.workspace_bytes()), present_device());
  return [this, &plan] {
    plan.run(target_.handle, {.x = x_->data(),
                              .w = w_->data(),
                              .y = y_->data(),
                              .sums = per_channel(),
                              .squares = per_channel() + shape_.out_channels,
                              .workspace = workspace_->data()});
  };
}

std::function<void()> ConvolutionEngines::convolution_with_sums(const ConvPlan& plan) {
  return [this, convolve = convolution(plan)] {
    convolve();
    batch_norm_shift_sums(norm_of(shape_), per_channel(), per_channel() + shape_.out_channels,
                          per_channel(), norm_sums(), target_.stream);
  };
}

std::function<void()> ConvolutionEngines::convolution_and_sums() {
  plain_ = ConvolutionEngines(ConvPass::kForward, shape_, limits_, target_, cache_).choose();
  if (!plain_) return nullptr;
  return [this, convolve = convolution(*plain_)] {
    convolve();
    with_type(shape_.type, [&]<typename T>() {
      batch_norm_sums(norm_of(shape_), reinterpret_cast<const T*>(y_->data()), per_channel(),
                      norm_sums(), norm_scratch_->data(), target_.stream);
    });
  };
}

void ConvolutionEngines::make_arrays() {
  if (per_channel_ != nullptr) return;
  const ConvShape& s = shape_;
  x_ = random_array(s.n * s.height * s.width * s.channels, s.type);
  w_ = random_array(s.weight_elements(), s.type);
  y_ = random_array(s.n * s.out_height() * s.out_width() * s.out_channels, s.type);
  if (sums()) {
    const auto channels = static_cast<std::size_t>(s.out_channels);
    norm_sums_ = make_device_buffer((2 * channels + 1) * sizeof(double), present_device());
    norm_scratch_ = make_device_buffer(static_cast<std::size_t>(batch_norm_scratch(norm_of(s))),
                                       present_device());
  }
  per_channel_ = random_array(2 * s.out_channels, Precision::kF32);
}

std::vector<ConvPlan>::iterator ConvolutionEngines::find(const std::string& engine) {
  return std::ranges::find(plans_, engine, &ConvPlan::engine);
}

}  // namespace syncopate::cuda
