#include "worker/train/snapshot_evaluator.h"

#include <chrono>
#include <vector>

#include "strategies/snapshot.h"

namespace syncopate {

// An arena and a model of its own, made at the first evaluation: most workers never have one.
struct SnapshotEvaluator::Compiled {
  Compiled(Backend& backend, const Graph& graph, const Dataset& dataset,
           const EvaluationOptions& options)
      : arena(graph.parameter_layout(), {Bucket{0, graph.parameter_layout().total()}}),
        state(graph.state_layout()),
        evaluator(backend, graph, arena, state, dataset, options) {}

  ParameterArena arena;
  StateBlock state;
  PartialEvaluator evaluator;
};

SnapshotEvaluator::SnapshotEvaluator(Backend& backend, const Graph& graph, const Dataset& dataset,
                                     const EvaluationOptions& options)
    : backend_(backend), graph_(graph), dataset_(dataset), options_(options) {}

SnapshotEvaluator::~SnapshotEvaluator() = default;

std::optional<Evaluation> SnapshotEvaluator::run(const Snapshot& snapshot,
                                                 const std::function<bool()>& stop) {
  const auto begun = std::chrono::steady_clock::now();
  if (compiled_ == nullptr) {
    compiled_ = std::make_unique<Compiled>(backend_, graph_, dataset_, options_);
  }
  const Snapshot own{compiled_->arena.values(), {}, compiled_->state.values};
  const Snapshot given{snapshot.values, {}, snapshot.state};  // slots are of no use here
  check_snapshot(given, own);
  copy_snapshot(given, own);
  compiled_->arena.bump_all_versions();

  bool stopped = false;
  std::vector<BatchSums> sums(static_cast<std::size_t>(compiled_->evaluator.batches_of_all()));
  compiled_->evaluator.run([&] { return stopped = stopped || stop(); }, sums);
  if (stopped) {
    compiled_.reset();  // it stands in the middle of the samples
    return std::nullopt;
  }
  Evaluation result = add_up(sums, dataset_.size());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return result;
}

}  // namespace syncopate
