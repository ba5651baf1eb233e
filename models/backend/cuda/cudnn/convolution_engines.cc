#include "models/backend/cuda/cudnn/convolution_engines.h"

#include <algorithm>
#include <utility>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/device_speed.h"
#include "models/backend/cuda/precision.h"
#include "models/base/errors.h"

namespace syncopate::cuda {

using namespace std::chrono_literals;

ConvolutionEngines::ConvolutionEngines(ConvPass pass, const ConvShape& shape,
                                       const PlanLimits& limits, cudnnHandle_t handle,
                                       cudaStream_t stream, int most)
    : pass_(pass), shape_(shape), limits_(limits), target_(handle), stream_(stream), most_(most) {}

std::vector<std::string> ConvolutionEngines::candidates() {
  ConvOffers offers = plan_convolution(pass_, shape_, target_, limits_, most_);
  plans_ = std::move(offers.plans);
  refusal_ = std::move(offers.refusal);
  std::vector<std::string> names;
  for (const ConvPlan& plan : plans_) names.push_back(plan.engine());
  return names;
}

bool ConvolutionEngines::prepare(const std::string& engine) {
  if (ready(engine) != nullptr) return true;
  std::optional<ConvPlan> plan = plan_convolution(pass_, shape_, target_, limits_, engine);
  if (!plan) return false;
  plans_.push_back(std::move(*plan));
  return true;
}

std::optional<std::chrono::nanoseconds> ConvolutionEngines::time(const std::string& engine) {
  const ConvPlan* const plan = ready(engine);
  check(plan != nullptr, "only a candidate can be timed");
  int device = 0;
  check_cuda(cudaGetDevice(&device));
  const auto memory = [&](std::int64_t elements, Precision type) {
    auto made =
        make_device_buffer(static_cast<std::size_t>(elements) * element_bytes(type), device);
    fill_with_random_numbers(*made, type);
    return made;
  };
  try {
    const ConvShape& s = shape_;
    if (x_ == nullptr) x_ = memory(s.n * s.height * s.width * s.channels, s.type);
    if (w_ == nullptr) w_ = memory(s.out_channels * s.kernel_h * s.kernel_w * s.channels, s.type);
    if (y_ == nullptr) y_ = memory(s.n * s.out_height() * s.out_width() * s.out_channels, s.type);
    if (sums_ == nullptr) sums_ = memory(s.out_channels, Precision::kF32);
    if (squares_ == nullptr) squares_ = memory(s.out_channels, Precision::kF32);
    const auto workspace =
        make_device_buffer(static_cast<std::size_t>(plan->workspace_bytes()), device);
    const auto run = [&] {
      plan->run(target_.handle(), {.x = x_->data(),
                                   .w = w_->data(),
                                   .y = y_->data(),
                                   .sums = reinterpret_cast<float*>(sums_->data()),
                                   .squares = reinterpret_cast<float*>(squares_->data()),
                                   .workspace = workspace->data()});
    };
    // An engine clearly slower than the fastest so far is not timed precisely. Run alone it may
    // take some microseconds longer than in a captured graph.
    const auto time = time_on_device(stream_, kTimedRuns, run, shortest_ + shortest_ / 2 + 50us);
    shortest_ = std::min(shortest_, time);
    return time;
  } catch (const DeviceError&) {
    // A DeviceError here means that memory is short or the engine refuses to run; another engine
    // may succeed. CUDA's stored error code is cleared, because the next CUDA call would report it
    // again; a fault of the device itself cannot be cleared.
    cudaGetLastError();
    return std::nullopt;
  }
}

ConvPlan ConvolutionEngines::take(const std::string& engine) {
  const auto found = std::ranges::find(plans_, engine, &ConvPlan::engine);
  check(found != plans_.end(), "the chosen engine is ready");
  return std::move(*found);
}

const ConvPlan* ConvolutionEngines::ready(const std::string& engine) const {
  const auto found = std::ranges::find(plans_, engine, &ConvPlan::engine);
  return found == plans_.end() ? nullptr : &*found;
}

}  // namespace syncopate::cuda
