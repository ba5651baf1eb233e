// An evaluator beside a job, as TensorFlow's task type of that name: it takes no part in training,
// but measures each checkpoint that appears in --checkpoint-dir, until the run's last.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <ostream>
#include <thread>

#include "deploy/commands.h"
#include "deploy/device_options.h"
#include "deploy/network_for_data.h"
#include "models/base/connection.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "worker/checkpoint.h"
#include "worker/evaluate.h"
#include "worker/metrics.h"
#include "worker/progress.h"
#include "worker/train_loop.h"

namespace syncopate {
namespace {

constexpr std::chrono::milliseconds kLook(200);

// Whether anybody is left who may write another checkpoint: as long as a job with servers lives, or
// is about to be started again, somebody listens where its tasks meet. Of a job without servers
// nobody does once all have met, so there it knows nothing.
class JobWatch {
 public:
  explicit JobWatch(const TrainOptions& options)
      : server_(options.cluster.num_servers > 0 ? options.cluster.rendezvous : std::nullopt),
        patience_(options.peer_timeout.count() > 0 ? options.peer_timeout : kPeerTimeout) {
    patience_ += kLonger;
    silence_ = Deadline::after(std::max(options.rendezvous_timeout, patience_));
  }

  // There is a new checkpoint: the job has been alive.
  void heard() { silence_ = Deadline::after(patience_); }

  // Calls, if the last time is some while ago. Throws PeerError when nobody has answered for too
  // long.
  void look() {
    if (!server_ || !next_call_.passed()) return;
    try {
      connect_to(*server_, "server 0 at " + to_string(*server_), Deadline::after(kCall));
      heard();
    } catch (const PeerError&) {
      require_patience();
    } catch (const UsageError&) {  // a name that is not known yet, or no longer
      require_patience();
    }
    next_call_ = Deadline::after(kCall);
  }

 private:
  void require_patience() const {
    if (!silence_.passed()) return;
    throw PeerError("nobody has listened at server 0's " + to_string(*server_) + " for " +
                    in_seconds(silence_.patience()) +
                    ", and no checkpoint was the run's last: the job has ended early; start the "
                    "evaluator again with it, or measure a checkpoint with syncopate evaluate");
  }

  static constexpr std::chrono::milliseconds kPeerTimeout{5000};
  // Than a task's death takes to end all: a job that is started again meets anew.
  static constexpr std::chrono::milliseconds kLonger{10000};
  static constexpr std::chrono::milliseconds kCall{1000};

  const std::optional<Endpoint> server_;
  std::chrono::milliseconds patience_;
  Deadline silence_ = Deadline::after({});
  Deadline next_call_ = Deadline::after({});
};

}  // namespace

int run_train_evaluator(const TrainOptions& given, StopSignal& signals, std::ostream& out) {
  TrainOptions options = given;
  find_devices(options);
  const TrainLoopOptions& loop = options.loop;
  if (loop.checkpoint_dir.empty()) {
    throw UsageError(
        "an evaluator reads checkpoints, and this job writes none; give all tasks the same "
        "--checkpoint-dir");
  }
  const DataSplits data =
      open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = options.strategy.seed});
  const Graph graph = network_for_data(options.model, options.data, data);
  const ArenaLayout layout = graph.parameter_layout();
  ParameterArena arena(layout, plan_buckets(layout, options.strategy.bucket_bytes));
  StateBlock state(graph.state_layout());
  BackendOptions on = backend_options(options.strategy, 0);
  on.lanes = std::max(1, on.lanes);
  const auto backend = make_backend(on);
  PartialEvaluator evaluator(*backend, graph, arena, state, *data.test,
                             {.threads = options.input.threads});
  const std::int64_t batch = options.strategy.batch_size_per_replica;
  std::optional<std::filesystem::path> measured;
  JobWatch watch(options);
  while (!signals.poll()) {
    const auto newest = newest_checkpoint(loop.checkpoint_dir);
    if (!newest || newest == measured) {
      watch.look();
      std::this_thread::sleep_for(kLook);
      continue;
    }
    const CheckpointInfo info =
        load_checkpoint(*newest, graph, {arena.values(), {}, state.values}, "", false);
    arena.bump_all_versions();
    measured = newest;
    std::vector<BatchSums> sums(static_cast<std::size_t>(evaluator.batches_of_all()));
    bool was_stopped = false;
    evaluator.run([&] { return was_stopped = was_stopped || signals.poll().has_value(); }, sums);
    if (was_stopped) return 0;
    const Evaluation test = add_up(sums, data.test->size());
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(),
                  "step %lld: test accuracy %.2f%%, test loss %.4f (%lld samples)\n",
                  static_cast<long long>(info.progress.step), 100.0 * test.accuracy, test.loss,
                  static_cast<long long>(test.samples));
    out << line.data() << std::flush;
    if (remaining_steps(loop, info.progress, data.train->size(), batch) <= 0) return 0;
    watch.heard();
  }
  return 0;
}

}  // namespace syncopate
