#include "bench/compare/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "bench/compare/comparison_file.h"
#include "bench/compare/expected_time.h"
#include "bench/compare/lock_file.h"
#include "bench/compare/map_file.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/summary.h"
#include "bench/compare/run_files.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/run_trainer.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "worker/run/run_data.h"
#include "worker/run/run_sizes.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

constexpr TuningRange kMomenta{.first = 0, .last = 2, .least = 0, .most = 4, .has_more = true};
constexpr TuningRange kBatches{.first = -1, .last = 1, .least = -6, .most = 6};
constexpr TuningRange kOuterRates{.first = -1, .last = 1, .least = -6, .most = 6};

// Replaces the flag among the words of a variant, or adds it.
void set_flag(std::vector<std::string>& flags, const std::string& name, const std::string& value) {
  std::erase_if(
      flags, [&](const std::string& flag) { return flag == name || flag.starts_with(name + "="); });
  flags.push_back(name + "=" + value);
}

// Returns the options of a round without its variants.
CompareOptions options_of_search(const CompareOptions& options) {
  CompareOptions search = options;
  search.variants.clear();
  search.notes.clear();
  search.left_out.clear();
  return search;
}

// Opens the data of tuning runs. Sets options.tune.split if the data have no validation split.
DataSplits open_tuning_data(CompareOptions& options) {
  DataOptions how = data_options(options.shared, options.cache_dir);
  how.split = options.tune.split;
  DataSplits data = open_dataset(options.data_here(), how);
  if (!data.validation) {
    how.split = options.tune.split = kTuningSplit;
    data = open_dataset(options.data_here(), how);
  }
  require_classes("compare", options.data, data);
  return data;
}

// Throws UsageError if the search would have fewer training samples than an update.
void require_samples(const CompareOptions& options, const Variant& variant,
                     const DataSplits& data) {
  const std::int64_t samples = samples_of_update(options, variant);
  if (samples <= data.train->size()) return;
  throw UsageError(
      fmt::format("--tune: the search trains {} samples without those that judge its runs, fewer "
                  "than the {} of "
                  "an update of {}; give a smaller --batch-size-per-replica{}",
                  data.train->size(), samples, variant.label,
                  options.tune.split.empty() ? "" : " or a smaller --split"));
}

}  // namespace

Tuning::Tuning(const CompareOptions& options, const DataSplits& data, const DataFacts& facts)
    : options_(options), data_(data), facts_(facts), results_(options.variants.size()) {
  TuningSpace space;  // of a variant with all axes
  if (options.tune.momentum) space.momentum = kMomenta;
  for (const Variant& variant : options.variants) {
    require_samples(options, variant, data);
    const RunSpec run = plan_run(options, variant, 1, data.train->size());
    if (!run.refusal.empty()) throw UsageError(run.refusal);
    if (options.tune.momentum && !optimizer_row(run.train.strategy.optimizer).has_momentum) {
      throw UsageError(
          fmt::format("--tune momentum: {} has --optimizer {}; give -- --optimizer "
                      "momentum, or leave momentum out",
                      variant.label, run.train.strategy.optimizer.name));
    }
  }
  if (options.tune.batch_size) space.batch = batches();
  if (options.tune.outer_learning_rate) space.outer_rate = kOuterRates;
  if (!options.tune.sync_every.empty()) space.sync_every = rounds();
  space.runs = runs_of_search(space);
  for (const Variant& variant : options.variants) {
    TuningSpace& own = spaces_.emplace_back(space);
    if (!variant.has_outer_step()) own.outer_rate = {};
    if (!variant.tunes_rounds) own.sync_every = {};
  }
}

// Returns the batches to search: each is a whole number of samples, and every variant has an update
// in an epoch.
TuningRange Tuning::batches() const {
  const auto fits = [&](int exponent) {
    for (std::size_t v = 0; v < options_.variants.size(); ++v) {
      if (samples_of_update(options_, variant_at(v, {.batch = exponent})) > data_.train->size()) {
        return false;
      }
    }
    return true;
  };
  TuningRange range = kBatches;
  for (const Variant& variant : options_.variants) {
    const auto batch = static_cast<std::uint64_t>(worker_batch_of(options_, variant));
    range.least = std::max(range.least, -std::countr_zero(batch));
  }
  range.first = std::max(range.first, range.least);
  while (range.most > 0 && !fits(range.most)) --range.most;
  range.last = std::min(range.last, range.most);
  return range;
}

