#include "models/backend/cuda/cudnn/convolution.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/backend/cuda/library_errors.h"

namespace syncopate::cuda {
namespace {

// Names of the tensors for whoever runs the plan.
enum : std::int64_t { kX = 'x', kW = 'w', kY = 'y' };
constexpr std::int64_t kAlignment = 16;  // bytes; every value of a model lies on 256
constexpr int kMostConfigs = 64;         // that a heuristic lists

using Four = std::array<std::int64_t, 4>;

cudnnDataType_t type_of(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return CUDNN_DATA_BFLOAT16;
    case Precision::kF16:
      return CUDNN_DATA_HALF;
    case Precision::kF32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

// cuDNN names axes in the order N, C, H, W, wherever they lie in memory.
std::unique_ptr<Descriptor> tensor(std::int64_t id, const Four& nchw, Precision type) {
  const auto [n, c, h, w] = nchw;
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made->set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  made->set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(type));
  made->set(CUDNN_ATTR_TENSOR_DIMENSIONS, nchw);
  made->set(CUDNN_ATTR_TENSOR_STRIDES, Four{h * w * c, 1, w * c, c});
  made->set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  made->finalize();
  return made;
}

// How a pass's operation and its attributes are called.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
constexpr PassNames names_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvPass::kInputGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvPass::kWeightGradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// A graph of one operation, with all that it refers to.
class ConvGraph {
 public:
  ConvGraph(ConvPass pass, const ConvShape& shape, const PlanTarget& target)
      : x_(tensor(kX, {shape.n, shape.channels, shape.height, shape.width}, shape.type)),
        w_(tensor(kW, {shape.out_channels, shape.channels, shape.kernel_h, shape.kernel_w},
                  shape.type)),
        y_(tensor(kY, {shape.n, shape.out_channels, shape.out_height(), shape.out_width()},
                  shape.type)),
        convolution_(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR),
        operation_(names_of(pass).operation),
        graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    using Two = std::array<std::int64_t, 2>;
    convolution_.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
    convolution_.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    convolution_.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
    convolution_.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, Two{1, 1});
    convolution_.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Two{shape.stride, shape.stride});
    convolution_.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Two{shape.pad, shape.pad});
    convolution_.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Two{shape.pad, shape.pad});
    convolution_.finalize();
    const PassNames names = names_of(pass);
    operation_.set(names.x, *x_);
    operation_.set(names.w, *w_);
    operation_.set(names.y, *y_);
    operation_.set(names.convolution, convolution_);
    operation_.set(names.alpha, 1.0F);
    operation_.set(names.beta, 0.0F);
    operation_.finalize();
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation_);
    if (target.handle() != nullptr) {
      graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle());
    }
    graph_.finalize();
  }

  const Descriptor& descriptor() const noexcept { return graph_; }

 private:
  std::unique_ptr<Descriptor> x_;
  std::unique_ptr<Descriptor> w_;
  std::unique_ptr<Descriptor> y_;
  Descriptor convolution_;
  Descriptor operation_;
  Descriptor graph_;
};

std::vector<Descriptor> configurations(const ConvGraph& graph, const PlanTarget& target,
                                       cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor());
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.properties() != nullptr) {
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties());
  }
  if (heuristic.try_finalize()) return {};
  std::vector<Descriptor> found;
  for (int i = 0; i < kMostConfigs; ++i) found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  // A query without room only says how many there may be; what is returned is what there is.
  const int count = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, found);
  found.erase(found.begin() + count, found.end());
  return found;
}

struct EngineFacts {
  std::string name;
  bool fits = false;
  bool compiles_on_the_device = false;
};

