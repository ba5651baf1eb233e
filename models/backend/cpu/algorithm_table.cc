#include "models/backend/cpu/algorithm_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "models/backend/cpu/convolution.h"
#include "models/backend/cpu/kernels/cpu_kernels.h"
#include "models/backend/cpu/lanes.h"
#include "models/base/isa.h"
#include "models/tensor/tensor.h"

namespace syncopate {
namespace {

constexpr auto kWinograd = ConvAlgorithm::kWinograd;
[[maybe_unused]] constexpr auto kDirect = ConvAlgorithm::kDirect;

constexpr AlgorithmRow kAlgorithmRows[] = {
#include "models/backend/cpu/algorithm_rows.inc"
};

// An oneDNN primitive with its own memory, filled with numbers around one.
class Trial {
 public:
  Trial(const dnnl::engine& engine, const dnnl::primitive& primitive,
        const std::vector<std::pair<int, dnnl::memory::desc>>& formats) {
    std::vector<BoundPrimitive::Argument> arguments;
    for (const auto& [kind, format] : formats) {
      const auto size = static_cast<std::int64_t>(format.get_size() / sizeof(float));
      Tensor& memory = memories_.emplace_back(make_host_tensor({size}, DType::kF32));
      float value = 0.5F;
      for (float& element : memory.f32()) element = (value = value < 1.5F ? value + 0.01F : 0.5F);
      arguments.push_back({kind, format, memory.f32().data()});
    }
    run_ = BoundPrimitive(engine, primitive, arguments);
  }

  double seconds() const {
    const auto start = std::chrono::steady_clock::now();
    run_.run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::vector<Tensor> memories_;
  BoundPrimitive run_;
};

Trial make_trial(const dnnl::engine& engine, const Convolution& conv, ConvPass pass,
                 ConvAlgorithm algorithm) {
  if (pass == ConvPass::kForward) {
    const auto p = conv.forward(engine, algorithm);
    return {engine,
            dnnl::convolution_forward(p),
            {{DNNL_ARG_SRC, conv.x()},
             {DNNL_ARG_WEIGHTS, p.weights_desc()},
             {DNNL_ARG_DST, conv.y()},
             {DNNL_ARG_SCRATCHPAD, p.scratchpad_desc()}}};
  }
  if (pass == ConvPass::kBackwardData) {
    const auto p = conv.backward_data(engine, algorithm);
    return {engine,
            dnnl::convolution_backward_data(p),
            {{DNNL_ARG_DIFF_DST, conv.y()},
             {DNNL_ARG_WEIGHTS, p.weights_desc()},
             {DNNL_ARG_DIFF_SRC, conv.x()},
             {DNNL_ARG_SCRATCHPAD, p.scratchpad_desc()}}};
  }
  const auto p = conv.backward_weights(engine, algorithm);
  return {engine,
          dnnl::convolution_backward_weights(p),
          {{DNNL_ARG_SRC, conv.x()},
           {DNNL_ARG_DIFF_DST, conv.y()},
           {DNNL_ARG_DIFF_WEIGHTS, p.diff_weights_desc()},
           {DNNL_ARG_SCRATCHPAD, p.scratchpad_desc()}}};
}

}  // namespace

std::span<const AlgorithmRow> algorithm_table() noexcept { return kAlgorithmRows; }

ConvAlgorithm choose_algorithm(const ConvProblem& problem, ConvPass pass) noexcept {
  const bool listed_kind = problem.kernel_h == 3 && problem.kernel_w == 3 && problem.stride == 1 &&
                           problem.pad == 1 && problem.h == problem.w && problem.groups == 1;
  if (!listed_kind) return ConvAlgorithm::kDirect;
  for (const AlgorithmRow& row : kAlgorithmRows) {
    if (row.c != problem.c || row.k != problem.k || row.h != problem.h) continue;
    switch (pass) {
      case ConvPass::kForward:
        return row.forward;
      case ConvPass::kBackwardData:
        return row.backward_data;
      case ConvPass::kBackwardWeights:
        return row.backward_weights;
    }
  }
  return ConvAlgorithm::kDirect;
}

double time_convolution(const ConvProblem& problem, ConvPass pass, ConvAlgorithm algorithm,
                        int repeats) {
  const OneDnn onednn;
  const Convolution conv = {.problem = problem, .block = cpu_kernels(detect_isa()).block};
  double best = std::numeric_limits<double>::infinity();
  LanePool one_lane(1);
  one_lane.run([&](int /*lane*/) {
    try {
      const Trial trial = make_trial(onednn.engine, conv, pass, algorithm);
      for (int i = 0; i <= repeats; ++i) {
        const double seconds = trial.seconds();
        if (i > 0) best = std::min(best, seconds);  // the first run only touches the memory
      }
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) {
        throw DeviceError(fmt::format("oneDNN: convolution: {}", error.message));
      }
    }
  });
  return best;
}

}  // namespace syncopate