// Returns the positions of the numbers of steps that every variant with tuned rounds trains in a
// run.
TuningRange Tuning::rounds() const {
  const std::vector<int>& all = options_.tune.sync_every;
  TuningRange range{.last = static_cast<int>(all.size()) - 1};
  for (const Variant& variant : options_.variants) {
    if (!variant.tunes_rounds) continue;
    const std::int64_t steps = updates_of(options_, variant, data_.train->size());
    while (range.last > 0 && all[static_cast<std::size_t>(range.last)] > steps) --range.last;
  }
  range.most = range.last;
  range.has_less = all.front() > 1;
  range.has_more = true;
  return range;
}

Variant Tuning::variant_at(std::size_t variant, const TuningPoint& point) const {
  Variant at = options_.variants[variant];
  const RunSpec run = plan_run(options_, at, 1, data_.train->size());
  const OptimizerOptions& optimizer = run.train.strategy.optimizer;
  const double given = momentum_of(optimizer);
  const double momentum =
      options_.tune.momentum ? kTunedMomenta.at(static_cast<std::size_t>(point.momentum)) : given;
  const double rate =
      run.train.schedule.learning_rate * std::exp2(point.rate) * (1.0 - momentum) / (1.0 - given);
  set_flag(at.flags, "--learning-rate", exact_text(rate));
  set_flag(at.flags, "--learning-rate-scale", text_of(run.train, "--learning-rate-scale"));
  if (options_.tune.momentum) set_flag(at.flags, "--momentum", exact_text(momentum));
  if (options_.tune.batch_size) {
    const double batch =
        static_cast<double>(run.train.strategy.batch_size_per_replica) * std::exp2(point.batch);
    at.worker_batch = std::llround(batch);
    at.update_batch.reset();
  }
  if (options_.tune.outer_learning_rate && at.has_outer_step()) {
    const double outer = outer_options(local_updates_of(run.train).value()).learning_rate;
    set_flag(at.flags, "--outer-learning-rate", exact_text(outer * std::exp2(point.outer_rate)));
  }
  if (at.tunes_rounds) {
    at.sync_every = options_.tune.sync_every.at(static_cast<std::size_t>(point.sync_every));
  }
  return at;
}

std::optional<double> Tuning::target() const {
  if (options_.target_accuracy) return options_.target_accuracy;
  const auto baseline = std::ranges::find_if(options_.variants, [&](const Variant& variant) {
    return variant.workers == 1 && !has_outer_optimizer(options_, variant);
  });
  const std::size_t row = baseline == options_.variants.end()
                              ? 0
                              : static_cast<std::size_t>(baseline - options_.variants.begin());
  double best = 0.0;
  for (const Result& result : results_[row]) {
    // Later results must not move the target of the earlier ones.
    if (result.run.seed != static_cast<std::uint64_t>(options_.tune.seed)) continue;
    if (!is_in_first_grid(spaces_[row], result.point)) continue;
    for (const CurvePoint& point : result.run.curve) best = std::fmax(best, point.accuracy);
  }
  return best > 0.0 ? std::optional(std::floor(1000.0 * kTargetShare * best) / 1000.0)
                    : std::nullopt;
}

std::vector<TuningTrial> Tuning::trials_of(std::size_t variant) const {
  const std::optional<double> target = this->target();
  std::vector<TuningTrial> trials;
  for (const auto& [point, run] : results_[variant]) {
    const bool has_curve = !run.failure && !run.curve.empty();
    const auto reached = has_curve && target ? time_to_target(run, *target) : std::nullopt;
    trials.push_back({.point = point,
                      .has_reached = reached.has_value(),
                      .seconds = reached ? reached->seconds : 0.0,
                      .accuracy = has_curve ? last_accuracy(run) : std::nan("")});
  }
  return trials;
}

