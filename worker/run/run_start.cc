#include "worker/run/run_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/weights_file.h"
#include "worker/run/run_data.h"
#include "worker/run/run_folder.h"
#include "worker/run/run_sizes.h"
#include "worker/train/class_table.h"
#include "worker/train/metrics.h"
#include "worker/train/tensorboard.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Returns a snapshot in host memory with the shapes of `live`. A file is loaded into it, so that a
// damaged file leaves the live weights unchanged.
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

// A checkpoint's position has no meaning in other data or in another order.
void require_same_samples(const CheckpointInfo& info, const Progress& fresh) {
  const Progress& saved = info.progress;
  const std::string what = "--resume: " + info.path.string() + " was trained ";
  if (saved.data != fresh.data) {
    throw UsageError(what + "on " + saved.data + ", this run has " + fresh.data +
                     "; give that --data, or start a new run with --init-from");
  }
  if (saved.seed != fresh.seed) {
    throw UsageError(fmt::format("{}with --seed {}, this run has --seed {}; give that seed", what,
                                 saved.seed, fresh.seed));
  }
  if (saved.split != fresh.split) {
    const auto text_of_split = [](const std::string& split) {
      return split.empty() ? std::string("without --split") : "with --split " + split;
    };
    throw UsageError(fmt::format("{}{}, this run is {}; give the split of the checkpoint", what,
                                 text_of_split(saved.split), text_of_split(fresh.split)));
  }
  if (saved.data_samples == fresh.data_samples) return;
  if (saved.apply_exif != fresh.apply_exif) {
    throw UsageError(fmt::format("{}{} --exif; {}", what,
                                 saved.apply_exif != 0 ? "with" : "without",
                                 saved.apply_exif != 0 ? "give it" : "leave it out"));
  }
  throw UsageError(what + "on other " + saved.data + " data: " + sizes_of(saved.data_samples) +
                   ", this run has " + differing_sizes(fresh.data_samples, saved.data_samples) +
                   "; give that --data, or start a new run with --init-from");
}

// Returns the value of each flag in a text of update_flags().
std::map<std::string, std::string> values_of(const std::string& flags) {
  std::map<std::string, std::string> values;
  std::istringstream words(flags);
  for (std::string flag, value; words >> flag >> value;) values[flag] = value;
  return values;
}

// Notes which options of a resumed run differ from its checkpoint where such a change is allowed.
void note_differences(const CheckpointInfo& info, const Progress& fresh,
                      std::vector<std::string>& notes) {
  const Progress& saved = info.progress;
  if (saved.samples_per_update != fresh.samples_per_update) {
    notes.push_back(fmt::format("{} samples per update from here on, {} until the checkpoint",
                                fresh.samples_per_update, saved.samples_per_update));
  }
  std::map<std::string, std::string> before = values_of(saved.update_flags);
  std::map<std::string, std::string> now = values_of(fresh.update_flags);
  for (const auto& [flag, value] : before) now.try_emplace(flag, "absent");
  for (const auto& [flag, value] : now) {
    const std::string old = before.try_emplace(flag, "absent").first->second;
    if (value == old) continue;
    notes.push_back(fmt::format("{} {} from here on, {} until the checkpoint", flag, value, old));
  }
}

