#include "bench/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "bench/compare/comparison_file.h"
#include "bench/compare/comparison_parts.h"
#include "bench/compare/expected_time.h"
#include "bench/compare/lock_file.h"
#include "bench/compare/map_file.h"
#include "bench/compare/printed_report.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/run_files.h"
#include "bench/compare/run_trainer.h"
#include "bench/compare/stable_rate.h"
#include "bench/compare/tuning.h"
#include "bench/compare/virtual_run.h"
#include "bench/harness/measure.h"
#include "bench/plots/text.h"
#include "bench/virtual_clock/replay.h"
#include "models/base/errors.h"
#include "worker/input/dataset.h"
#include "worker/run/run_data.h"
#include "worker/train/progress.h"

namespace syncopate::bench {
namespace {

// Trains the runs of a comparison that its folder does not have yet.
class Comparer {
 public:
  Comparer(const CompareOptions& options, const std::string& command, StopSignal& signals)
      : signals_(signals),
        data_(open_classes(options)),
        data_facts_(data_facts_of(options, data_)),
        options_(with_step_time(options, data_, data_facts_)),
        facts_{.command = command, .machine = machine_here(), .is_shared = shares_runs()},
        parts_(parts_of(options_, data_, data_facts_)),
        weights_notes_(
            describe_initial_weights(options_on_shared_data(parts_.front().runs), data_)),
        folder_(report_folder(options_, parts_)),
        display_(make_progress_display(options.show_progress)) {}

  const std::filesystem::path& folder() const noexcept { return folder_; }
  // Returns how long a run took, where several train at once on average; 0 if none was trained.
  double run_wall_seconds() const noexcept { return run_wall_seconds_; }

  // Trains the missing runs. Returns false if a signal stopped the training.
  bool run() {
    open_folders();
    note_conditions();
    if (!find_stable_rates(parts_, data_, signals_, *display_)) return false;
    for (ComparisonPart& part : parts_) {
      part.heads = planned_heads(part.options, part.runs, data_facts_);
    }
    describe_again();
    find_missing();
    const RunTrainer trainer{data_, signals_, *display_, /*notes_failures_only=*/is_map()};
    const auto began = SteadyClock::now();
    const bool ended =
        trainer.train(missing_, num_runs()) &&
        (options_.clock == Clock::kVirtual || trainer.repeat_disturbed(parts_.front(), folder_));
    if (!missing_.empty()) {
      run_wall_seconds_ = seconds_since(began) / static_cast<double>(missing_.size());
    }
    display_->finish();
    return ended;
  }

  // Describes the comparison with its stable rates. If processes share the runs, returns the lock
  // of the report's files, because a process that begins later first describes it without the
  // rates.
  std::optional<LockFile> describe_again() const {
    auto files_lock = lock_report_files(options_, signals_);
    describe(/*replace=*/false);
    return files_lock;
  }

 private:
  void open_folders() {
    const auto files_lock = lock_report_files(options_, signals_);
    if (is_map()) {
      map_.emplace(folder_, folders_of(parts_), options_.step_time, options_.replace,
                   options_.shared_command);
    }
    for (ComparisonPart& part : parts_) {
      part.files =
          std::make_unique<RunFiles>(folder_ / part.options.cluster.name, options_.shared_command);
    }
    describe(options_.replace);
    if (map_) map_->write(facts_.command);
  }

  void describe(bool replace) const {
    for (const ComparisonPart& part : parts_) part.files->begin(part.heads, facts_, replace);
  }

  void note_conditions() {
    if (options_.report.empty()) display_->note("the results go to the folder " + folder_.string());
    if (is_map() && options_.step_time.is_measured) {
      display_->note(fmt::format("step time {} ms, measured (stored in {})",
                                 options_.step_time.milliseconds, (folder_ / kMapFile).string()));
    }
    for (const std::string& note : options_.notes) display_->note(note);
    for (const std::string& one : options_.left_out) display_->note("left out: " + one);
    if (options_.clock == Clock::kVirtual) {
      const std::string neutral = neutral_flags_note(options_.shared, options_.variants);
      if (!neutral.empty()) display_->note(neutral);
    }
    display_->note(describe_data(data_, options_.data));
    for (const std::string& note : weights_notes_) display_->note(note);
    const std::vector<int> missing = missing_of_each();
    const std::optional<double> seconds = expected_seconds(options_, missing, data_);
    const int num_missing = std::reduce(missing.begin(), missing.end());
    display_->note(fmt::format(
        "comparing {}{}: {}, with {} each{}{}",
        count_text(static_cast<int>(options_.variants.size()), "variant"),
        is_map() ? " on " + count_text(static_cast<int>(parts_.size()), "cluster") : "",
        count_text(num_runs(), "run"), count_text(options_.seeds, "seed"),
        seconds ? ", " + minutes_words(*seconds) : "",
        seconds && num_missing < num_runs() ? " for " + count_text(num_missing, "missing run")
                                            : ""));
  }