ComparisonPart Tuning::next_round() {
  ComparisonPart part{.options = options_of_search(options_), .runs = {}, .heads = {}, .files = {}};
  planned_.clear();
  for (std::size_t v = 0; v < options_.variants.size(); ++v) {
    for (const TuningRun& next : next_runs(spaces_[v], trials_of(v))) {
      Variant variant = variant_at(v, next.point);
      std::string flags;
      for (const std::string& flag : variant.flags)
        flags += (flags.empty() ? "" : ",") + flag.substr(2);
      if (options_.tune.batch_size) {
        flags += fmt::format(",batch-size-per-replica={}", *variant.worker_batch);
      }
      if (variant.tunes_rounds) flags += fmt::format(",sync-every={}", variant.sync_every);
      // Variants that differ only in their flags would otherwise have runs of the same name.
      const bool is_word_unique =
          std::ranges::count(options_.variants, variant.word, &Variant::word) == 1;
      variant.label = fmt::format("{}{{{}}}", is_word_unique ? variant.word : variant.label, flags);
      const auto seed = static_cast<std::uint64_t>(options_.tune.seed + next.seed);
      RunSpec run = plan_run(options_, variant, seed, data_.train->size());
      run.train.split = options_.tune.split;
      run.tuning_of = options_.variants[v].label;
      if (std::ranges::find(part.options.variants, variant.label, &Variant::label) ==
          part.options.variants.end()) {
        part.options.variants.push_back(variant);
      }
      const std::string file = run_name(run) + ".jsonl";
      const auto same = std::ranges::find(planned_, file, &Planned::file);
      if (same != planned_.end()) {
        throw UsageError(fmt::format(
            "--tune: the runs of {} and {} would have the same names; write one of the variants in "
            "another way",
            options_.variants[same->variant].label, run.tuning_of));
      }
      planned_.push_back({v, next.point, file});
      part.runs.push_back(std::move(run));
    }
  }
  if (!results_.front().empty()) part.options.target_accuracy = target();
  part.heads = planned_heads(part.options, part.runs, facts_);
  return part;
}

bool Tuning::add_results(const fs::path& folder) {
  std::vector<RunResult> runs;
  for (const Planned& planned : planned_) {
    const fs::path file = folder / "runs" / planned.file;
    if (!fs::exists(file)) return false;
    const auto run = read_run(file);
    if (!run) return false;
    runs.push_back(*run);
  }
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    results_[planned_[i].variant].push_back({planned_[i].point, std::move(runs[i])});
  }
  return true;
}

CompareOptions Tuning::tuned() const {
  CompareOptions tuned = options_;
  for (std::size_t v = 0; v < tuned.variants.size(); ++v) {
    const TuningChoice choice = choice_of(spaces_[v], trials_of(v));
    const std::string label = tuned.variants[v].label;
    tuned.variants[v] = variant_at(v, choice.point);
    tuned.variants[v].label = label;
    tuned.variants[v].tuned = choice.is_at_border ? Tuned::kAtBorder : Tuned::kInside;
  }
  return tuned;
}

namespace {

// Returns the folder of the report, after a search that has ended.
PlannedFolder planned_report(const CompareOptions& tuned) {
  const DataSplits data = open_classes(tuned);
  return folders_of(parts_of(tuned, data, data_facts_of(tuned, data))).front();
}

// Returns the folders of the rounds as far as their runs can be planned from the results there; if
// all rounds are complete, also the folder of the report.
std::vector<PlannedFolder> planned_folders(const CompareOptions& options, const DataSplits& data,
                                           const DataFacts& facts, const fs::path& dir) {
  Tuning tuning(options, data, facts);
  std::vector<PlannedFolder> folders;
  for (int round = 1;; ++round) {
    const ComparisonPart part = tuning.next_round();
    if (part.runs.empty()) break;
    folders.push_back({.name = (fs::path(kTuningFolder) / std::to_string(round)).string(),
                       .runs = part.heads,
                       .is_round = true});
    if (!tuning.add_results(round_folder(dir, round))) return folders;
  }
  folders.push_back(planned_report(tuning.tuned()));
  return folders;
}

// Returns how many of the planned runs the folder has.
int runs_there(const fs::path& dir, const std::vector<PlannedFolder>& folders) {
  int count = 0;
  for (const PlannedFolder& folder : folders) {
    for (const RunHead& run : folder.runs) {
      const fs::path file = dir / folder.name / "runs" / run.file;
      if (folder.is_round ? fs::exists(file) : is_run_done(file)) ++count;
    }
  }
  return count;
}

// Says how many runs the search and the report have, and how long the missing ones take if they are
// real.
void note_time(const CompareOptions& options, int searched, int there, const DataSplits& data,
               ProgressDisplay& display) {
  const int variants = static_cast<int>(options.variants.size());
  const int all = (searched + options.seeds) * variants;
  const int missing = std::max(0, all - there);
  // The runs that are there are about equally many of each variant.
  const std::vector<int> of_each(options.variants.size(), (missing + variants - 1) / variants);
  const auto seconds = expected_seconds(options, of_each, data);
  const std::string runs =
      there == 0 ? fmt::format("{} runs", all) : fmt::format("{} of {} runs", missing, all);
  display.note(fmt::format("{}{}: {} of the search and {} of the report for each variant",
                           seconds ? minutes_words(*seconds) + " for " : "", runs, searched,
                           options.seeds));
}

// Makes room for the rounds in the folder of the report.
void prepare_folder(const fs::path& dir, const std::vector<PlannedFolder>& rounds, bool replace) {
  std::string conflict = has_map(dir) ? "has a comparison on several clusters" : "";
  for (const PlannedFolder& round : rounds) {
    if (!conflict.empty()) break;
    conflict = conflict_in(dir / round.name, round.runs);
    if (!conflict.empty() && round.is_round) {
      conflict = "has the search of another command (other flags, or another --tune-seed): " +
                 conflict.substr(conflict.rfind(": ") + 2);
    }
  }
  if (conflict.empty() && fs::exists(dir / "comparison.json") &&
      !fs::exists(dir / rounds.front().name)) {
    conflict = "has a comparison without --tune";
  }
  make_room(dir, conflict, replace);
}

}  // namespace

