#include "bench/compare/compare_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <thread>

#include "bench/compare/presets.h"
#include "deploy/flags.h"
#include "deploy/link_options.h"
#include "deploy/options.h"
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

// launch starts those that were killed again, all in the same way.
void require_restarts_alike(const std::vector<Kill>& kills) {
  const auto is_other = [&](const Kill& kill) {
    return kill.restart_seconds != kills.front().restart_seconds;
  };
  if (std::ranges::any_of(kills, is_other)) {
    throw UsageError(
        "--kill: in real runs all workers that are killed come back after the same time, or none "
        "does; give each the same restart=, or choose --clock virtual");
  }
}

// Trouble of a worker that no variant has would do nothing, and be told of all the same.
void require_somebody_is_meant(const CompareOptions& options) {
  int most = 0;
  for (const Variant& variant : options.variants) {
    most = std::max(most, places_of(variant.workers, options.trouble.joins));
  }
  for (std::size_t i = 0; i + 1 < options.trouble_words.size(); i += 2) {
    const std::string& flag = options.trouble_words[i];
    const std::string& word = options.trouble_words[i + 1];
    if (worker_of_trouble(flag, word).value_or(0) < most) continue;
    throw UsageError(flag + " " + word + ": no variant has such a worker; expected 0 to " +
                     std::to_string(most - 1) + ", or more --workers");
  }
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
  std::string service_time;
  std::vector<std::string> slow;
  std::vector<std::string> pauses;
  std::vector<std::string> kills;
  std::vector<std::string> joins;
  std::string link_delay;
  std::string link_rate;
  CompareOptions options;
};

CompareFlags::CompareFlags(CLI::App& app) : app_(app), words_(std::make_unique<Words>()) {
  app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  words_->options.report = "comparison";
  declare_variants();
  declare_training();
  declare_trouble();
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
  app_.add_option("train_flags", options.train_flags,
                  "further flags of train for every run, after --")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CompareFlags::declare_trouble() {
  Words& words = *words_;
  const std::string group = "Trouble on purpose, the same for every variant";
  app_.add_option("--service-time", words.service_time,
                  "of a step: constant:MS | exponential:MS | lognormal:MS[:SIGMA]; slept in real "
                  "runs, all the time there is in virtual ones (constant:1 there)")
      ->group(group);
  const auto add_repeated = [&](const char* flag, std::vector<std::string>& texts,
                                const char* help) {
    repeat(app_.add_option(flag, texts, std::string(help) + "; repeat for more")->group(group));
  };
  add_repeated("--slow", words.slow, "worker=W,factor=F");
  add_repeated("--pause", words.pauses, "worker=W,at=S,for=S");
  add_repeated("--kill", words.kills, "worker=W,at=S[,restart=S]: without restart it stays away");
  add_repeated("--join", words.joins,
               "worker=W,at=S: it comes later, to servers under async or ssp");
  app_.add_option("--link-delay", words.link_delay,
                  "of what tasks send each other, one way, such as 1ms; in real runs over TCP, and "
                  "strategies of one process have no links")
      ->group(group);
  app_.add_option("--link-rate", words.link_rate, "of each task, each way, such as 1gbit")
      ->group(group);
}

CompareOptions CompareFlags::options(const Environment& environment) const {
  const Words& words = *words_;
  CompareOptions options = words.options;
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
  read_trouble(options);
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
  row->apply(options);
}

// Also as words, for whoever tells what was asked for.
void CompareFlags::read_trouble(CompareOptions& options) const {
  const Words& words = *words_;
  Trouble& trouble = options.trouble;
  const bool is_virtual = options.clock == Clock::kVirtual;
  const auto say = [&](const std::string& flag, const std::string& word) {
    options.trouble_words.push_back(flag);
    options.trouble_words.push_back(word);
  };
  std::string service_time = words.service_time;
  if (service_time.empty() && is_virtual && trouble.service_time.kind == ServiceTimeKind::kNone) {
    service_time = "constant:1";  // without any, all would happen at once
  }
  if (!service_time.empty()) {
    trouble.service_time = parse_service_time(service_time, "--service-time");
    if (is_virtual && trouble.service_time.mean_milliseconds <= 0.0) {
      throw UsageError("--service-time " + service_time +
                       ": under the virtual clock all would happen at once; give more than 0 ms");
    }
    const auto experiments = std::ranges::find(options.trouble_words, "--service-time");
    if (experiments != options.trouble_words.end()) {
      options.trouble_words.erase(experiments, experiments + 2);
    }
    say("--service-time", service_time);
  }
  for (const std::string& word : words.slow) {
    trouble.slow.push_back(parse_slowness(word));
    say("--slow", word);
  }
  for (const std::string& word : words.pauses) {
    trouble.pauses.push_back(parse_pause(word));
    say("--pause", word);
  }
  for (const std::string& word : words.kills) {
    trouble.kills.push_back(parse_kill(word));
    say("--kill", word);
  }
  if (!is_virtual) require_restarts_alike(trouble.kills);
  for (const std::string& word : words.joins) {
    trouble.joins.push_back(parse_join(word));
    say("--join", word);
  }
  trouble.link = link_of({.delay = words.link_delay, .rate = words.link_rate});
  if (!words.link_delay.empty()) say("--link-delay", words.link_delay);
  if (!words.link_rate.empty()) say("--link-rate", words.link_rate);
  require_somebody_is_meant(options);
}

}  // namespace syncopate::bench