// Loads the newest undamaged checkpoint of a folder; nothing in a folder without checkpoints.
void resume(const TrainOptions& options, const Graph& graph, const Progress& fresh,
            const Snapshot& like, FirstValues& found) {
  const std::vector<fs::path> checkpoints = checkpoints_in(options.loop.checkpoint_dir);
  for (const fs::path& path : checkpoints) {
    Snapshot values = blank_like(like, true);
    try {
      require_same_network_flags(read_checkpoint_info(path), options.network);
      found.resumed = load_checkpoint(path, graph, values, options.strategy.optimizer.name, true);
    } catch (const DamagedFileError& error) {
      found.damaged.emplace_back(path, error.fault());
      continue;
    }
    require_same_samples(*found.resumed, fresh);
    values.loss_scale = found.resumed->loss_scale;
    values.outer_rate = found.resumed->outer_rate;
    found.values = std::move(values);
    found.notes.push_back(
        fmt::format("resumed from {} at step {}", path.string(), found.resumed->progress.at.step));
    note_differences(*found.resumed, fresh, found.notes);
    std::ranges::copy(found.resumed->notes, std::back_inserter(found.notes));
    if (pushes_displacements(options.strategy.local) &&
        !make_optimizer(options.strategy.optimizer)->slot_names().empty()) {
      found.notes.emplace_back(
          "the optimizer's state of each worker starts at zero: under --push "
          "displacement no checkpoint has it");
    }
    return;
  }
  if (checkpoints.empty()) return;
  const std::size_t older = checkpoints.size() - 1;
  throw FileError(
      found.damaged.front().second + ", and " +
      (older == 0 ? "there is no older one" : fmt::format("so are all older ones ({})", older)) +
      "; choose another --checkpoint-dir, or empty it to start again");
}

// Refuses a new run in a folder with checkpoints: pruning would keep the higher steps of the older
// run and remove the new ones.
void require_empty_folder(const TrainOptions& options) {
  const auto newest = newest_checkpoint(options.loop.checkpoint_dir);
  if (!newest) return;
  throw UsageError("--checkpoint-dir " + options.loop.checkpoint_dir.string() + " already holds " +
                   newest->filename().string() +
                   "; resume it with --resume, or choose another folder");
}

// The position and flags that the chief broadcasts to every task. The skipped ranges are broadcast
// after these numbers, because a task must know the size of each message before it receives it.
struct BroadcastStart {
  std::int64_t loads = 0;    // 1: the chief's values are restored on every task
  std::int64_t resumed = 0;  // 1: from a checkpoint of the run's own folder
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  std::int64_t num_untrained = 0;  // number of skipped ranges that follow
  std::int64_t num_rules = 0;      // size of RunPosition::rules, which follow
};

void broadcast_start(SynchronousJob& job, bool& loads, bool& resumed, ps::RunPosition& at) {
  std::vector<ps::SampleRange>& untrained = at.position.untrained;
  BroadcastStart sent{loads,
                      resumed,
                      at.step,
                      at.samples,
                      at.position.epoch,
                      at.position.offset,
                      static_cast<std::int64_t>(untrained.size()),
                      static_cast<std::int64_t>(at.rules.size())};
  job.broadcast(std::as_writable_bytes(std::span(&sent, 1)));
  loads = sent.loads != 0;
  resumed = sent.resumed != 0;
  untrained.resize(static_cast<std::size_t>(sent.num_untrained));
  if (!untrained.empty()) job.broadcast(std::as_writable_bytes(std::span(untrained)));
  std::vector<double> rules = std::move(at.rules);
  rules.resize(static_cast<std::size_t>(sent.num_rules));
  if (!rules.empty()) job.broadcast(std::as_writable_bytes(std::span(rules)));
  at = {sent.step, sent.samples, {sent.epoch, sent.offset, std::move(untrained)}, std::move(rules)};
}

// Damaged checkpoints would stay the newest ones, and pruning would remove good ones.
void set_aside_damaged(const FirstValues& values) {
  for (const auto& [path, fault] : values.damaged) {
    log(LogLevel::kWarning, fault + "; it is " + set_aside(path).string() +
                                " now, and training resumes " + values.resumed->path.string());
  }
}

}  // namespace

Progress fresh_progress(const TrainOptions& options, const DataSplits& data,
                        std::int64_t global_batch) {
  return {.data = data.name,
          .seed = options.strategy.seed,
          .data_flag = options.data,
          .split = options.split,
          .head = options.network.head,
          .normalize = options.network.normalize,
          .data_samples = describe_training_samples(data),
          .samples_per_update = samples_per_update(options, global_batch),
          .update_flags = update_flags(options),
          .skip_bad_records = options.image.skip_bad_records,
          .apply_exif = options.image.apply_exif ? 1 : 0,
          .image_feature = options.image.fields.image,
          .label_feature = options.image.fields.label,
          .raw_shape = options.image.fields.raw_shape,
          .class_names = join_class_names(data.class_names),
          .table_columns = data.table_columns};
}

