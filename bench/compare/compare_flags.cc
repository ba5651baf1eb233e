#include "bench/compare/compare_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <thread>

#include "bench/compare/presets.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/trouble_flags.h"
#include "deploy/cli/flags.h"
#include "deploy/cli/options.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

// The trainer stands beside this program, or in the next folder of the build.
fs::path find_program() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {here / "syncopate", here.parent_path() / "deploy" / "syncopate"}) {
    if (fs::exists(path)) return path;
  }
  return here / "syncopate";
}

// One value behind each flag, however often the flag comes.
void repeat(CLI::Option* option) {
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
}

template <typename T>
void overrule(T& value, const std::optional<T>& said) {
  if (said) value = *said;
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
  TroubleFlags trouble;
  CompareOptions options;
};

CompareFlags::CompareFlags(CLI::App& app) : app_(app), words_(std::make_unique<Words>()) {
  app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  words_->options.report = "comparison";
  declare_variants();
  declare_training();
  words_->trouble.declare(app_);
}

CompareFlags::~CompareFlags() = default;

void CompareFlags::declare_variants() {
  Words& words = *words_;
  CompareOptions& options = words.options;
  repeat(app_.add_option("--strategies", words.strategies,
                         "variants, separated by commas: STRATEGY[:CONSISTENCY[:N]][+backup:K]"
                         "[+inverse|+dc|+dc-adaptive]; default: every strategy")
             ->delimiter(','));
  std::string help = "instead, an experiment:";
  for (const PresetRow& row : presets()) {
    help += "\n  " + std::string(row.name) + ": " + std::string(row.help);
  }
  app_.add_option("--preset", words.preset, help);
  app_.add_option("--workers", words.workers, "of each variant")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app_.add_option("--servers", words.servers, "of parameter-server")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app_.add_option(
          "--clock", words.clock,
          "real (processes on this machine) | virtual (simulated time, the same everywhere)")
      ->capture_default_str();
  app_.add_option("--target-accuracy", words.target_accuracy,
                  "whose time is compared, from 0 to 1 (0.95)")
      ->check(CLI::Range(0.0, 1.0));
  app_.add_option("--evaluations", words.evaluations, "over a run (20)")
      ->check(CLI::Range(1, 10000));
  app_.add_option("--report", options.report, "folder of the results")->capture_default_str();
  app_.add_flag("--replace", options.replace, "what another comparison has left in that folder");
  app_.add_option("--program", options.program, "the syncopate to run (the one beside this)");
  app_.add_option("--jobs", words.jobs, "virtual runs at once (the CPUs)")
      ->check(CLI::Range(1, 1024));
  app_.add_flag("!--no-progress", options.show_progress, "notes only, no progress line");
}

void CompareFlags::declare_training() {
  Words& words = *words_;
  CompareOptions& options = words.options;
  const std::string group = "What is trained";
  app_.add_option("--model", options.model, "a network of train")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--data", options.data, "as train's")->capture_default_str()->group(group);
  app_.add_option("--epochs", words.epochs, "passes over the data, of every variant (2)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app_.add_option("--batch-size-per-replica", options.batch_size_per_replica, "of every worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app_.add_option("--budget", words.budget,
                  "what all variants have alike: samples (--epochs) | updates (--updates) | "
                  "seconds (--seconds)")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--updates", options.updates, "of every variant, with --budget updates")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app_.add_option("--seconds", options.seconds, "of training, with --budget seconds")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app_.add_option("--seeds", words.seeds, "runs of each variant, from seed 1 on (3)")
      ->check(CLI::Range(1, 1000))
      ->group(group);
  app_.add_option("train_flags", words.train_flags,
                  "further flags of train for every run, after --")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CompareOptions CompareFlags::options(const Environment& environment) const {
  const Words& words = *words_;
  CompareOptions options = words.options;
  options.shared = parse_shared_train_flags(words.train_flags);
  require_name("--clock", words.clock, {"real", "virtual"});
  require_name("--budget", words.budget, {"samples", "updates", "seconds"});
  options.clock = words.clock == "virtual" ? Clock::kVirtual : Clock::kReal;
  options.budget = words.budget == "updates"   ? Budget::kUpdates
                   : words.budget == "seconds" ? Budget::kSeconds
                                               : Budget::kSamples;
  if ((options.budget == Budget::kUpdates) != (options.updates > 0)) {
    throw UsageError("--updates N and --budget updates belong together");
  }
  if ((options.budget == Budget::kSeconds) != (options.seconds > 0.0)) {
    throw UsageError("--seconds S and --budget seconds belong together");
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
  overrule(options.epochs, words.epochs);
  overrule(options.seeds, words.seeds);
  overrule(options.evaluations, words.evaluations);
  overrule(options.target_accuracy, words.target_accuracy);
  options.jobs =
      words.jobs.value_or(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  words.trouble.apply(options);
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
    require_used(app_, flag, false, "--preset says it; leave one of them out");
  }
  const auto row = std::ranges::find(presets(), std::string_view(words_->preset), &PresetRow::name);
  if (!row->data.empty() && app_.count("--data") == 0) {
    throw UsageError("--preset " + words_->preset + ": its data is missing; give --data " +
                     std::string(row->data));
  }
  row->apply(options);
}

}  // namespace syncopate::bench
