#include "deploy/run_start.h"

#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "deploy/run_folder.h"
#include "deploy/run_sizes.h"
#include "models/base/errors.h"
#include "worker/metrics.h"

namespace syncopate {
namespace {

// Pruning keeps the highest steps, which would be those of an older run in the same folder.
std::optional<std::filesystem::path> find_checkpoint(const TrainOptions& options) {
  const std::filesystem::path& folder = options.loop.checkpoint_dir;
  if (folder.empty()) return std::nullopt;
  const auto newest = newest_checkpoint(folder);
  if (newest && !options.resume) {
    throw UsageError("--checkpoint-dir " + folder.string() + " already holds " +
                     newest->filename().string() +
                     "; add --resume to go on from it, or choose another folder");
  }
  return newest;
}

// Host memory of the snapshot's shapes, so that a damaged file leaves the live weights alone.
Snapshot blank_like(const Snapshot& live, bool with_slots) {
  Snapshot blank;
  blank.values = make_host_tensor(live.values.shape(), DType::kF32);
  blank.state = make_host_tensor(live.state.shape(), DType::kF32);
  for (const Snapshot::Slot& slot : live.slots) {
    blank.slots.push_back(
        {slot.name, with_slots ? make_host_tensor(slot.values.shape(), DType::kF32) : slot.values});
  }
  return blank;
}

// The position in the checkpoint means nothing in other data or in another order of them.
void require_same_samples(const CheckpointInfo& info, const std::string& data, std::uint64_t seed) {
  if (info.progress.data != data) {
    throw UsageError("--resume: " + info.path.string() + " was trained on " + info.progress.data +
                     ", this run has " + data +
                     "; give the same --data, or --init-from to start anew");
  }
  if (info.progress.seed == seed) return;
  throw UsageError("--resume: " + info.path.string() + " was trained with --seed " +
                   std::to_string(info.progress.seed) + ", this run has --seed " +
                   std::to_string(seed) + "; give the same");
}

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

}  // namespace

RunStart start_run(const TrainOptions& options, const Graph& graph, const std::string& data_name,
                   Strategy& strategy) {
  const std::string& optimizer = options.strategy.optimizer.name;
  RunStart start{.progress = {.data = data_name, .seed = options.strategy.seed}, .note = ""};
  Snapshot loaded = strategy.snapshot();
  Found found;
  std::vector<ps::SampleRange> untrained;
  if (strategy.is_chief()) {
    const std::filesystem::path& folder = options.loop.checkpoint_dir;
    if (!folder.empty()) start.folder = take_run_folder(folder, options.cluster);
    const auto newest = find_checkpoint(options);
    if (newest) {
      loaded = blank_like(loaded, true);
      const CheckpointInfo info = load_checkpoint(*newest, graph, loaded, optimizer, true);
      require_same_samples(info, data_name, options.strategy.seed);
      loaded.loss_scale = info.loss_scale;
      found = {1,
               1,
               info.progress.step,
               info.progress.samples,
               info.progress.position.epoch,
               info.progress.position.offset,
               static_cast<std::int64_t>(info.progress.position.untrained.size())};
      untrained = info.progress.position.untrained;
      start.note =
          "resumed from " + newest->string() + " at step " + std::to_string(info.progress.step);
    } else if (!options.init_from.empty()) {
      loaded = blank_like(loaded, false);
      load_checkpoint(options.init_from, graph, loaded, optimizer, false);
      found.loads = 1;
      start.note = "first values from " + options.init_from.string();
    } else if (options.resume) {
      start.note =
          "nothing to resume in " + options.loop.checkpoint_dir.string() + ": starting fresh";
    }
  } else if (has_servers(options)) {
    start.folder = join_run_folder(options.loop.checkpoint_dir, options.cluster);
  }
  // Workers that keep no step append to one file, each from when it speaks for all: what an earlier
  // run left there must be gone before any of them begins.
  if (strategy.is_chief() && strategy.asynchronous_job(0) != nullptr && found.resumed == 0) {
    make_metrics_writer(options.metrics, false);
  }
  strategy.broadcast(std::as_writable_bytes(std::span(&found, 1)));
  untrained.resize(static_cast<std::size_t>(found.num_untrained));
  if (!untrained.empty()) strategy.broadcast(std::as_writable_bytes(std::span(untrained)));
  if (found.loads != 0) strategy.restore(loaded);
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
