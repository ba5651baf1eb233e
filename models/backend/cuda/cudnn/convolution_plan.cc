#include "models/backend/cuda/cudnn/convolution_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/backend/cuda/cudnn/convolution_graph.h"

namespace syncopate::cuda {
namespace {

constexpr int kMostConfigs = 64;  // most configurations that a heuristic is asked for

std::vector<Descriptor> configurations(const ConvolutionGraph& graph, const PlanTarget& target,
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
  // A query of cuDNN's heuristic without room for results returns an upper bound; the second query
  // returns the number of results it has written.
  const int count = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, found);
  found.erase(found.begin() + count, found.end());
  return found;
}

struct EngineFacts {
  std::string name;
  bool fits = false;
  bool compiles_on_the_device = false;
};

// Returns the number of a cuDNN engine and the settings of its knobs, because two configurations of
// one engine differ in the knobs only.
std::string name_of(const Descriptor& configuration, std::int64_t engine) {
  std::vector<Descriptor> choices;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  }
  const int count = configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  std::string name = fmt::format("{}", engine);
  for (int i = 0; i < count; ++i) {
    const Descriptor& choice = choices[static_cast<std::size_t>(i)];
    name += fmt::format(" {}={}", static_cast<int>(choice.get_knob_type()),
                        choice.get_int(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
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

// Returns the finalized plan, or null and the reason in `refusal`: a cuDNN engine that does not
// support the graph, does not compile or does not load must not prevent the use of others.
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

ConvPlan::ConvPlan(ConvPass pass, std::unique_ptr<Descriptor> plan, std::string engine)
    : pass_(pass),
      plan_(std::move(plan)),
      engine_(std::move(engine)),
      workspace_bytes_(plan_->get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

void ConvPlan::run(cudnnHandle_t handle, const ConvArrays& arrays) const {
  std::vector<std::int64_t> names;
  std::vector<void*> pointers;
  for (const auto& [name, data] : named_arrays(pass_, arrays)) {
    names.push_back(name);
    pointers.push_back(data);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::array<void*, 1>{arrays.workspace});
  pack.finalize();
  check_cudnn(cudnnBackendExecute(handle, plan_->get(), pack.get()));
}

ConvOffers plan_convolution(ConvPass pass, const ConvShape& shape, const PlanTarget& target,
                            const PlanLimits& limits, int most) {
  const ConvolutionGraph graph(pass, shape, target.handle());
  ConvOffers offers;
  // Mode A is cuDNN's recommendation of engines; the fallback mode lists engines that always work.
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& configuration : configurations(graph, target, mode)) {
      // All engines are counted for a device that is only described; a real one wants plans soon.
      if (target.handle() != nullptr && std::cmp_greater_equal(offers.plans.size(), most)) {
        return offers;
      }
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
      ConvPlan plan(pass, std::move(finished), facts.name);
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
  const ConvolutionGraph graph(pass, shape, target.handle());
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& configuration : configurations(graph, target, mode)) {
      const EngineFacts facts = facts_of(configuration, limits);
      if (!facts.fits || facts.name != engine) continue;
      if (facts.compiles_on_the_device && target.handle() == nullptr) continue;
      std::string refusal;
      std::unique_ptr<Descriptor> finished = finished_plan(configuration, target, refusal);
      if (finished == nullptr) continue;
      ConvPlan plan(pass, std::move(finished), facts.name);
      if (plan.workspace_bytes() <= limits.most_workspace_bytes) return plan;
    }
  }
  return std::nullopt;
}

}  // namespace syncopate::cuda
