// syncopate-bench compare: the same training under several strategies, with and without trouble.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "bench/commands.h"
#include "bench/compare/compare.h"
#include "bench/compare/presets.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/page.h"
#include "bench/compare/report/table.h"
#include "bench/compare/report/verdict.h"
#include "deploy/flags.h"
#include "deploy/options.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

// Flags as they stand on the command line, before they become CompareOptions.
struct CompareFlags {
  std::vector<std::string> strategies;
  std::string preset;
  int workers = 4;
  int servers = 2;
  std::string clock = "real";
  std::string budget = "samples";
  std::string service_time;
  std::vector<std::string> slow;
  std::vector<std::string> pauses;
  std::vector<std::string> kills;
  std::vector<std::string> joins;
  std::string link_delay;
  std::string link_rate;
  CompareOptions options;
};

constexpr std::array kEverything = {"one-device",
                                    "mirrored",
                                    "multi-worker-mirrored",
                                    "central-storage",
                                    "parameter-server:async",
                                    "parameter-server:ssp:2",
                                    "parameter-server:sync+backup:1"};

// The trainer stands beside this program, or in the next folder of the build.
fs::path find_program() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {here / "syncopate", here.parent_path() / "deploy" / "syncopate"}) {
    if (fs::exists(path)) return path;
  }
  return here / "syncopate";
}

void add_training_flags(CLI::App& app, CompareFlags& flags) {
  CompareOptions& options = flags.options;
  const std::string group = "What is trained";
  app.add_option("--model", options.model, "a network of train")
      ->capture_default_str()
      ->group(group);
  app.add_option("--data", options.data, "as train's")->capture_default_str()->group(group);
  app.add_option("--epochs", options.epochs, "passes over the data, of every variant")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--batch-size-per-replica", options.batch_size_per_replica, "of every worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", flags.budget,
                 "what all variants have alike: samples (--epochs) | updates (--updates)")
      ->capture_default_str()
      ->group(group);
  app.add_option("--updates", options.updates, "of every variant, with --budget updates")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--seeds", options.seeds, "runs of each variant, from seed 1 on")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group(group);
  app.add_option("train_flags", options.train_flags,
                 "further flags of train for every run, after --")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_trouble_flags(CLI::App& app, CompareFlags& flags) {
  const std::string group = "Trouble on purpose, the same for every variant";
  app.add_option("--service-time", flags.service_time,
                 "of a step: constant:MS | exponential:MS | lognormal:MS[:SIGMA]; slept in real "
                 "runs, all the time there is in virtual ones (default there: constant:1)")
      ->group(group);
  const auto add_repeated = [&](const char* flag, std::vector<std::string>& words,
                                const char* help) {
    app.add_option(flag, words, std::string(help) + "; repeat for more")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->group(group);
  };
  add_repeated("--slow", flags.slow, "worker=W,factor=F");
  add_repeated("--pause", flags.pauses, "worker=W,at=S,for=S");
  add_repeated("--kill", flags.kills,
               "worker=W,at=S[,restart=S], and in real runs launch starts it again at once");
  add_repeated("--join", flags.joins, "worker=W,at=S, with --clock virtual");
  app.add_option("--link-delay", flags.link_delay, "one way, such as 1ms; --clock virtual")
      ->group(group);
  app.add_option("--link-rate", flags.link_rate, "of a task, such as 1gbit; --clock virtual")
      ->group(group);
}

void add_flags(CLI::App& app, CompareFlags& flags) {
  CompareOptions& options = flags.options;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--strategies", flags.strategies,
                 "variants, separated by commas: STRATEGY[:CONSISTENCY[:N]][+backup:K][+inverse|"
                 "+dc|+dc-adaptive]; default: every strategy")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  std::string help = "instead, an experiment:";
  for (const PresetRow& row : presets()) {
    help += "\n  " + std::string(row.name) + ": " + std::string(row.help);
  }
  app.add_option("--preset", flags.preset, help);
  app.add_option("--workers", flags.workers, "of each variant")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--servers", flags.servers, "of parameter-server")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--clock", flags.clock,
                 "real (processes on this machine) | virtual (simulated time, the same everywhere)")
      ->capture_default_str();
  app.add_option("--target-accuracy", options.target_accuracy, "whose time is compared")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--evaluations", options.evaluations, "over a run")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--report", options.report, "folder of the results")->capture_default_str();
  app.add_flag("--replace", options.replace, "what another comparison has left in that folder");
  app.add_option("--program", options.program, "the syncopate to run (the one beside this)");
  app.add_option("--jobs", options.jobs, "virtual runs at once (default: the CPUs)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("!--no-progress", options.show_progress, "notes only, no progress line");
  add_training_flags(app, flags);
  add_trouble_flags(app, flags);
}

