#include "bench/compare/compare_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "bench/compare/measured_step.h"
#include "bench/compare/presets.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/tune_flags.h"
#include "bench/plots/text.h"
#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "models/base/own_program.h"
#include "models/base/resource_limits.h"
#include "models/zoo/zoo.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

// launch restarts all killed workers after the same time.
void require_restarts_alike(const std::vector<Kill>& kills) {
  const auto is_other = [&](const Kill& kill) {
    return kill.restart_seconds != kills.front().restart_seconds;
  };
  if (std::ranges::any_of(kills, is_other)) {
    throw UsageError(
        "--kill: in real runs all killed workers restart after the same time, or none does; give "
        "each the same restart=, or choose --clock virtual");
  }
}

// Refuses the fault of a worker that no variant has: the report would name a fault without effect.
void require_known_workers(const CompareOptions& options) {
  int most = 0;
  for (const Variant& variant : options.variants) {
    most = std::max(most, places_of(variant.workers, options.cluster.faults.joins));
  }
  const std::vector<std::string>& flags = options.cluster.flags;
  for (std::size_t i = 0; i + 1 < flags.size(); i += 2) {
    const std::string& flag = flags[i];
    const std::string& word = flags[i + 1];
    if (worker_of_fault(flag, word).value_or(0) < most) continue;
    throw UsageError(fmt::format("{} {}: expected a worker from 0 to {}, or more --workers", flag,
                                 word, most - 1));
  }
}

