// Runs an evaluator beside a job, like TensorFlow's task type of that name. The evaluator takes no
// part in training; it measures each checkpoint that appears in --checkpoint-dir, until the run's
// last one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <set>
#include <thread>
#include <utility>

#include "deploy/commands/commands.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/connection.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/run/run_devices.h"
#include "worker/run/run_sizes.h"
#include "worker/run/run_start.h"
#include "worker/train/evaluate.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"
#include "worker/train/train_loop.h"

namespace syncopate {
namespace {

constexpr std::chrono::milliseconds kPollInterval(200);

// Decides whether the job can still write another checkpoint. Server 0 of a job with servers
// listens at the rendezvous address as long as the job lives or is about to be started again. A job
// without servers stops listening once its tasks have met, so for such a job this class does
// nothing.
class JobWatch {
 public:
  explicit JobWatch(const TrainOptions& options)
      : server_(options.cluster.num_servers > 0 ? options.cluster.rendezvous.endpoint
                                                : std::nullopt),
        timeout_(options.peer_timeout.count() > 0 ? options.peer_timeout : kPeerTimeout) {
    timeout_ += kLonger;
    silent_until_ = Deadline::after(std::max(options.rendezvous_timeout, timeout_));
  }

  // Records that the job is alive, because a new checkpoint or an answer has been seen.
  void on_answer() { silent_until_ = Deadline::after(timeout_); }

  // Connects to server 0 if the last attempt was more than kCall ago. Returns whether the last
  // attempt was answered.
  bool is_server_reached() {
    if (!server_ || !next_call_.passed()) return is_reached_;
    try {
      connect_to(*server_, "server 0 at " + to_string(*server_), Deadline::after(kCall));
      is_reached_ = true;
      on_answer();
    } catch (const PeerError&) {
      is_reached_ = false;
    } catch (const UsageError&) {  // the host's name is not known yet, or no longer
      is_reached_ = false;
    }
    next_call_ = Deadline::after(kCall);
    return is_reached_;
  }

  // Throws PeerError if the address has not answered for longer than the timeout.
  void check_timeout() const {
    if (!server_ || !silent_until_.passed()) return;
    throw PeerError("no task has listened at server 0's " + to_string(*server_) + " for " +
                    in_seconds(silent_until_.timeout()) +
                    ", and no checkpoint was the run's last: the job has ended early; start the "
                    "evaluator again with it, or measure a checkpoint with syncopate evaluate");
  }

 private:
  static constexpr std::chrono::milliseconds kPeerTimeout{5000};
  // The time added to the peer timeout. It covers the end of all tasks after one has failed and the
  // second rendezvous of a job that is started again.
  static constexpr std::chrono::milliseconds kLonger{10000};
  static constexpr std::chrono::milliseconds kCall{1000};

  const std::optional<Endpoint> server_;
  std::chrono::milliseconds timeout_;
  Deadline silent_until_ = Deadline::after({});
  Deadline next_call_ = Deadline::after({});
  bool is_reached_ = false;
};

// Selects the checkpoint of a folder that is to be measured next.
class NewestCheckpoint {
 public:
  // Selects checkpoints of a folder. `target` receives the values and outlives this object.
  NewestCheckpoint(std::filesystem::path folder, const Graph& graph, Snapshot target)
      : folder_(std::move(folder)), graph_(graph), target_(std::move(target)) {}

  // Loads the newest undamaged checkpoint. Returns nothing if the folder has none or if that
  // checkpoint has been loaded already. Throws what load_checkpoint() throws, except for a damaged
  // file, which is logged once.
  std::optional<CheckpointInfo> load_another() {
    for (const std::filesystem::path& path : checkpoints_in(folder_)) {
      if (path == loaded_) return std::nullopt;
      if (damaged_.contains(path)) continue;
      try {
        CheckpointInfo info = load_checkpoint(path, graph_, target_, "", false);
        if (info.has_average) load_average(path, graph_, target_.values);
        loaded_ = path;
        return info;
      } catch (const DamagedFileError& error) {
        log(LogLevel::kWarning, error.fault() + "; it is not measured");
        damaged_.insert(path);
      } catch (const FileError&) {
        std::error_code unseen;
        if (std::filesystem::exists(path, unseen)) throw;
        return std::nullopt;  // the job has removed this checkpoint since, because newer ones exist
      }
    }
    return std::nullopt;
  }

 private:
  const std::filesystem::path folder_;
  const Graph& graph_;
  const Snapshot target_;
  std::filesystem::path loaded_;
  std::set<std::filesystem::path> damaged_;
};

}  // namespace

int run_train_evaluator(const TrainOptions& given, const Workload& workload, StopSignal& signals,
                        std::ostream& out) {
  TrainOptions options = given;
  find_devices(options);
  const TrainLoopOptions& loop = options.loop;
  if (loop.checkpoint_dir.empty()) {
    throw UsageError(
        "an evaluator reads checkpoints, and this job writes none; give all tasks the same "
        "--checkpoint-dir");
  }
  const DataSplits data = workload.open_data({.cache_dir = options.cache_dir,
                                              .seed = options.strategy.seed,
                                              .split = options.split,
                                              .image = options.image,
                                              .local_tasks = options.cluster.local_size});
  const Graph graph = workload.make_network(data);
  const ArenaLayout layout = graph.parameter_layout();
  ParameterArena arena(layout, plan_buckets(layout, options.strategy.bucket_bytes));
  StateBlock state(graph.state_layout());
  BackendOptions on = backend_options(options.strategy, 0);
  on.lanes = std::max(1, on.lanes);
  const auto backend = make_backend(on);
  PartialEvaluator evaluator(
      *backend, graph, arena, state, data.watched(),
      {.threads = options.input.threads, .autotune = choose_autotune(options, nullptr)});
  const std::int64_t batch = options.strategy.batch_size_per_replica;
  NewestCheckpoint newest(loop.checkpoint_dir, graph, {arena.values(), {}, state.values});
  JobWatch watch(options);
  // Asynchronous workers write one more checkpoint after the evaluation that ends training, before
  // the servers end. A job without servers ends with that evaluation.
  bool ends_by_rules = false;
  bool is_over = false;
  while (!signals.poll()) {
    const auto info = newest.load_another();
    if (!info) {
      if (is_over) return 0;
      is_over = !watch.is_server_reached() && ends_by_rules;
      if (!is_over) watch.check_timeout();
      std::this_thread::sleep_for(kPollInterval);
      continue;
    }
    require_same_network_flags(*info, options.network);
    arena.bump_all_versions();
    const auto test = evaluator.run([&] { return signals.poll().has_value(); });
    if (!test) return 0;
    const char* const split = data.validation != nullptr ? "validation" : "test";
    out << fmt::format("step {}: {} {} {}, {} loss {:.4f} ({} samples)\n", info->progress.at.step,
                       split, test->metric.name(), to_text(test->metric), split, test->loss,
                       test->samples)
        << std::flush;
    if (remaining_steps(loop, info->progress, data.train->size(), batch) <= 0) return 0;
    ends_by_rules = EvaluationRules(loop.rules, info->progress.at.rules).ends_training();
    watch.on_answer();
  }
  return 0;
}

}  // namespace syncopate