std::optional<CompareOptions> tune(const CompareOptions& options, const std::string& command,
                                   StopSignal& signals) {
  CompareOptions in_folder = options;
  const DataSplits data = open_tuning_data(in_folder);
  const DataFacts data_facts = data_facts_of(in_folder, data);
  const auto planned = [&](const fs::path& dir) {
    return planned_folders(in_folder, data, data_facts, dir);
  };
  if (options.report.empty()) in_folder.report = numbered_folder("comparison", planned);
  const fs::path& dir = in_folder.report;
  const std::vector<PlannedFolder> rounds = planned(dir);
  std::optional<LockFile> files_lock = lock_report_files(in_folder, signals);
  const FolderLock folder_lock = lock_report(dir, dir, options.shared_command);
  prepare_folder(dir, rounds, options.replace);
  files_lock.reset();
  const std::unique_ptr<ProgressDisplay> display = make_progress_display(options.show_progress);
  if (options.report.empty()) display->note("the results go to the folder " + dir.string());
  const bool shares_runs = !options.shared_command.empty();
  const ComparisonFacts facts{
      .command = command, .machine = machine_here(), .is_shared = shares_runs};
  Tuning tuning(in_folder, data, data_facts);
  note_time(in_folder, tuning.runs_of_each(), runs_there(dir, planned(dir)), data, *display);
  for (int round = 1;; ++round) {
    ComparisonPart part = tuning.next_round();
    if (part.runs.empty()) break;
    const fs::path folder = round_folder(dir, round);
    {
      const auto round_lock = lock_report_files(in_folder, signals);
      part.files = std::make_unique<RunFiles>(folder, options.shared_command);
      part.files->begin(part.heads, facts, options.replace);
    }
    std::vector<MissingRun> missing;
    for (const RunSpec& run : part.runs) {
      // A run that diverged is a result of the search, so it is not repeated.
      if (!fs::exists(part.files->result(run))) missing.push_back({&part, &run});
    }
    const std::size_t there = part.runs.size() - missing.size();
    display->note(fmt::format("tuning, round {}: {}{}", round,
                              count_text(static_cast<int>(part.runs.size()), "run"),
                              there == 0 ? "" : fmt::format(", {} of them there already", there)));
    const RunTrainer trainer{data, signals, *display, /*notes_failures_only=*/true};
    if (!trainer.train(missing, static_cast<int>(part.runs.size()))) return std::nullopt;
    if (shares_runs) part.files->remove_stale_locks();
    check(tuning.add_results(folder), "all runs of a round have ended");
  }
  display->finish();
  return tuning.tuned();
}

CompareOptions tuned_before(const CompareOptions& options) {
  CompareOptions in_folder = options;
  const DataSplits data = open_tuning_data(in_folder);
  const DataFacts facts = data_facts_of(in_folder, data);
  Tuning tuning(in_folder, data, facts);
  for (int round = 1;; ++round) {
    const ComparisonPart part = tuning.next_round();
    if (part.runs.empty()) return tuning.tuned();
    const fs::path folder = round_folder(options.report, round);
    require_planned(folder, part.heads);
    if (tuning.add_results(folder)) continue;
    throw FileError(
        fmt::format("{}: a run of the search is missing; the command of the comparison trains it",
                    folder.string()));
  }
}

}  // namespace syncopate::bench
