#include "bench/compare/compare_flags.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "bench/compare/compare_fault_flags.h"
#include "bench/compare/presets.h"
#include "bench/compare/train_flags.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

// syncopate is in the folder of this program, or in the neighbouring folder of the build.
fs::path find_program() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {here / "syncopate", here.parent_path() / "deploy" / "syncopate"}) {
    if (fs::exists(path)) return path;
  }
  return here / "syncopate";
}

template <typename T>
void override_if_given(T& value, const std::optional<T>& given) {
  if (given) value = *given;
}

}  // namespace

struct CompareFlags::Words {
  std::vector<std::string> strategies;
  std::string preset;
  int workers = 4;
  int servers = 2;
  std::string clock = "real";
  std::string budget = "samples";
  std::optional<std::int64_t> epochs;
  std::optional<int> seeds;
  std::optional<int> evaluations;
  std::optional<double> target_accuracy;
  std::optional<int> jobs;
  std::vector<std::string> train_flags;
  bool hides_progress = false;
  CompareFaultFlags faults;
  CompareOptions options;
};

CompareFlags::CompareFlags(FlagSet& flags) : flags_(flags), words_(std::make_unique<Words>()) {
  words_->options.report = "comparison";
  declare_variants();
  declare_training();
  words_->faults.declare(flags_);
}

CompareFlags::~CompareFlags() = default;

void CompareFlags::declare_variants() {
  Words& words = *words_;
  CompareOptions& options = words.options;
  flags_.begin_group("Strategy and devices");
  flags_.add("--strategies", &words.strategies,
             "variants: STRATEGY[:CONSISTENCY[:N]][+backup:K][+inverse|+dc|+dc-adaptive]",
             {.value = "VARIANT,...",
              .default_text = "every strategy",
              .separator = ',',
              .repeats = true});
  std::string help = "experiment with its own variants, in place of --strategies:";
  for (const PresetRow& row : presets()) {
    help += "\n" + std::string(row.name) + ": " + std::string(row.help);
  }
  flags_.add("--preset", &words.preset, help, {.value = "NAME"});
  flags_.add("--workers", &words.workers, "workers of each variant", {.least = 1, .most = 1024});
  flags_.add("--servers", &words.servers, "servers of parameter-server",
             {.least = 1, .most = 1024});
  flags_.add("--clock", &words.clock,
             "clock of the runs (real: processes on this machine; virtual: simulated time, equal "
             "on every machine)",
             {.choices = {"real", "virtual"}});
  flags_.add("--jobs", &words.jobs, "virtual runs at a time",
             {.default_text = "the number of CPUs", .least = 1, .most = 1024});
  flags_.add("--program", &options.program, "syncopate program of the real runs",
             {.value = "FILE", .default_text = "the one beside this program"});
  flags_.begin_group("Checkpoints and output");
  flags_.add("--report", &options.report, "folder of the results", {.value = "DIR"});
  flags_.add("--replace", &options.replace,
             "removal of what another comparison has left in that folder");
  flags_.add("--no-progress", &words.hides_progress, "notes only, no progress line");
}

void CompareFlags::declare_training() {
  Words& words = *words_;
  CompareOptions& options = words.options;
  flags_.begin_group("Model and data");
  flags_.add("--model", &options.model, "network of train", {.value = "NAME"});
  flags_.add("--data", &options.data, "data set of train", {.value = "NAME"});
  flags_.add("--batch-size-per-replica", &options.batch_size_per_replica,
             "samples per worker and step", {.least = 1});
  flags_.begin_group("Optimizer and schedule");
  flags_.add("--budget", &words.budget,
             "quantity that all variants have in common: samples (--epochs), updates (--updates) "
             "or seconds (--seconds)",
             {.choices = {"samples", "updates", "seconds"}});
  flags_.add("--epochs", &words.epochs, "passes of every variant over the data",
             {.default_text = "2", .least = 1});
  flags_.add("--updates", &options.updates, "updates of every variant, with --budget updates",
             {.default_text = "none", .least = 1});
  flags_.add("--seconds", &options.seconds, "training time, with --budget seconds",
             {.unit = "seconds", .default_text = "none", .above = 0.0});
  flags_.add("--seeds", &words.seeds, "runs of each variant, with seeds from 1",
             {.default_text = "3", .least = 1, .most = 1000});
  flags_.add("--evaluations", &words.evaluations, "evaluations of a run",
             {.default_text = "20", .least = 1, .most = 10000});
  flags_.add("--target-accuracy", &words.target_accuracy,
             "test accuracy from 0 to 1 up to which time is compared",
             {.default_text = "0.95", .least = 0.0, .most = 1.0});
  flags_.take_rest(words.train_flags, "[FLAGS OF train]", "flags of train");
}

CompareOptions CompareFlags::options(const Environment& environment) const {
  const Words& words = *words_;
  CompareOptions options = words.options;
  options.shared = parse_shared_train_flags(words.train_flags);
  options.show_progress = !words.hides_progress;
  options.clock = words.clock == "virtual" ? Clock::kVirtual : Clock::kReal;
  options.budget = words.budget == "updates"   ? Budget::kUpdates
                   : words.budget == "seconds" ? Budget::kSeconds
                                               : Budget::kSamples;
  if ((options.budget == Budget::kUpdates) != (options.updates > 0)) {
    throw UsageError("--updates N and --budget updates require each other");
  }
  if ((options.budget == Budget::kSeconds) != (options.seconds > 0.0)) {
    throw UsageError("--seconds S and --budget seconds require each other");
  }
  if (!words.preset.empty()) {
    apply_preset(options);
  } else if (words.strategies.empty()) {
    for (const char* word : kEveryStrategy) {
      const Variant variant = parse_variant(word, words.workers, words.servers);
      if (variant.backup_workers < variant.workers) {
        options.variants.push_back(variant);
      } else {
        options.left_out.push_back(variant.label + ": at least one worker must be waited for");
      }
    }
  } else {
    for (const std::string& word : words.strategies) {
      options.variants.push_back(parse_variant(word, words.workers, words.servers));
    }
  }
  override_if_given(options.epochs, words.epochs);
  override_if_given(options.seeds, words.seeds);
  override_if_given(options.evaluations, words.evaluations);
  override_if_given(options.target_accuracy, words.target_accuracy);
  options.jobs =
      words.jobs.value_or(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  words.faults.apply(options);
  if (options.program.empty()) options.program = find_program();
  if (options.clock == Clock::kReal && !fs::exists(options.program)) {
    throw UsageError("--program " + options.program.string() +
                     ": no such file; build syncopate, or say where it is");
  }
  options.cache_dir = default_cache_dir(environment);
  return options;
}

void CompareFlags::apply_preset(CompareOptions& options) const {
  Names names;
  for (const PresetRow& row : presets()) names.emplace_back(row.name);
  require_name("--preset", words_->preset, names);
  for (const char* flag : {"--strategies", "--workers", "--servers", "--model",
                           "--batch-size-per-replica", "--budget", "--updates", "--seconds"}) {
    if (flags_.has(flag)) {
      throw UsageError(std::string(flag) + ": --preset sets it; leave one of them out");
    }
  }
  const auto row = std::ranges::find(presets(), std::string_view(words_->preset), &PresetRow::name);
  if (!row->data.empty() && !flags_.has("--data")) {
    throw UsageError("--preset " + words_->preset + ": its data set is missing; give --data " +
                     std::string(row->data));
  }
  row->apply(options);
}

}  // namespace syncopate::bench