void require_same_network_flags(const CheckpointInfo& info, const NetworkFlags& flags) {
  const auto require = [&](const std::string& flag, const std::string& saved,
                           const std::string& own) {
    if (saved == own) return;
    const auto given = [&](const std::string& value) {
      return value.empty() ? "no " + flag : flag + " " + value;
    };
    throw UsageError(fmt::format(
        "checkpoint {} was trained with {}, this run has {}; {}, or give another checkpoint",
        info.path.string(), given(saved), given(own),
        saved.empty() ? "leave the flag out" : "give " + given(saved)));
  };
  require("--head", info.progress.head, flags.head);
  require("--normalize", info.progress.normalize, flags.normalize);
}

FirstValues find_first_values(const TrainOptions& options, const Graph& graph,
                              const Progress& fresh, const Snapshot& like) {
  FirstValues found;
  if (!options.loop.checkpoint_dir.empty()) {
    if (!options.resume) require_empty_folder(options);
    if (options.resume) resume(options, graph, fresh, like, found);
  }
  if (found.resumed) {
    if (!options.init_from.empty()) {
      found.notes.push_back("--init-from " + options.init_from.string() +
                            " is not used, because the run resumes a checkpoint");
    }
    return found;
  }
  if (!options.init_from.empty()) {
    found.values = blank_like(like, false);
    found.notes.push_back("first values " + load_weights(options.init_from, graph,
                                                         options.strategy.seed, *found.values));
  } else if (options.resume) {
    found.notes.push_back("nothing to resume in " + options.loop.checkpoint_dir.string() +
                          ": starting at step 0");
  }
  return found;
}

RunStart start_run(const TrainOptions& options, const Graph& graph, const Progress& fresh,
                   Strategy& strategy) {
  RunStart start{.progress = fresh};
  const std::filesystem::path& folder = options.loop.checkpoint_dir;
  Snapshot first = strategy.snapshot();
  bool loads = false;
  start.progress.at = {};
  if (strategy.is_chief()) {
    if (!folder.empty()) {
      start.folder = std::make_unique<FolderLock>(take_run_folder(folder, options.cluster));
    }
    Snapshot like = first;
    like.slots.clear();
    for (const std::string& name : strategy.slots_to_save()) {
      like.slots.push_back({name, first.values});
    }
    FirstValues values = find_first_values(options, graph, fresh, like);
    if (values.values && !values.resumed) values.values->slots = first.slots;
    set_aside_damaged(values);
    if (values.resumed) {
      loads = start.resumed = true;
      start.progress.at = values.resumed->progress.at;
      start.progress.rounds = values.resumed->progress.rounds;
      // Rules that are not given now must not decide later by evaluations of an earlier run.
      if (!options.loop.rules.any()) start.progress.at.rules.clear();
    }
    if (values.values) {
      loads = true;
      first = *std::move(values.values);
    }
    start.notes = std::move(values.notes);
  } else if (has_servers(options)) {
    if (auto lock = join_run_folder(folder, options.cluster)) {
      start.folder = std::make_unique<FolderLock>(*std::move(lock));
    }
  }
  if (is_synchronous(strategy)) {
    broadcast_start(synchronous_job(strategy), loads, start.resumed, start.progress.at);
  } else if (strategy.is_chief()) {
    // Asynchronous workers append to one metrics file, and one worker at a time reports steps.
    // The lines of an earlier run must be gone before any worker begins.
    start.metrics = make_metrics_writer(options.metrics, start.resumed);
    if (!options.tensorboard.empty()) {
      start.metrics = make_both(std::move(start.metrics),
                                make_tensorboard_writer(options.tensorboard, CurveWriter::kOnly));
    }
  }
  if (loads) strategy.restore(first);
  strategy.begin(start.progress.at);
  return start;
}

}  // namespace syncopate
