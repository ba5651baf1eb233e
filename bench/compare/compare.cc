#include "bench/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/compare/chance.h"
#include "bench/compare/comparison_file.h"
#include "bench/compare/comparison_parts.h"
#include "bench/compare/map_file.h"
#include "bench/compare/printed_report.h"
#include "bench/compare/real_run.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/run_files.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/virtual_run.h"
#include "bench/harness/machine_load.h"
#include "bench/harness/measure.h"
#include "bench/plots/text.h"
#include "bench/virtual_clock/replay.h"
#include "models/base/errors.h"
#include "worker/input/dataset.h"
#include "worker/run/exit_codes.h"
#include "worker/run/run_data.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"

namespace syncopate::bench {
namespace {

constexpr const char* kStopped = "stopped; the same command continues with the missing runs";
// The interval between checks of signals and progress.
constexpr std::chrono::milliseconds kTick(100);
// How long the load of the machine is measured before runs are repeated.
constexpr std::chrono::seconds kLookForQuiet(1);

// Returns such as "others took 41 % of the CPUs".
std::string others_text(double share) {
  return fmt::format("others took {:.0f} % of the CPUs", 100.0 * share);
}

// Describes a result, such as "test accuracy 98.12%, 12.3 s, 41203 samples/s".
std::string result_text(const RunResult& result) {
  std::string text = fmt::format("test accuracy {:.2f}%, {:.1f} s, {:.0f} samples/s",
                                 100.0 * result.summary.test.metric.value, result.summary.seconds,
                                 result.summary.samples_per_second);
  if (result.is_disturbed()) {
    text += fmt::format(" (busy machine: {})", others_text(*result.others_cpu_share));
  }
  return text;
}

std::string seed_text(const RunSpec& run) {
  return fmt::format("{}{}{}, seed {}", run.cluster, run.cluster.empty() ? "" : ": ",
                     run.variant.label, run.seed);
}

// Collects the progress of the runs under the virtual clock. Thread-safe.
class VirtualProgress {
 public:
  void set(const RunSpec& run, double fraction) {
    const std::lock_guard lock(mutex_);
    fractions_[&run] = fraction;
  }
  void erase(const RunSpec& run) {
    const std::lock_guard lock(mutex_);
    fractions_.erase(&run);
  }
  // Returns the progress as text: "mirrored, seed 2: 45 %; one-device, seed 2: 12 %".
  std::string text() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [run, fraction] : fractions_) {
      text += fmt::format("{}{}: {:.0f} %", text.empty() ? "" : "; ", seed_text(*run),
                          std::floor(100.0 * fraction));
    }
    return text;
  }

 private:
  std::mutex mutex_;
  std::map<const RunSpec*, double> fractions_;  // the trained fraction of each run in training
};

// Opens the data. Throws UsageError if the targets have no accuracies to compare.
DataSplits open_classes(const CompareOptions& options) {
  DataSplits data = open_dataset(options.data, data_options(options.shared, options.cache_dir));
  require_classes("compare", options.data, data);
  return data;
}

// Returns one note per kill that was due after the end of the run, at `seconds`.
std::vector<std::string> kills_after(double seconds, const std::vector<Kill>& kills) {
  std::vector<std::string> notes;
  for (const Kill& kill : kills) {
    if (kill.at_seconds >= seconds) notes.push_back(never_took_place(kill));
  }
  return notes;
}

// A run that is still to be trained.
struct MissingRun {
  const ComparisonPart* part;
  const RunSpec* run;
};

// Trains the runs of a comparison that its folder does not have yet.
class Comparer {
 public:
  Comparer(const CompareOptions& options, const std::string& command, StopSignal& signals)
      : signals_(signals),
        data_(open_classes(options)),
        options_(with_step_time(options, data_)),
        facts_{.command = command,
               .machine = machine_here(std::string(program_version())),
               .chance = chance_of(data_)},
        parts_(parts_of(options_, data_, *facts_.chance)),
        weights_notes_(
            describe_initial_weights(options_on_shared_data(parts_.front().runs), data_)),
        folder_(report_folder(options_, parts_)),
        display_(make_progress_display(options.show_progress)) {
    if (is_map()) map_.emplace(folder_, folders_of(parts_), options_.step_time, options.replace);
    for (ComparisonPart& part : parts_) {
      part.files = std::make_unique<RunFiles>(folder_ / part.options.cluster.name);
    }
  }

  const std::filesystem::path& folder() const noexcept { return folder_; }
  // Returns how long a run took, where several train at once on average; 0 if none was trained.
  double run_wall_seconds() const { return done_ == 0 ? 0.0 : seconds_since(began_) / done_; }