  // Returns the number of missing runs of each variant of a comparison on one cluster.
  std::vector<int> missing_of_each() const {
    const ComparisonPart& part = parts_.front();
    std::vector<int> missing;
    for (const Variant& variant : options_.variants) {
      missing.push_back(static_cast<int>(std::ranges::count_if(part.runs, [&](const RunSpec& run) {
        return run.variant.label == variant.label && !part.files->is_done(run);
      })));
    }
    return missing;
  }

  // Finds the runs that the folder does not have. Each process that shares the runs would repeat a
  // failed run, so there it counts as a result.
  void find_missing() {
    int failed = 0;
    for (std::size_t r = 0; r < parts_.front().runs.size(); ++r) {
      for (const ComparisonPart& part : parts_) {
        const RunSpec& run = part.runs[r];
        const bool is_there = shares_runs() ? std::filesystem::exists(part.files->result(run))
                                            : part.files->is_done(run);
        if (is_there) continue;
        missing_.push_back({&part, &run});
        if (part.files->has_failed(run)) ++failed;
      }
    }
    if (std::ssize(missing_) < num_runs()) {
      display_->note(fmt::format("{} of {} runs are there already",
                                 num_runs() - static_cast<int>(missing_.size()), num_runs()));
    }
    if (failed > 0) {
      display_->note(count_text(failed, "run") + " failed before and will be tried again");
    }
  }

  bool is_map() const noexcept { return !options_.clusters.empty(); }
  bool shares_runs() const noexcept { return !options_.shared_command.empty(); }
  int num_runs() const noexcept {
    return static_cast<int>(parts_.size() * parts_.front().runs.size());
  }

  StopSignal& signals_;
  const DataSplits data_;
  const DataFacts data_facts_;
  const CompareOptions options_;
  const ComparisonFacts facts_;
  std::vector<ComparisonPart> parts_;
  const std::vector<std::string> weights_notes_;
  const std::filesystem::path folder_;
  std::optional<MapFile> map_;
  std::unique_ptr<ProgressDisplay> display_;
  std::vector<MissingRun> missing_;
  double run_wall_seconds_ = 0.0;
};

}  // namespace

void compare(const CompareOptions& options, const std::string& command, StopSignal& signals,
             std::ostream& out) {
  std::optional<CompareOptions> tuned;
  if (options.tune.is_on) {
    tuned = tune(options, command, signals);
    if (!tuned) throw std::runtime_error(kStoppedWords);
  }
  Comparer comparer(tuned ? *tuned : options, command, signals);
  const bool ended = comparer.run();
  std::optional<LockFile> files_lock = comparer.describe_again();
  std::ostringstream text;  // is printed without the lock, because the reader of `out` may be slow
  if (!options.clusters.empty()) {
    if (!ended) throw std::runtime_error(kStoppedWords);
    write_and_print_map(comparer.folder(), options.explains, text, comparer.run_wall_seconds());
    files_lock.reset();
    out << text.str();
    return;
  }
  Comparison comparison = read_comparison(comparer.folder());
  comparison.run_wall_seconds = comparer.run_wall_seconds();
  // After a request to stop nothing is printed, because nothing may read it.
  if (!ended) {
    write_report_files(comparer.folder(), comparison);
    throw std::runtime_error(kStoppedWords);
  }
  write_and_print_report(comparer.folder(), comparison, options.explains, text);
  files_lock.reset();
  out << text.str();
  const auto is_done = [](const ComparedVariant& variant) {
    return std::ranges::any_of(variant.runs, &ComparedRun::is_done);
  };
  const bool has_result = std::ranges::any_of(comparison.variants, is_done);
  if (!has_result) throw std::runtime_error("every run failed; see the table and the logs");
}

void replay(const std::filesystem::path& record, const CompareOptions& options, std::ostream& out) {
  std::vector<std::filesystem::path> files;
  const std::string prefix = record.filename().string() + ".shard";
  std::error_code error;
  const auto folder = record.parent_path().empty() ? "." : record.parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  }
  if (files.empty()) {
    throw UsageError(
        fmt::format("--replay {0}: there is no {0}.shard0; give the FILE of train's --record",
                    record.string()));
  }
  const DataSplits data = open_classes(options);
  const ReplayOutcome outcome = replay_order(files, data);
  out << outcome.model << ": " << outcome.pushes
      << " pushes computed again, and every version is the recorded one\nweights hash    "
      << outcome.weights_hash << "\n";
}

}  // namespace syncopate::bench