// What makes it another configuration: two of one engine differ in their knobs.
std::string name_of(const Descriptor& configuration, std::int64_t engine) {
  std::vector<Descriptor> choices;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  }
  const int count = configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  std::string name = std::to_string(engine);
  for (int i = 0; i < count; ++i) {
    const Descriptor& choice = choices[static_cast<std::size_t>(i)];
    name += " " + std::to_string(choice.get_knob_type()) + "=" +
            std::to_string(choice.get_int(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return name;
}

EngineFacts facts_of(const Descriptor& configuration, const PlanLimits& limits) {
  std::vector<Descriptor> engine;
  engine.emplace_back(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  EngineFacts facts{
      .name = name_of(configuration, engine.front().get_int(CUDNN_ATTR_ENGINE_GLOBAL_INDEX))};
  const auto has = [](const auto& notes, auto note) {
    return std::ranges::find(notes, note) != notes.end();
  };
  const auto notes = engine.front().numerical_notes();
  const bool varies = has(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  const bool rounds = has(notes, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
                      has(notes, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) ||
                      has(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  facts.fits = !(varies && limits.deterministic) && !(rounds && !limits.rounds_inputs);
  facts.compiles_on_the_device =
      has(engine.front().behavior_notes(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  return facts;
}

// Null where it cannot be made, and why: an engine that does not support the graph, does not
// compile or does not load leaves the others.
std::unique_ptr<Descriptor> finished_plan(const Descriptor& configuration, const PlanTarget& target,
                                          std::string& refusal) {
  auto plan = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (target.handle() != nullptr) plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle());
  if (target.properties() != nullptr) {
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties());
  }
  if (auto reason = plan->try_finalize()) {
    refusal = std::move(*reason);
    return nullptr;
  }
  return plan;
}

}  // namespace

PlanTarget PlanTarget::described(std::string_view json) {
  PlanTarget target;
  target.properties_ = std::make_unique<Descriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  target.properties_->set_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json);
  target.properties_->finalize();
  return target;
}

ConvPlan::ConvPlan(std::unique_ptr<Descriptor> plan, std::string engine)
    : plan_(std::move(plan)),
      engine_(std::move(engine)),
      workspace_bytes_(plan_->get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

void ConvPlan::run(cudnnHandle_t handle, void* x, void* w, void* y, void* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::array<std::int64_t, 3>{kX, kW, kY});
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::array<void*, 3>{x, w, y});
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::array<void*, 1>{workspace});
  pack.finalize();
  check_cudnn(cudnnBackendExecute(handle, plan_->get(), pack.get()));
}

ConvOffers plan_convolution(ConvPass pass, const ConvShape& shape, const PlanTarget& target,
                            const PlanLimits& limits, int most) {
  const ConvGraph graph(pass, shape, target);
  ConvOffers offers;
  // What the first heuristic recommends, then what always works.
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& configuration : configurations(graph, target, mode)) {
      const EngineFacts facts = facts_of(configuration, limits);
      if (!facts.fits) continue;
      if (facts.compiles_on_the_device && target.handle() == nullptr) {
        ++offers.engines;
        ++offers.left_for_the_device;
        continue;
      }
      if (std::cmp_greater_equal(offers.plans.size(), most)) {
        ++offers.engines;
        continue;
      }
      std::unique_ptr<Descriptor> finished = finished_plan(configuration, target, offers.refusal);
      if (finished == nullptr) continue;
      ConvPlan plan(std::move(finished), facts.name);
      if (plan.workspace_bytes() > limits.most_workspace_bytes) continue;
      ++offers.engines;
      offers.plans.push_back(std::move(plan));
    }
  }
  return offers;
}

std::optional<ConvPlan> plan_convolution(ConvPass pass, const ConvShape& shape,
                                         const PlanTarget& target, const PlanLimits& limits,
                                         const std::string& engine) {
  const ConvGraph graph(pass, shape, target);
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& configuration : configurations(graph, target, mode)) {
      const EngineFacts facts = facts_of(configuration, limits);
      if (!facts.fits || facts.name != engine) continue;
      if (facts.compiles_on_the_device && target.handle() == nullptr) continue;
      std::string refusal;
      std::unique_ptr<Descriptor> finished = finished_plan(configuration, target, refusal);
      if (finished == nullptr) continue;
      ConvPlan plan(std::move(finished), facts.name);
      if (plan.workspace_bytes() <= limits.most_workspace_bytes) return plan;
    }
  }
  return std::nullopt;
}

}  // namespace syncopate::cuda
