// Provides a small network on a few samples, and training runs of it: by train_asynchronously with
// a ScriptedJob in place of parameter servers, or by train, for comparison.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/worker/train/scripted_job.h"
#include "worker/train/asynchronous_loop.h"

namespace syncopate {

// Collects the metrics of all replicas, which write at the same time.
class RecordingMetrics final : public MetricsWriter {
 public:
  void write(const BeginMetrics& metrics) override { keep(begins, metrics); }
  void write(const StepMetrics& metrics) override { keep(steps, metrics); }
  void write(const EvalMetrics& metrics) override { keep(evaluations, metrics); }
  void write(const WorkerMetrics& metrics) override { keep(workers, metrics); }
  void write(const Summary& /*summary*/) override { ++summaries; }
  std::vector<BeginMetrics> begins;
  std::vector<StepMetrics> steps;
  std::vector<EvalMetrics> evaluations;
  std::vector<WorkerMetrics> workers;
  std::atomic<int> summaries = 0;

 private:
  template <typename T>
  void keep(std::vector<T>& lines, const T& line) {
    const std::lock_guard lock(mutex_);
    lines.push_back(line);
  }
  std::mutex mutex_;
};

class RecordingDisplay final : public ProgressDisplay {
 public:
  void update(const ProgressState& state) override { states.push_back(state); }
  void update(const ActivityState& /*state*/) override {}
  void note(const std::string& line) override { notes.push_back(line); }
  void finish() override { ++finished; }
  std::vector<ProgressState> states;
  std::vector<std::string> notes;
  int finished = 0;
};

// The run has 84 samples in batches of 16: five steps and a remainder of 4 per epoch.
class AsynchronousCase {
 public:
  static constexpr std::int64_t kBatch = 16;
  static constexpr std::int64_t kSamples = 84;

  explicit AsynchronousCase(const std::string& model = "mlp", const std::string& optimizer = "adam",
                            ScheduleOptions rates = {});

  std::unique_ptr<Strategy> make_one_device() const;
  // Returns a strategy with one replica; the caller sets `jobs`, the job of each replica.
  std::unique_ptr<ScriptedStrategy> make_scripted() const {
    return std::make_unique<ScriptedStrategy>(make_one_device());
  }
  std::unique_ptr<LeasedBatchSource> make_input(ScriptedJob& job) const;
  // Evaluates the strategy's current values by the evaluator of synchronous replicas.
  Evaluation evaluate(Strategy& strategy) const;

  // Trains synchronously from `start`, whatever values the strategy holds.
  TrainOutcome train_synchronously(Strategy& strategy, const Progress& start);
  // Trains asynchronously, with one job for each replica.
  TrainOutcome train_apart(ScriptedStrategy& strategy, std::vector<ScriptedJob*> jobs);
  TrainOutcome train_apart(ScriptedStrategy& strategy, ScriptedJob& job) {
    return train_apart(strategy, std::vector{&job});
  }

  Progress start{.data = "synthetic", .seed = 5};
  const BadSamples* bad_samples = nullptr;  // for train_synchronously()
  DeferredEvaluations* kept = nullptr;  // shared by all replicas, of which one evaluates at most
  TrainLoopOptions options{.total_epochs = 2, .log_every_steps = 2};
  RecordingMetrics metrics;
  RecordingDisplay display;
  StopPoll stop = [] { return std::nullopt; };
  DataSplits data;
  Graph graph;
  std::string optimizer;
  Schedule schedule;
  EvaluationOptions evaluation{.batch_size = 8};
};

inline const Assignment kLast{.snapshot_id = 7, .evaluates = true, .is_final = true};

inline std::vector<ps::SampleRange> two_epochs() {
  return batches_in_order(AsynchronousCase::kSamples, AsynchronousCase::kBatch, 2);
}

inline std::vector<std::string> strings(std::initializer_list<const char*> texts) {
  return {texts.begin(), texts.end()};
}

// A ScriptedRun trains one replica with a ScriptedJob, and keeps both, so that the test can inspect
// them.
struct ScriptedRun {
  // Trains on the batches in `leases`; `script` fills in the job's script before.
  template <typename Script>
  TrainOutcome train(const Script& script,
                     const std::vector<ps::SampleRange>& leases = two_epochs()) {
    job_.reset();
    strategy_ = run_.make_scripted();
    job_ = std::make_unique<ScriptedJob>(*strategy_, leases);
    script(*job_);
    return run_.train_apart(*strategy_, *job_);
  }

  AsynchronousCase run_;
  std::unique_ptr<ScriptedStrategy> strategy_;
  std::unique_ptr<ScriptedJob> job_;
};

}  // namespace syncopate
