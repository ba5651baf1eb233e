#include "worker/run/run_start.h"

#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/base/log.h"
#include "worker/run/first_values.h"
#include "worker/run/run_folder.h"
#include "worker/run/run_sizes.h"
#include "worker/train/metrics.h"

namespace syncopate {
namespace {

// The chief's position and flags reach every task. The ranges follow the numbers, because a task
// must know the size of what it receives.
struct BroadcastStart {
  std::int64_t loads = 0;    // 1: the chief's values are restored on every task
  std::int64_t resumed = 0;  // 1: from a checkpoint of the run's own folder
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  std::int64_t num_untrained = 0;  // ranges
};

void broadcast_start(SynchronousJob& job, bool& loads, bool& resumed, ps::RunPosition& at) {
  std::vector<ps::SampleRange>& untrained = at.position.untrained;
  BroadcastStart sent{loads,
                      resumed,
                      at.step,
                      at.samples,
                      at.position.epoch,
                      at.position.offset,
                      static_cast<std::int64_t>(untrained.size())};
  job.broadcast(std::as_writable_bytes(std::span(&sent, 1)));
  loads = sent.loads != 0;
  resumed = sent.resumed != 0;
  untrained.resize(static_cast<std::size_t>(sent.num_untrained));
  if (!untrained.empty()) job.broadcast(std::as_writable_bytes(std::span(untrained)));
  at = {sent.step, sent.samples, {sent.epoch, sent.offset, std::move(untrained)}};
}

// Damaged checkpoints would stay the newest ones, and pruning would remove good ones.
void set_aside_damaged(const FirstValues& values) {
  for (const auto& [path, fault] : values.damaged) {
    log(LogLevel::kWarning, fault + "; it is " + set_aside(path).string() +
                                " now, and training resumes " + values.resumed->path.string());
  }
}

}  // namespace

RunStart start_run(const TrainOptions& options, const Graph& graph, const Progress& fresh,
                   Strategy& strategy) {
  RunStart start{.progress = fresh};
  const std::filesystem::path& folder = options.loop.checkpoint_dir;
  Snapshot first = strategy.snapshot();
  bool loads = false;
  start.progress.at = {};
  if (strategy.is_chief()) {
    if (!folder.empty()) start.folder = take_run_folder(folder, options.cluster);
    FirstValues values = find_first_values(options, graph, fresh, first);
    set_aside_damaged(values);
    if (values.resumed) {
      loads = start.resumed = true;
      start.progress.at = values.resumed->progress.at;
    }
    if (values.values) {
      loads = true;
      first = *std::move(values.values);
    }
    start.notes = std::move(values.notes);
  } else if (has_servers(options)) {
    start.folder = join_run_folder(folder, options.cluster);
  }
  if (is_synchronous(strategy)) {
    broadcast_start(synchronous_job(strategy), loads, start.resumed, start.progress.at);
  } else if (strategy.is_chief() && !start.resumed) {
    // Asynchronous workers append to one file, each from the time when it becomes the reporter. The
    // lines of an earlier run must be gone before any of them begins.
    make_metrics_writer(options.metrics, false);
  }
  if (loads) strategy.restore(first);
  strategy.begin(start.progress.at);
  return start;
}

}  // namespace syncopate