// Finds syncopate in the folder of this program, or in the neighbouring folder of the build.
fs::path find_program() {
  const fs::path here = own_program().parent_path();
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

void CompareFlags::declare_variants() {
  flags_.begin_group("Strategy and devices");
  flags_.add(
      "--strategies", &strategies_,
      "variants to compare, separated by commas, such as "
      "one-device,parameter-server:ssp:2. A variant has one of three forms:"
      "\nSTRATEGY[:CONSISTENCY[:N]][+backup:K][+RULE]: N, K and RULE (such as dc or "
      "ringmaster:4) are the values of the flags --max-staleness, --backup-workers and "
      "--staleness-rule of `syncopate train`. With async, ssp and quorum:Q:GRACE (--quorum and "
      "--grace), +displacement:OUTER:N lets the workers push displacements (--push), with the "
      "values of --outer and --sync-every;"
      "\npipeline[:MICRO_BATCHES]: pipeline has one stage per worker and, by default, as "
      "many micro-batches as stages."
      "\nlocal-sgd:OUTER:N: OUTER and N are the values of --outer and --sync-every. If the "
      "outer step is not the plain average, a control row is added, with one worker that "
      "trains the batch of all workers in rounds of N steps, because the outer step helps "
      "one worker, too."
      "\nFlags of `syncopate train` for a single variant are appended to the variant in "
      "braces, without leading dashes, such as mirrored{learning-rate=0.1,nesterov}. A "
      "learning rate in braces is not scaled; other learning rates are scaled with the "
      "batch, as the end of this help says",
      {.value = "VARIANT,...",
       .default_text = listed({kDefaultVariants.begin(), kDefaultVariants.end()}),
       .repeats = true});
  std::string help =
      "predefined experiment with its own variants and learning rates. A preset replaces the "
      "flags " +
      listed({kFlagsOfPresets.begin(), kFlagsOfPresets.end()}) +
      "; these cannot be given with a preset. A preset can be combined with " +
      std::string(kBesidePresets) + ". The presets are:";
  for (const PresetRow& row : presets()) {
    help += "\n" + std::string(row.name) + ": " + std::string(row.help);
  }
  flags_.add("--preset", &preset_, help, {.value = "NAME"});
  flags_.add(
      "--clusters", &clusters_,
      "simulated clusters; all variants are compared on each of them, under the virtual clock. To "
      "define a cluster of your own, write its name and then, in braces, flags of fault injection, "
      "as in 'mine{slow-worker=4x,link-rate=1gbit}'. Predefined clusters:" +
          describe_clusters(),
      {.value = "NAME,...",
       .default_text = "one cluster, which the flags of fault injection describe",
       .repeats = true});
  flags_.add("--step-time", [this](const std::string& text) { step_time_ = parse_step_time(text); },
             "compute time of a training step on the clusters of --clusters, in milliseconds. With "
             "the value `measure`, the step time of --model with --batch-size-per-replica is "
             "measured on one thread of this machine and stored in map.json. The speed of the "
             "links does not depend on this time, so longer steps make the links less important",
             {.value = "MILLISECONDS|measure", .default_text = "1"});
  flags_.add("--workers", &workers_,
             "number of workers of each variant; pipeline has one stage per worker",
             {.least = 1, .most = 1024});
  flags_.add("--servers", &servers_, "number of servers, for the strategy parameter-server",
             {.least = 1, .most = 1024});
  flags_.add("--clock", &clock_,
             "clock of the runs (real: processes on this machine train, and their time is "
             "measured; virtual: the time is simulated, and a repeated run gives identical results "
             "if the instruction set of the CPU and the version of oneDNN are unchanged)",
             {.choices = {"real", "virtual"}});
  flags_.add("--jobs", &jobs_,
             "largest number of runs that are computed in parallel, with --clock virtual",
             {.default_text = "the number of CPUs", .least = 1, .most = 1024});
  flags_.add("--program", &options_.program,
             "path of the program `syncopate`, which is started for each run with --clock real",
             {.value = "FILE",
              .default_text = "the one that was built or installed with syncopate-bench"});
  flags_.begin_group("Checkpoints and output");
  flags_.add("--report", &options_.report,
             "folder for comparison.json and for the report with its plots. If the folder already "
             "contains the comparison, only its missing runs are trained. A repeated command may "
             "name more seeds or variants",
             {.value = "DIR",
              .default_text = "the first of the folders comparison, comparison-2, ... that does "
                              "not exist yet or contains an interrupted run of this comparison"});
  flags_.add(
      "--replace", &options_.replace,
      "if the folder of --report contains another comparison, remove its runs and pages first",
      {.needs = "--report"});
  flags_.add(
      "--share-runs", &shares_runs_,
      "share the runs with all processes of the same command, such as the elements of an array "
      "job; with --tune, also the runs of the search. Each process waits until all runs are "
      "there, and prints the same report. If a process dies, the others train its runs. Failed "
      "runs are not repeated. Requires --clock virtual, and a folder of --report that the "
      "processes have in common and whose file system has locks",
      {.needs = "--report"});
  flags_.add("--explain", &options_.explains,
             "before the recommendation, print the results, tests, warnings and conditions of the "
             "comparison");
  flags_.add("--no-progress", &hides_progress_, "print notes and results, but no progress line");
}

void CompareFlags::declare_training() {
  flags_.begin_group("Model and data");
  flags_.add("--model", &options_.model, "network", {.choices = network_names()});
  flags_.add("--data", &options_.data, "data set, in the form of `syncopate train --data`",
             {.value = "NAME"});
  flags_.add("--batch-size-per-replica", &options_.batch_size_per_replica,
             "number of samples per worker and step", {.least = 1});
  flags_.add(
      "--same", &same_,
      "batch that is equal in all variants (worker-batch: the samples of a worker's step, so "
      "that an update of more workers has more samples; batch: the samples of an update, "
      "which synchronous workers divide among them)",
      {.choices = {"worker-batch", "batch"}});
  flags_.add("--batch-size", &options_.batch_size,
             "number of samples per update, with --same batch",
             {.default_text = "--batch-size-per-replica times --workers", .least = 1});
  flags_.begin_group("Optimizer and schedule");
  flags_.add("--budget", &budget_,
             "quantity that is equal for all variants (samples: number of trained samples, set by "
             "--epochs; updates: number of updates, set by --updates; seconds: training time, set "
             "by --seconds)",
             {.choices = {"samples", "updates", "seconds"}});
  flags_.add("--epochs", &epochs_,
             "number of passes of every variant over the training data. At the end of a pass, "
             "samples that are too few for an update are skipped",
             {.default_text = "2", .least = 1});
  flags_.add("--updates", &options_.updates,
             "number of updates that each variant makes; only for `--budget updates`",
             {.default_text = "none", .least = 1});
  flags_.add("--seconds", &options_.seconds,
             "training time of every variant; only for --budget seconds",
             {.unit = "seconds", .default_text = "none", .above = 0.0});
  flags_.add(
      "--seeds", &seeds_,
      "number of runs of each variant; the seeds are consecutive numbers from --first-seed on",
      {.default_text = "5", .least = 1, .most = kMostSeeds / 2});
  flags_.add("--first-seed", &options_.first_seed,
             "seed of each variant's first run. If the folder of --report already has runs, the "
             "new seeds must include the seeds of these runs; for other seeds, give another folder",
             {.least = 1, .most = kMostSeeds / 2});
  flags_.add("--evaluations", &evaluations_, "number of evaluations during each run",
             {.default_text = "20", .least = 1, .most = 10000});
  flags_.add(
      "--target-accuracy", &target_accuracy_,
      "target accuracy from 0 to 1; the report compares how long each variant trains until it "
      "reaches the target. The accuracy is measured on the validation split if the data set has "
      "one, otherwise on the test split",
      {.default_text =
           "98 % of the best accuracy of the first variant with one worker, or of the first "
           "variant if none has one worker; with --preset and its own network and data set: 0.95, "
           "or 0.85 with cifar10:DIR",
       .least = 0.0,
       .most = 1.0});
  declare_tune_flags(flags_, options_.tune);
  flags_.take_rest(train_flags_, "[FLAGS OF train]", "flags of train",
                   shared_rest_flags(SharedBy::kCompare));
  flags_.set_footer(
      "If an update of a variant uses more samples than one worker's batch, the learning rate of\n"
      "the variant is multiplied: with sgd and momentum, by (samples per update / samples per\n"
      "batch); with adam and adamw, by the square root of this quotient. During a warm-up (the\n"
      "first 20 updates, or the first half of a run of fewer than 40 updates), the learning rate\n"
      "rises to the multiplied value.\n"
      "`-- --learning-rate-scale none` trains all variants with the given learning rate;\n"
      "`-- --warmup-epochs 0` leaves out the warm-up.");
}

void CompareFlags::check_replay() const {
  constexpr std::array<std::string_view, 3> kTaken = {"--replay", "--data", "--no-progress"};
  for (const Flag& flag : flags_.flags()) {
    if (!flag.is_given || std::ranges::find(kTaken, flag.name) != kTaken.end()) continue;
    throw UsageError(fmt::format(
        "{}: --replay computes what the job of the record computed; leave it out", flag.name));
  }
  require_flags_of_replay(parse_shared_train_flags(train_flags_));
}

CompareOptions CompareFlags::options(const Environment& environment) const {
  CompareOptions options = options_;
  options.shared = parse_shared_train_flags(train_flags_);
  options.show_progress = !hides_progress_;
  options.clock = clock_ == "virtual" ? Clock::kVirtual : Clock::kReal;
  options.budget = budget_ == "updates"   ? Budget::kUpdates
                   : budget_ == "seconds" ? Budget::kSeconds
                                          : Budget::kSamples;
  if ((options.budget == Budget::kUpdates) != (options.updates > 0)) {
    throw UsageError("--updates N and --budget updates require each other");
  }
  if ((options.budget == Budget::kSeconds) != (options.seconds > 0.0)) {
    throw UsageError("--seconds S and --budget seconds require each other");
  }
  flags_.require("--batch-size", same_ == "batch", "--same batch");
  if (same_ == "batch" && !options.batch_size) {
    options.batch_size = options.batch_size_per_replica * workers_;
  }
  options.cluster_words = clusters_;
  if (!preset_.empty()) apply_preset(options, preset_, flags_);
  if (!options.cluster_words.empty()) options.clock = Clock::kVirtual;
  for (const std::string& words : strategies_) {
    for (const std::string& word : split_variants(words)) {
      options.variants.push_back(parse_variant(word, workers_, servers_));
      const auto control = control_of(options, options.variants.back());
      if (control) options.variants.push_back(*control);
    }
  }
  if (options.variants.empty()) add_default_variants(options);
  check_clusters(options);
  for (const Variant& variant : options.variants) {
    add_flags(options.shared, variant.flags, variant.label);  // throws for a wrong value
    if (options.clock == Clock::kVirtual) require_virtual(options.shared, variant);
  }
  check_tune(options);
  check_share_runs(options);
  override_if_given(options.epochs, epochs_);
  override_if_given(options.seeds, seeds_);
  override_if_given(options.evaluations, evaluations_);
  if (target_accuracy_) options.target_accuracy = target_accuracy_;
  options.jobs = jobs_.value_or(usable_cpu_count());
  apply_faults(options);
  apply_clusters(options);
  if (options.program.empty()) options.program = find_program();
  if (options.clock == Clock::kReal && !fs::exists(options.program)) {
    throw UsageError("--program " + options.program.string() +
                     ": no such file; expected the syncopate program: build it, or give its path");
  }
  options.cache_dir = default_cache_dir(environment);
  return options;
}

void CompareFlags::check_share_runs(const CompareOptions& options) const {
  if (!shares_runs_) return;
  if (options.clock == Clock::kReal) {
    throw UsageError(
        "--share-runs: real runs would disturb the times of each other; leave it out, or choose "
        "--clock virtual");
  }
  if (step_time_.is_measured) {
    throw UsageError(
        "--share-runs: each process would measure another step time; give --step-time "
        "MILLISECONDS");
  }
}

void CompareFlags::add_default_variants(CompareOptions& options) const {
  for (const char* word : kDefaultVariants) {
    const Variant variant = parse_variant(word, workers_, servers_);
    if (variant.backup_workers < variant.workers) {
      options.variants.push_back(variant);
    } else {
      options.left_out.push_back(variant.label + ": at least one worker must be waited for");
    }
    // One device is also shown with all CPUs, which several workers would share.
    const int cpus = usable_cpu_count();
    const bool has_cpu = options.shared.options.strategy.devices.front().kind == DeviceKind::kCpu;
    const bool is_one_device = variant.row().is_alone() && options.clock == Clock::kReal;
    if (is_one_device && has_cpu && cpus > threads_per_worker(options)) {
      options.variants.push_back(
          parse_variant(fmt::format("{}{{threads={}}}", word, cpus), workers_, servers_));
    }
  }
}

void CompareFlags::apply_faults(CompareOptions& options) const {
  const bool is_virtual = options.clock == Clock::kVirtual;
  ClusterFlags flags = cluster_;
  const ServiceTimeOptions& presets = options.cluster.faults.service_time;
  if (!is_virtual && !flags.costs.empty()) {
    throw UsageError(
        "--costs: real processes have costs of their own; leave it out, or choose --clock virtual");
  }
  const bool has_times = presets.kind != ServiceTimeKind::kNone || has_step_cost(flags.costs);
  if (flags.service_time.empty() && is_virtual && !has_times) {
    flags.service_time = "constant:1";  // without a delay all steps would end at time 0
  }
  if (!slow_worker_.empty()) flags.slow.push_back(slow_worker(slow_worker_, most_workers(options)));
  add_flags(options.cluster, flags);
  const FaultInjection& faults = options.cluster.faults;
  if (is_virtual && faults.service_time.mean_milliseconds <= 0.0 &&
      !(faults.compute_seconds > 0.0)) {
    throw UsageError(
        "--service-time " + flags.service_time +
        ": under the virtual clock all steps would end at time 0; give more than 0 ms");
  }
  if (!is_virtual) require_restarts_alike(faults.kills);
  require_known_workers(options);
}

void CompareFlags::check_clusters(const CompareOptions& options) const {
  if (options.cluster_words.empty()) return flags_.require("--step-time", false, "--clusters");
  const std::string what = preset_.empty() ? "--clusters" : "--preset " + preset_;
  if (flags_.has("--clock") && clock_ == "real") {
    throw UsageError(what + ": clusters are simulated; leave --clock real out");
  }
  for (const char* flag : {"--service-time", "--slow", "--slow-worker", "--pause", "--kill",
                           "--join", "--link-delay", "--link-rate", "--costs"}) {
    if (!flags_.has(flag)) continue;
    throw UsageError(
        fmt::format("{}: {} describes each cluster; leave {} out, or write "
                    "'mine{{{}=...}}' in --clusters",
                    flag, what, flag, flag + 2));
  }
}

void CompareFlags::apply_clusters(CompareOptions& options) const {
  if (options.cluster_words.empty()) return;
  if (options.variants.size() < 2) {
    throw UsageError("--clusters: expected two variants or more in --strategies to compare");
  }
  options.step_time = step_time_;
  set_step_time(options, step_time_.milliseconds);
  for (const Cluster& cluster : options.clusters) {
    CompareOptions on_cluster = options;
    on_cluster.cluster = cluster;
    require_known_workers(on_cluster);
  }
}

}  // namespace syncopate::bench
