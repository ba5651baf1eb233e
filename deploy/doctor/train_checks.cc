#include "deploy/doctor/train_checks.h"

#include <filesystem>
#include <optional>

#include "models/base/errors.h"
#include "strategies/snapshot.h"
#include "worker/run/first_values.h"
#include "worker/run/run_data.h"
#include "worker/run/run_folder.h"
#include "worker/run/run_sizes.h"
#include "worker/train/metrics.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Returns a host snapshot with the shapes of the run's variables, for any device.
Snapshot host_snapshot(const TrainOptions& options, const Graph& graph) {
  const std::int64_t elements = graph.parameter_layout().total();
  return {.values = make_host_tensor({elements}, DType::kF32),
          .slots = OptimizerSlots(options.strategy.optimizer, elements).named(),
          .state = make_host_tensor({graph.state_layout().total()}, DType::kF32)};
}

class Checks {
 public:
  Checks(const TrainOptions& options, const DataSplits& data) : options_(options), data_(data) {}

  std::vector<std::string> all() {
    attempt([&] { graph_ = network_for_data(options_.model, options_.data, data_); });
    std::optional<std::int64_t> global_batch;
    attempt([&] {
      StrategyOptions shares = options_.strategy;
      global_batch =
          choose_batch(options_, expected_replicas(options_), data_.train->size(), shares);
    });
    if (options_.cluster.is_chief()) {
      look_for_another_run();
      if (graph_ && global_batch) attempt([&] { try_first_values(*global_batch); });
      attempt([&] { try_metrics(); });
    }
    return std::move(refusals_);
  }

 private:
  template <typename Check>
  void attempt(const Check& check) {
    try {
      check();
    } catch (const Error& error) {
      refusals_.emplace_back(error.what());
    }
  }

  void look_for_another_run() {
    const fs::path& folder = options_.loop.checkpoint_dir;
    if (folder.empty()) return;
    if (const auto refusal = run_folder_refusal(folder)) refusals_.push_back(*refusal);
  }

  void try_first_values(std::int64_t global_batch) const {
    find_first_values(options_, *graph_, fresh_progress(options_, data_, global_batch),
                      host_snapshot(options_, *graph_));
  }

  void try_metrics() const {
    if (options_.metrics.empty()) return;
    std::error_code unseen;
    const bool was_there = fs::exists(options_.metrics, unseen);
    make_metrics_writer(options_.metrics, true);
    if (!was_there) fs::remove(options_.metrics, unseen);
  }

  const TrainOptions& options_;
  const DataSplits& data_;
  std::optional<Graph> graph_;
  std::vector<std::string> refusals_;
};

}  // namespace

std::vector<std::string> refusals_of_train(const TrainOptions& options, const DataSplits& data) {
  return Checks(options, data).all();
}

}  // namespace syncopate
