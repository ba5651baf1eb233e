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

// What the chief found, as all tasks hear of it.
struct Found {
  std::int64_t loads = 0;  // 0: nothing to restore
  std::int64_t resumed = 0;
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  std::int64_t num_untrained = 0;  // ranges, which follow in a message of their own
};

// Else they would stay the newest, and push others out when old ones are removed.
void set_aside_damaged(const FirstValues& values) {
  for (const auto& [path, fault] : values.damaged) {
    log(LogLevel::kWarning, fault + "; it is " + set_aside(path).string() +
                                " now, and training goes on from " + values.resumed->path.string());
  }
}

}  // namespace

RunStart start_run(const TrainOptions& options, const Graph& graph, const Progress& fresh,
                   Strategy& strategy) {
  RunStart start{.progress = fresh};
  const std::filesystem::path& folder = options.loop.checkpoint_dir;
  Snapshot first = strategy.snapshot();
  Found found;
  std::vector<ps::SampleRange> untrained;
  if (strategy.is_chief()) {
    if (!folder.empty()) start.folder = take_run_folder(folder, options.cluster);
    FirstValues values = find_first_values(options, graph, fresh, first);
    set_aside_damaged(values);
    if (values.resumed) {
      const Progress& progress = values.resumed->progress;
      found = {1,
               1,
               progress.step,
               progress.samples,
               progress.position.epoch,
               progress.position.offset,
               static_cast<std::int64_t>(progress.position.untrained.size())};
      untrained = progress.position.untrained;
    }
    if (values.values) {
      found.loads = 1;
      first = *std::move(values.values);
    }
    start.notes = std::move(values.notes);
  } else if (has_servers(options)) {
    start.folder = join_run_folder(folder, options.cluster);
  }
  // Workers that keep no step append to one file, each from when it speaks for all: what an earlier
  // run left there must be gone before any of them begins.
  if (strategy.is_chief() && strategy.asynchronous_job(0) != nullptr && found.resumed == 0) {
    make_metrics_writer(options.metrics, false);
  }
  strategy.broadcast(std::as_writable_bytes(std::span(&found, 1)));
  untrained.resize(static_cast<std::size_t>(found.num_untrained));
  if (!untrained.empty()) strategy.broadcast(std::as_writable_bytes(std::span(untrained)));
  if (found.loads != 0) strategy.restore(first);
  start.resumed = found.resumed != 0;
  start.progress.step = found.step;
  start.progress.samples = found.samples;
  start.progress.position = {found.epoch, found.offset, std::move(untrained)};
  const DataPosition& position = start.progress.position;
  strategy.begin({.step = found.step,
                  .samples = found.samples,
                  .position = {position.epoch, position.offset, position.untrained}});
  return start;
}

}  // namespace syncopate
