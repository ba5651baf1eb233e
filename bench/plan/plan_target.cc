#include "bench/plan/plan_target.h"

#include <exception>

#include "bench/compare/run_plan.h"
#include "bench/compare/virtual_run.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {
namespace {

// Records the time of the first evaluation at or above the target.
class TargetWatch final : public MetricsWriter {
 public:
  explicit TargetWatch(double target) : target_(target) {}
  void write(const BeginMetrics& /*metrics*/) override {}
  void write(const StepMetrics& /*metrics*/) override {}
  void write(const WorkerMetrics& /*metrics*/) override {}
  void write(const EvalMetrics& metrics) override {
    if (!result_.seconds && metrics.test_accuracy >= target_) {
      result_.seconds = metrics.trained_seconds;
    }
  }
  void write(const Summary& summary) override { result_.accuracy = summary.test_accuracy; }
  const TargetTime& result() const noexcept { return result_; }

 private:
  const double target_;
  TargetTime result_;
};

}  // namespace

TargetTime time_to_target(const PlanOptions& options, const Variant& variant,
                          const FaultInjection& faults, const DataSplits& data) {
  CompareOptions compared;
  compared.variants = {variant};
  compared.clock = Clock::kVirtual;
  compared.epochs = options.epochs;
  compared.batch_size_per_replica = options.batch_size_per_replica;
  compared.model = options.model;
  compared.data = options.data;
  compared.target_accuracy = options.target_accuracy;
  compared.faults = faults;
  compared.seeds = 1;
  TargetWatch watch(options.target_accuracy);
  try {
    compared.shared = parse_shared_train_flags(options.train_flags);
    RunSpec run = plan_runs(compared, data.train->size()).front();
    run.seed = options.seed;
    run.train.strategy.seed = run.train.loop.service_time.seed = options.seed;
    // The run uses the links of the simulation, so a single process trains as if its replicas had
    // links.
    run.faults.link = faults.link;
    run_virtually(run, data, watch, [](double /*fraction*/) {});
  } catch (const std::exception& error) {
    return {.seconds = std::nullopt, .failure = error.what()};
  }
  return watch.result();
}

}  // namespace syncopate::bench
