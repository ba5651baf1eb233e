#include "bench/compare/compare.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <thread>

#include "bench/compare/chance.h"
#include "bench/compare/predicted_communication.h"
#include "bench/compare/real_run.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/comparison_report.h"
#include "bench/compare/report/comparison_table.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/verdict.h"
#include "bench/compare/run_files.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/virtual/replay.h"
#include "bench/compare/virtual_run.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/base/formatted.h"
#include "worker/run/version.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"

namespace syncopate::bench {
namespace {

// "test accuracy 98.12%, 12.3 s, 41203 samples/s"
std::string in_short(const RunResult& result) {
  return formatted("test accuracy %.2f%%, %.1f s, %.0f samples/s", 100.0 * result.test_accuracy,
                   result.seconds, result.samples_per_second);
}

std::vector<std::string> kills_after(double seconds, const std::vector<Kill>& kills) {
  std::vector<std::string> notes;
  for (const Kill& kill : kills) {
    if (kill.at_seconds >= seconds) notes.push_back(never_took_place(kill));
  }
  return notes;
}

class Comparer {
 public:
  Comparer(const CompareOptions& options, StopSignal& signals)
      : options_(options),
        signals_(signals),
        data_(open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = 1})),
        files_(options.report),
        runs_(plan_runs(options, data_.train->size())),
        display_(make_progress_display(options.show_progress)) {
    for (RunSpec& run : runs_) {
      run.predicted_communication_seconds = predict_communication(run, data_);
    }
  }

  // Whether it came to its end.
  bool run(const std::string& command) {
    files_.begin(options_, runs_,
                 {.command = command,
                  .machine = machine_here(std::string(program_version())),
                  .chance = chance_of(*data_.test)});
    for (const std::string& one : options_.left_out) display_->note("left out: " + one);
    for (const RunSpec& run : runs_) {
      if (!files_.is_done(run)) missing_.push_back(&run);
    }
    if (missing_.size() < runs_.size()) {
      display_->note(std::to_string(runs_.size() - missing_.size()) + " of " +
                     std::to_string(runs_.size()) + " runs are there already");
    }
    const auto failed =
        std::ranges::count_if(runs_, [&](const RunSpec& run) { return files_.has_failed(run); });
    if (failed > 0) {
      display_->note(std::to_string(failed) + (failed == 1 ? " run" : " runs") +
                     " failed before and will be tried again");
    }
    const bool ended = options_.clock == Clock::kVirtual ? run_virtual_ones() : run_real_ones();
    display_->finish();
    return ended;
  }

 private:
  bool run_real_ones() {
    for (const RunSpec* run : missing_) {
      const RealRunOutcome outcome =
          run_really(*run,
                     {.program = options_.program,
                      .metrics = files_.lines(*run),
                      .log = files_.log(*run),
                      .total_updates = updates_of(options_, run->variant, data_.train->size()),
                      .max_seconds = options_.seconds,
                      .kills = run->trouble.kills,
                      .joins = run->trouble.joins,
                      .checkpoints = files_.checkpoints(*run)},
                     signals_, *display_);
      if (outcome.end == RunEnd::kStopped) return false;
      std::optional<std::string> failure;
      if (outcome.end == RunEnd::kFailed) failure = outcome.reason;
      finish(*run, {.failure = failure, .notes = outcome.notes, .begin = outcome.begin});
    }
    return true;
  }

  // Each run is one thread's from beginning to end: how many there are shows in no result.
  bool run_virtual_ones() {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stopped{false};
    std::exception_ptr error;  // of the first thread that cannot go on: a full disk
    const auto work = [&] {
      try {
        for (std::size_t at = next++; at < missing_.size() && !stopped; at = next++) {
          const RunSpec& run = *missing_[at];
          const RunEnding ending = run_one_virtually(run, stopped);
          if (!stopped) finish(run, ending);
        }
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error) error = std::current_exception();
        stopped = true;
      }
    };
    std::vector<std::jthread> threads;
    for (int job = 1; job < options_.jobs; ++job) threads.emplace_back(work);
    work();
    threads.clear();
    if (error) std::rethrow_exception(error);
    return !stopped;
  }

  RunEnding run_one_virtually(const RunSpec& run, std::atomic<bool>& stopped) {
    class Stopped {};
    try {
      const auto metrics = make_metrics_writer(files_.lines(run), false);
      const Summary summary = run_virtually(run, data_, *metrics, [&](double /*fraction*/) {
        const std::lock_guard lock(mutex_);
        if (signals_.poll()) stopped = true;
        if (stopped) throw Stopped();
      });
      return {.notes = kills_after(summary.seconds, run.trouble.kills)};
    } catch (const Stopped&) {
    } catch (const FileError&) {
      throw;
    } catch (const std::exception& error) {
      return {.failure = error.what()};
    }
    return {};
  }

  void finish(const RunSpec& run, const RunEnding& ending) {
    const std::lock_guard lock(mutex_);
    files_.finish(options_, run, ending);
    ++done_;
    std::string line = "[" + std::to_string(runs_.size() - missing_.size() + done_) + "/" +
                       std::to_string(runs_.size()) + "] " + run.variant.label + ", seed " +
                       std::to_string(run.seed) + ": ";
    const auto result = read_run(files_.result(run));
    if (!result || result->failure) {
      line += "failed: " + (result ? *result->failure : "it left no result");
    } else {
      line += in_short(*result);
    }
    display_->note(line);
  }

  const CompareOptions& options_;
  StopSignal& signals_;
  const DataSplits data_;
  const RunFiles files_;
  std::vector<RunSpec> runs_;
  std::unique_ptr<ProgressDisplay> display_;
  std::vector<const RunSpec*> missing_;
  std::mutex mutex_;  // guards what follows, the signals and the display
  std::size_t done_ = 0;
};

void print_paragraph(std::ostream& out, const std::string& text) {
  for (const std::string& line : wrapped(plain_text(text), kTerminalWidth)) out << line << '\n';
}

}  // namespace

void compare(const CompareOptions& options, const std::string& command, StopSignal& signals,
             std::ostream& out) {
  const bool ended = Comparer(options, signals).run(command);
  const Comparison comparison = read_comparison(options.report);
  tell(options.report, comparison, out);
  if (!ended) throw std::runtime_error("stopped; the same command goes on with what is missing");
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
    throw UsageError("--replay " + record.string() + ": there is no " + record.string() +
                     ".shard0; give the FILE of train's --record");
  }
  const DataSplits data = open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = 1});
  const ReplayOutcome outcome = replay_order(files, data);
  out << outcome.model << ": " << outcome.pushes
      << " pushes computed again, every version as it was recorded\nweights hash    "
      << outcome.weights_hash << "\n";
}

void tell(const std::filesystem::path& dir, const Comparison& comparison, std::ostream& out) {
  print_table(out, comparison);
  const Verdict said = verdict(comparison);
  out << '\n';
  for (const std::string& sentence : said.answer) print_paragraph(out, sentence);
  if (!said.remarks.empty()) print_paragraph(out << '\n', paragraph_of(said.remarks));
  out << '\n';
  keep_verdict(dir, said);
  write_comparison_report(dir, comparison);
  out << (dir / "report.html").string() << "\n";
}

}  // namespace syncopate::bench