// Also as flags, which real runs pass on to train.
void read_trouble(const CompareFlags& flags, CompareOptions& options) {
  Trouble& trouble = options.trouble;
  const auto say = [&](const std::string& flag, const std::string& word) {
    options.trouble_words.push_back(flag);
    options.trouble_words.push_back(word);
  };
  std::string service_time = flags.service_time;
  const bool has_none = trouble.service_time.kind == ServiceTimeKind::kNone;
  if (service_time.empty() && has_none && options.clock == Clock::kVirtual) {
    service_time = "constant:1";  // without any, all would happen at once
  }
  if (!service_time.empty()) {
    const auto experiments = std::ranges::find(options.trouble_words, "--service-time");
    if (experiments != options.trouble_words.end()) {
      options.trouble_words.erase(experiments, experiments + 2);
    }
    trouble.service_time = parse_service_time(service_time, "--service-time");
    say("--service-time", service_time);
  }
  for (const std::string& word : flags.slow) {
    trouble.slow.push_back(parse_slowness(word));
    say("--slow", word);
  }
  for (const std::string& word : flags.pauses) {
    trouble.pauses.push_back(parse_pause(word));
    say("--pause", word);
  }
  for (const std::string& word : flags.kills) trouble.kills.push_back(parse_kill(word));
  for (const std::string& word : flags.joins) trouble.joins.push_back(parse_join(word));
  if (!flags.link_delay.empty()) {
    trouble.link.delay_seconds = parse_seconds(flags.link_delay, "--link-delay");
  }
  if (!flags.link_rate.empty()) {
    trouble.link.bytes_per_second = parse_rate(flags.link_rate, "--link-rate");
  }
  const bool is_virtual = options.clock == Clock::kVirtual;
  const bool only_virtual = !trouble.joins.empty() || !trouble.link.is_plain();
  if (only_virtual && !is_virtual) {
    throw UsageError(
        "--join, --link-delay and --link-rate are for --clock virtual today; leave them "
        "out, or add --clock virtual");
  }
}

CompareOptions options_of(const CLI::App& app, const CompareFlags& flags,
                          const Environment& environment) {
  CompareOptions options = flags.options;
  require_name("--clock", flags.clock, {"real", "virtual"});
  require_name("--budget", flags.budget, {"samples", "updates"});
  options.clock = flags.clock == "virtual" ? Clock::kVirtual : Clock::kReal;
  options.budget = flags.budget == "updates" ? Budget::kUpdates : Budget::kSamples;
  if ((options.budget == Budget::kUpdates) != (options.updates > 0)) {
    throw UsageError("--updates N and --budget updates belong together");
  }
  if (!flags.preset.empty()) {
    if (!flags.strategies.empty()) {
      throw UsageError("--preset has variants of its own; leave out --strategies");
    }
    Names names;
    for (const PresetRow& row : presets()) names.emplace_back(row.name);
    require_name("--preset", flags.preset, names);
    CompareOptions preset = options;
    const auto row = std::ranges::find(presets(), std::string_view(flags.preset), &PresetRow::name);
    row->apply(preset);
    // What the user said outranks the experiment.
    for (const auto& [flag, copy] : std::initializer_list<
             std::pair<const char*, void (*)(CompareOptions&, const CompareOptions&)>>{
             {"--epochs", [](auto&to, const auto&from) { to.epochs = from.epochs; }},
             {"--seeds", [](auto&to, const auto&from) { to.seeds = from.seeds; }},
             {"--evaluations", [](auto&to, const auto&from) { to.evaluations = from.evaluations; }},
             {"--target-accuracy",
              [](auto&to, const auto&from) { to.target_accuracy = from.target_accuracy; }}}) {
      if (app.count(flag) > 0) copy(preset, options);
    }
    options = std::move(preset);
  } else {
    const std::vector<std::string> words =
        flags.strategies.empty() ? std::vector<std::string>(kEverything.begin(), kEverything.end())
                                 : flags.strategies;
    for (const std::string& word : words) {
      options.variants.push_back(parse_variant(word, flags.workers, flags.servers));
    }
  }
  read_trouble(flags, options);
  if (options.program.empty()) options.program = find_program();
  if (options.clock == Clock::kReal && !fs::exists(options.program)) {
    throw UsageError("--program " + options.program.string() +
                     ": no such file; build syncopate, "
                     "or say where it is");
  }
  if (options.report.empty()) {
    options.report = fs::path("comparison");
  }
  if (app.count("--jobs") == 0) {
    options.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  options.cache_dir = default_cache_dir(environment);
  return options;
}

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

}  // namespace

Command declare_compare(CLI::App& app, const Environment& environment) {
  const auto flags = std::make_shared<CompareFlags>();
  add_flags(app, *flags);
  return [flags, &app, environment] {
    StopSignal signals;  // before any other thread
    compare(options_of(app, *flags, environment), command_line(), signals, std::cout);
  };
}

Command declare_report(CLI::App& app, const Environment& /*environment*/) {
  const auto dir = std::make_shared<fs::path>();
  app.add_option("DIR", *dir, "a folder that compare has written")->required();
  return [dir] {
    const Comparison comparison = read_comparison(*dir);
    print_table(std::cout, comparison);
    std::cout << "\n" << verdict(comparison) << "\n\n";
    write_report(*dir, comparison);
    std::cout << (*dir / "report.html").string() << "\n";
  };
}

}  // namespace syncopate::bench