  // Trains the missing runs. Returns false if a signal stopped the training.
  bool run() {
    for (const ComparisonPart& part : parts_)
      part.files->begin(part.heads, facts_, options_.replace);
    if (map_) map_->write(facts_.command);
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
    display_->note(
        fmt::format("comparing {}{}: {}, with {} each",
                    count_text(static_cast<int>(options_.variants.size()), "variant"),
                    is_map() ? " on " + count_text(static_cast<int>(parts_.size()), "cluster") : "",
                    count_text(num_runs(), "run"), count_text(options_.seeds, "seed")));
    int failed = 0;
    for (std::size_t r = 0; r < parts_.front().runs.size(); ++r) {
      for (const ComparisonPart& part : parts_) {
        const RunSpec& run = part.runs[r];
        if (part.files->is_done(run)) continue;
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
    const bool ended = options_.clock == Clock::kVirtual
                           ? run_virtual_ones()
                           : run_real_ones() && repeat_disturbed_ones();
    display_->finish();
    return ended;
  }

 private:
  bool is_map() const noexcept { return !options_.clusters.empty(); }
  int num_runs() const noexcept {
    return static_cast<int>(parts_.size() * parts_.front().runs.size());
  }
  // Real runs are on one cluster, this machine.
  const RunFiles& files() const noexcept { return *parts_.front().files; }

  bool run_real_ones() {
    for (const MissingRun& missing : missing_) {
      const RealRunOutcome outcome = run_one_really(*missing.run, number_text());
      if (outcome.end == RunEnd::kStopped) return false;
      finish(missing, ending_of(outcome));
    }
    return true;
  }

  RealRunOutcome run_one_really(const RunSpec& run, const std::string& number) {
    return run_really(run,
                      {.program = options_.program,
                       .progress_name = fmt::format("[{}] {}", number, seed_text(run)),
                       .metrics = files().lines(run),
                       .log = files().log(run),
                       .total_updates = updates_of(options_, run.variant, data_.train->size()),
                       .max_seconds = options_.seconds,
                       .kills = run.faults.kills,
                       .joins = run.faults.joins,
                       .checkpoints = files().checkpoints(run)},
                      signals_, *display_);
  }

  static RunEnding ending_of(const RealRunOutcome& outcome) {
    RunEnding ending{.notes = outcome.notes,
                     .begin = outcome.begin,
                     .others_cpu_share = outcome.others_cpu_share};
    if (outcome.end == RunEnd::kFailed) ending.failure = outcome.reason;
    return ending;
  }

  // Trains the runs again during which other processes took much of the CPUs, once each, and keeps
  // the result of the quieter time. Does nothing if the machine is still busy: a comparison on a
  // busy machine would take twice as long for no better result. Returns false if a signal stopped
  // the training.
  bool repeat_disturbed_ones() {
    std::vector<std::pair<const RunSpec*, double>> disturbed;
    for (const RunSpec& run : parts_.front().runs) {
      if (!files().is_done(run)) continue;
      const auto result = read_run(files().result(run));
      if (result->is_disturbed()) disturbed.emplace_back(&run, *result->others_cpu_share);
    }
    if (disturbed.empty()) return true;
    const std::string count = count_text(static_cast<int>(disturbed.size()), "run");
    const OthersMeter others;
    std::this_thread::sleep_for(kLookForQuiet);
    if (const double share = others.share(); share > kMostOthersCpuShare) {
      display_->note(fmt::format(
          "the machine was busy during {} and still is: {}; the same command with --report {} "
          "trains them again when it is quiet",
          count, others_text(share), folder_.string()));
      return true;
    }
    display_->note(fmt::format("the machine was busy during {}; training again", count));
    for (std::size_t i = 0; i < disturbed.size(); ++i) {
      const auto& [run, share] = disturbed[i];
      const std::string number = fmt::format("again {}/{}", i + 1, disturbed.size());
      const RealRunOutcome outcome = run_one_really(*run, number);
      if (outcome.end == RunEnd::kStopped) return false;
      if (outcome.end == RunEnd::kFailed || *outcome.others_cpu_share >= share) {
        files().discard(*run);
        display_->note(fmt::format("[{}] {}: the earlier result stays", number, seed_text(*run)));
        continue;
      }
      files().finish(*run, ending_of(outcome));
      note_result({&parts_.front(), run}, number);
    }
    return true;
  }

  // Returns the missing runs in groups. One training serves all runs of a group, because the
  // cluster changes only their times.
  std::vector<std::vector<MissingRun>> trainings() const {
    std::vector<std::vector<MissingRun>> all;
    for (const MissingRun& missing : missing_) {
      const RunSpec& run = *missing.run;
      const auto is_same = [&](const std::vector<MissingRun>& training) {
        const RunSpec& first = *training.front().run;
        return first.variant.label == run.variant.label && first.seed == run.seed &&
               first.has_equal_weights_in_clusters() && run.has_equal_weights_in_clusters();
      };
      const auto same = std::ranges::find_if(all, is_same);
      if (same != all.end()) {
        same->push_back(missing);
      } else {
        all.push_back({missing});
      }
    }
    return all;
  }

  // Trains each run in one thread, so the number of threads has no effect on the results. The
  // calling thread looks at the signals and shows the progress.
  bool run_virtual_ones() {
    const std::vector<std::vector<MissingRun>> trainings = this->trainings();
    std::atomic<std::size_t> next{0};
    std::atomic<int> working{options_.jobs};
    std::atomic<bool> is_stopped{false};
    std::exception_ptr error;  // of the first thread that cannot continue, such as for a full disk
    const auto work = [&] {
      try {
        for (std::size_t at = next++; at < trainings.size() && !is_stopped; at = next++) {
          const RunEnding ending = train_virtually(trainings[at], is_stopped);
          virtual_progress_.erase(*trainings[at].front().run);
          if (is_stopped) break;
          for (const MissingRun& missing : trainings[at]) finish(missing, ending);
        }
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error) error = std::current_exception();
        is_stopped = true;
      }
      --working;
    };
    std::vector<std::jthread> threads;
    for (int job = 0; job < options_.jobs; ++job) threads.emplace_back(work);
    const auto began = SteadyClock::now();
    while (working > 0) {
      std::this_thread::sleep_for(kTick);
      if (signals_.poll()) is_stopped = true;
      const std::lock_guard lock(mutex_);
      display_->update({.text = fmt::format("[{} done, {:.0f} s] {}", done_text(),
                                            seconds_since(began), virtual_progress_.text())});
    }
    threads.clear();
    if (error) std::rethrow_exception(error);
    return !is_stopped;
  }

  RunEnding train_virtually(const std::vector<MissingRun>& training,
                            const std::atomic<bool>& is_stopped) {
    class Stopped {};
    const RunSpec& run = *training.front().run;
    try {
      virtual_progress_.set(run, 0.0);
      std::vector<std::unique_ptr<MetricsWriter>> writers;
      for (const MissingRun& missing : training) {
        writers.push_back(make_metrics_writer(missing.part->files->lines(*missing.run), false));
      }
      std::vector<OtherTimes> others;
      for (std::size_t i = 1; i < training.size(); ++i) {
        others.push_back({training[i].run->faults, *writers[i]});
      }
      const Summary summary =
          run_virtually(run, data_, *writers.front(), others, [&](double fraction) {
            virtual_progress_.set(run, fraction);
            if (is_stopped) throw Stopped();
          });
      return {.notes = kills_after(summary.seconds, run.faults.kills)};
    } catch (const Stopped&) {
    } catch (const FileError&) {
      throw;
    } catch (const std::exception& error) {
      return {.failure = error.what()};
    }
    return {};
  }

  // Returns "4/21": the number of the next run to finish, of all runs.
  std::string number_text() const { return count_of_all(done_ + 1); }
  std::string done_text() const { return count_of_all(done_); }
  std::string count_of_all(int count) const {
    return fmt::format("{}/{}", num_runs() - static_cast<int>(missing_.size()) + count, num_runs());
  }

  void finish(const MissingRun& missing, const RunEnding& ending) {
    const std::lock_guard lock(mutex_);
    missing.part->files->finish(*missing.run, ending);
    const std::string number = number_text();
    ++done_;
    note_result(missing, number);
  }

  // A map has many runs, so only those that failed are noted.
  void note_result(const MissingRun& missing, const std::string& number) {
    const auto result = read_run(missing.part->files->result(*missing.run));
    if (is_map() && result && !result->failure) return;
    const std::string text = !result           ? "failed: it left no result"
                             : result->failure ? "failed: " + *result->failure
                                               : result_text(*result);
    display_->note(fmt::format("[{}] {}: {}", number, seed_text(*missing.run), text));
  }

  StopSignal& signals_;
  const DataSplits data_;
  const CompareOptions options_;
  const ComparisonFacts facts_;
  std::vector<ComparisonPart> parts_;
  const std::vector<std::string> weights_notes_;
  const std::filesystem::path folder_;
  std::optional<MapFile> map_;
  std::unique_ptr<ProgressDisplay> display_;
  std::vector<MissingRun> missing_;
  VirtualProgress virtual_progress_;
  std::mutex mutex_;  // guards done_, RunFiles::finish() and the display
  int done_ = 0;
  const SteadyClock::time_point began_ = SteadyClock::now();
};

}  // namespace

void compare(const CompareOptions& options, const std::string& command, StopSignal& signals,
             std::ostream& out) {
  Comparer comparer(options, command, signals);
  const bool ended = comparer.run();
  if (!options.clusters.empty()) {
    if (!ended) throw std::runtime_error(kStopped);
    return write_and_print_map(comparer.folder(), options.explains, out,
                               comparer.run_wall_seconds());
  }
  Comparison comparison = read_comparison(comparer.folder());
  comparison.run_wall_seconds = comparer.run_wall_seconds();
  // After a request to stop nothing is printed, because nothing may read it.
  if (!ended) {
    write_report_files(comparer.folder(), comparison);
    throw std::runtime_error(kStopped);
  }
  write_and_print_report(comparer.folder(), comparison, options.explains, out);
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
