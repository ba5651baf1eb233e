// `syncopate train`: opens what the flags name, in the order in which mistakes are cheapest,
// trains, reports.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ostream>

#include "deploy/commands.h"
#include "deploy/network_for_data.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/stop_signal.h"
#include "worker/train_loop.h"

namespace syncopate {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitRequeue = 75;  // EX_TEMPFAIL of sysexits.h: try again

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

template <typename... Values>
std::string formatted(const char* pattern, Values... values) {
  const int length = std::snprintf(nullptr, 0, pattern, values...);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), pattern, values...);
  text.pop_back();
  return text;
}

// The folder exists and takes files: better known now than after an epoch.
void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    throw FileError("--checkpoint-dir " + folder.string() + ": cannot create the folder: " +
                    (error ? error.message() : "a file of that name exists"));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw FileError(describe_errno("write into --checkpoint-dir", folder.string(), errno));
  }
}

// The checkpoint to go on from, if the run shall and can. Throws UsageError where a fresh run would
// mix with an older one: pruning keeps the highest steps, which would be the old run's.
std::optional<std::filesystem::path> find_start(const TrainOptions& options,
                                                ProgressDisplay& display) {
  const std::filesystem::path& folder = options.loop.checkpoint_dir;
  if (folder.empty() || !std::filesystem::is_directory(folder)) {
    if (options.resume)
      display.note("nothing to resume in " + folder.string() + ": starting fresh");
    return std::nullopt;
  }
  const auto newest = newest_checkpoint(folder);
  if (newest && !options.resume) {
    throw UsageError("--checkpoint-dir " + folder.string() + " already holds " +
                     newest->filename().string() +
                     "; add --resume to go on from it, or choose another folder");
  }
  if (!newest && options.resume) {
    display.note("nothing to resume in " + folder.string() + ": starting fresh");
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

CheckpointInfo restore(const std::filesystem::path& path, const Graph& graph, Strategy& strategy,
                       const std::string& optimizer, bool with_slots) {
  const Snapshot loaded = blank_like(strategy.snapshot(), with_slots);
  CheckpointInfo info = load_checkpoint(path, graph, loaded, optimizer, with_slots);
  strategy.restore(loaded);
  return info;
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

Summary summary_of(const TrainOptions& options, Strategy& strategy, const TrainOutcome& outcome) {
  return {.strategy = options.strategy.name,
          .model = options.model,
          .data = options.data,
          .device = strategy.replicas().front().backend->description(),
          .replicas = strategy.replicas_in_sync(),
          .steps = outcome.progress.step,
          .samples = outcome.progress.samples,
          .seconds = outcome.seconds,
          .samples_per_second = outcome.samples_per_second,
          .train_loss = outcome.train_loss,
          .test_accuracy = outcome.test->accuracy,
          .test_loss = outcome.test->loss,
          .input_wait_fraction = outcome.input_wait_fraction,
          .peak_memory_bytes = peak_memory_bytes(),
          .weights_hash = outcome.weights_hash};
}

void print_result(const TrainOptions& options, const Summary& summary, const TrainOutcome& outcome,
                  std::ostream& out) {
  out << formatted("test accuracy   %.2f%%\n", 100.0 * summary.test_accuracy)
      << formatted("test loss       %.4f\n", summary.test_loss);
  if (summary.seconds > 0.0) {
    out << formatted("training        %.1f s, %.0f samples/s, %.2f%% of it waiting for input\n",
                     summary.seconds, summary.samples_per_second,
                     100.0 * summary.input_wait_fraction);
  }
  out << "steps           " << summary.steps << '\n'
      << "weights hash    " << summary.weights_hash << '\n'
      << "checkpoint      "
      << (outcome.checkpoint ? outcome.checkpoint->string()
                             : std::string("none: --checkpoint-dir DIR keeps one"))
      << '\n';
  if (!options.metrics.empty()) out << "metrics         " << options.metrics.string() << '\n';
  out << std::flush;
}

int report_stop(const TrainOutcome& outcome, ProgressDisplay& display) {
  const std::string when =
      "stopped by " + *outcome.stopped_by + " after step " + std::to_string(outcome.progress.step);
  if (outcome.checkpoint) {
    display.note(when + "; saved " + outcome.checkpoint->string() +
                 "; --resume goes on from there");
    return kExitRequeue;
  }
  display.note("syncopate: " + when + "; nothing was saved: there is no --checkpoint-dir");
  return kExitFailed;
}

}  // namespace

int run_train(const TrainOptions& options, std::ostream& out) {
  StopSignal signals;  // before the first thread
  const auto display = make_progress_display(options.show_progress);
  const std::int64_t batch_size = options.strategy.batch_size_per_replica;

  const DataSplits data =
      open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = options.strategy.seed});
  if (batch_size > data.train->size()) {
    throw UsageError("batch of " + std::to_string(batch_size) + ": --data " + options.data +
                     " has only " + std::to_string(data.train->size()) +
                     " samples to train on; choose a smaller batch");
  }
  if (options.input.augment == Augment::kCropFlip && !data.suits_crop_flip) {
    log(LogLevel::kWarning,
        "--augment crop-flip mirrors images, and a mirrored one may be of another class in " +
            options.data);
  }
  const Graph graph = network_for_data(options.model, options.data, data);
  const std::int64_t steps_per_epoch = data.train->size() / batch_size;
  ScheduleOptions schedule_options = options.schedule;
  schedule_options.total_epochs =
      options.loop.total_steps
          ? static_cast<double>(*options.loop.total_steps) / static_cast<double>(steps_per_epoch)
          : static_cast<double>(options.loop.total_epochs);
  const Schedule schedule(schedule_options);

  const auto newest = find_start(options, *display);
  const auto strategy = make_strategy(options.strategy, graph);
  Progress start{.data = data.name, .seed = options.strategy.seed};
  if (newest) {
    const CheckpointInfo info =
        restore(*newest, graph, *strategy, options.strategy.optimizer.name, true);
    require_same_samples(info, data.name, options.strategy.seed);
    start = info.progress;
    display->note("resumed from " + newest->string() + " at step " + std::to_string(start.step));
  } else if (!options.init_from.empty()) {
    restore(options.init_from, graph, *strategy, options.strategy.optimizer.name, false);
    display->note("first values from " + options.init_from.string());
  }
  if (!options.loop.checkpoint_dir.empty()) make_folder(options.loop.checkpoint_dir);
  const auto metrics = make_metrics_writer(options.metrics, newest.has_value());

  Replica& replica = strategy->replicas().front();
  Evaluator evaluator(*replica.backend, graph, *replica.arena, *replica.state, *data.test,
                      {.threads = options.input.threads});
  InputOptions input_options = options.input;
  input_options.batch_size = batch_size;
  input_options.seed = options.strategy.seed;
  input_options.shard_index = strategy->input_shard().index;
  input_options.shard_count = strategy->input_shard().count;
  const auto input = make_batch_source(*data.train, input_options, start.position);
  display->note(formatted("%s, %lld parameters, on %s: %lld samples, %lld steps per epoch; %s",
                          options.model.c_str(), static_cast<long long>(graph.num_parameters()),
                          options.data.c_str(), static_cast<long long>(data.train->size()),
                          static_cast<long long>(steps_per_epoch),
                          replica.backend->description().c_str()));

  const TrainOutcome outcome = train({.graph = graph,
                                      .strategy = *strategy,
                                      .input = *input,
                                      .dataset_size = data.train->size(),
                                      .global_batch = batch_size * strategy->input_shard().count,
                                      .schedule = schedule,
                                      .optimizer = options.strategy.optimizer.name,
                                      .evaluator = evaluator,
                                      .metrics = *metrics,
                                      .display = *display,
                                      .stop = [&signals] { return signals.poll(); }},
                                     options.loop, start);
  if (outcome.stopped_by) return report_stop(outcome, *display);
  if (outcome.progress.step == start.step) {
    display->note("nothing left to train: " + std::to_string(start.step) + " steps are done");
  }
  const Summary summary = summary_of(options, *strategy, outcome);
  metrics->write(summary);
  print_result(options, summary, outcome, out);
  return 0;
}

}  // namespace syncopate
