#include "bench/compare/run_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "bench/compare/real_run.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/virtual_run.h"
#include "bench/harness/machine_load.h"
#include "bench/harness/measure.h"
#include "bench/plots/text.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {
namespace {

// The interval between checks of signals and progress.
constexpr std::chrono::milliseconds kTick(100);
// The interval at which a process renews the locks of its runs.
constexpr std::chrono::seconds kRenewal(10);
// The interval at which a process looks for runs of other processes. Each look opens a file per
// run, maybe over a network.
constexpr std::chrono::milliseconds kOthersTick(500);
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

// Returns one note per kill that was due after the end of the run, at `seconds`.
std::vector<std::string> kills_after(double seconds, const std::vector<Kill>& kills) {
  std::vector<std::string> notes;
  for (const Kill& kill : kills) {
    if (kill.at_seconds >= seconds) notes.push_back(never_took_place(kill));
  }
  return notes;
}

// Trains a run in processes of its own. number: its place in the comparison, such as "4/21".
RealRunOutcome run_one_really(const RunTrainer& how, const MissingRun& missing,
                              const std::string& number) {
  const auto& [part, run_spec] = missing;
  const RunSpec& run = *run_spec;
  const RunFiles& files = *part->files;
  return run_really(
      run,
      {.program = part->options.program,
       .progress_name = fmt::format("[{}] {}", number, seed_text(run)),
       .metrics = files.lines(run),
       .log = files.log(run),
       .total_updates = updates_of(part->options, run.variant, how.data.train->size()),
       .max_seconds = part->options.seconds,
       .kills = run.faults.kills,
       .joins = run.faults.joins,
       .checkpoints = files.checkpoints(run)},
      how.signals, how.display);
}

RunEnding ending_of(const RealRunOutcome& outcome) {
  RunEnding ending{
      .notes = outcome.notes, .begin = outcome.begin, .others_cpu_share = outcome.others_cpu_share};
  if (outcome.end == RunEnd::kFailed) ending.failure = outcome.reason;
  return ending;
}

void note_result(const RunTrainer& how, const MissingRun& missing, const std::string& number) {
  const auto result = read_run(missing.part->files->result(*missing.run));
  if (how.notes_failures_only && result && !result->failure) return;
  const std::string text = !result           ? "failed: it left no result"
                           : result->failure ? "failed: " + *result->failure
                                             : result_text(*result);
  how.display.note(fmt::format("[{}] {}: {}", number, seed_text(*missing.run), text));
}

// Trains a list of runs.
class Training {
 public:
  Training(const RunTrainer& how, const std::vector<MissingRun>& missing, int total)
      : how_(how), missing_(missing), total_(total) {}

  bool run() {
    if (missing_.empty()) return true;
    const CompareOptions& options = missing_.front().part->options;
    if (options.clock == Clock::kReal) return run_real_ones();
    shares_runs_ = !options.shared_command.empty();
    if (!run_virtual_ones()) return false;
    while (shares_runs_) {
      std::erase_if(missing_, has_ended);
      done_ = 0;
      if (missing_.empty()) return true;
      if (!wait_for_others() || !run_virtual_ones()) return false;
    }
    return true;
  }

 private:
  static bool has_ended(const MissingRun& missing) {
    return std::filesystem::exists(missing.part->files->result(*missing.run));
  }
  static std::filesystem::path lock_of(const MissingRun& missing) {
    return missing.part->files->lock(*missing.run);
  }

  // Locks the runs of a training and removes from it those that another process has trained.
  // Returns false if no run is left, or another process trains one.
  bool lock_runs(std::vector<MissingRun>& training) {
    if (!shares_runs_) return true;
    std::vector<MissingRun> left;
    std::map<const RunSpec*, LockFile> locks;
    for (const MissingRun& missing : training) {
      if (has_ended(missing)) continue;
      auto lock = LockFile::try_to_take(lock_of(missing));
      if (!lock) return false;
      if (has_ended(missing)) continue;  // since the look before
      locks.emplace(missing.run, *std::move(lock));
      left.push_back(missing);
    }
    const std::lock_guard guard(mutex_);
    done_ += static_cast<int>(training.size() - left.size());
    locks_.merge(locks);
    training = std::move(left);
    return !training.empty();
  }

  // Waits until another process has ended a run or left it. Returns false after a signal.
  bool wait_for_others() {
    std::map<const RunSpec*, std::filesystem::file_time_type> renewed;
    for (Deadline deadline = Deadline::after(how_.others_timeout);;) {
      for (const MissingRun& missing : missing_) {
        if (has_ended(missing) || LockFile::try_to_take(lock_of(missing))) return true;
        std::error_code ignored;
        const auto time = std::filesystem::last_write_time(lock_of(missing), ignored);
        if (std::exchange(renewed[missing.run], time) != time) {
          deadline = Deadline::after(how_.others_timeout);
        }
      }
      const std::string holder = LockFile::holder_of(lock_of(missing_.front()));
      const std::string run = seed_text(*missing_.front().run);
      if (deadline.passed()) {
        throw PeerError(fmt::format(
            "--share-runs: {}, which trains {}, gave no sign of life for {}; end that process and "
            "repeat the command",
            holder, run, in_seconds(deadline.timeout())));
      }
      how_.display.update({.text = fmt::format("[{} done] waiting for {}, which trains {}",
                                               done_text(), holder, run)});
      if (how_.signals.poll()) return false;
      std::this_thread::sleep_for(kOthersTick);
    }
  }

  bool run_real_ones() {
    for (const MissingRun& missing : missing_) {
      const RealRunOutcome outcome = run_one_really(how_, missing, number_text());
      if (outcome.end == RunEnd::kStopped) return false;
      finish(missing, ending_of(outcome));
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
               first.has_weights_independent_of_times() && run.has_weights_independent_of_times();
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
    std::vector<std::vector<MissingRun>> trainings = this->trainings();
    const int jobs = missing_.front().part->options.jobs;
    std::atomic<std::size_t> next{0};
    std::atomic<int> working{jobs};
    std::atomic<bool> is_stopped{false};
    std::exception_ptr error;  // of the first thread that cannot continue, such as for a full disk
    const auto work = [&] {
      try {
        for (std::size_t at = next++; at < trainings.size() && !is_stopped; at = next++) {
          if (!lock_runs(trainings[at])) continue;
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
    for (int job = 0; job < jobs; ++job) threads.emplace_back(work);
    const auto began = SteadyClock::now();
    Deadline renewal = Deadline::after(kRenewal);
    while (working > 0) {
      std::this_thread::sleep_for(kTick);
      if (how_.signals.poll()) is_stopped = true;
      const std::lock_guard lock(mutex_);
      if (renewal.passed()) {
        for (const auto& [run, file] : locks_) file.renew();
        renewal = Deadline::after(kRenewal);
      }
      how_.display.update({.text = fmt::format("[{} done, {:.0f} s] {}", done_text(),
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
          run_virtually(run, how_.data, *writers.front(), others, [&](double fraction) {
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
    return fmt::format("{}/{}", total_ - static_cast<int>(missing_.size()) + count, total_);
  }

  void finish(const MissingRun& missing, const RunEnding& ending) {
    const std::lock_guard lock(mutex_);
    missing.part->files->finish(*missing.run, ending);
    locks_.erase(missing.run);
    const std::string number = number_text();
    ++done_;
    note_result(how_, missing, number);
  }

  const RunTrainer& how_;
  std::vector<MissingRun> missing_;
  const int total_;
  bool shares_runs_ = false;  // with other processes
  VirtualProgress virtual_progress_;
  std::mutex mutex_;  // guards done_, locks_, RunFiles::finish() and the display
  std::map<const RunSpec*, LockFile> locks_;  // of the runs that this process trains
  int done_ = 0;
};

}  // namespace

bool RunTrainer::train(const std::vector<MissingRun>& runs, int total) const {
  return Training(*this, runs, total).run();
}

bool RunTrainer::repeat_disturbed(const ComparisonPart& part,
                                  const std::filesystem::path& report) const {
  const RunFiles& files = *part.files;
  std::vector<std::pair<const RunSpec*, double>> disturbed;
  for (const RunSpec& run : part.runs) {
    if (!files.is_done(run)) continue;
    const auto result = read_run(files.result(run));
    if (result->is_disturbed()) disturbed.emplace_back(&run, *result->others_cpu_share);
  }
  if (disturbed.empty()) return true;
  const std::string count = count_text(static_cast<int>(disturbed.size()), "run");
  const OthersMeter others;
  std::this_thread::sleep_for(kLookForQuiet);
  if (const double share = others.share(); share > kMostOthersCpuShare) {
    display.note(fmt::format(
        "the machine was busy during {} and still is: {}; the same command with --report {} "
        "trains them again when it is quiet",
        count, others_text(share), report.string()));
    return true;
  }
  display.note(fmt::format("the machine was busy during {}; training again", count));
  for (std::size_t i = 0; i < disturbed.size(); ++i) {
    const auto& [run, share] = disturbed[i];
    const std::string number = fmt::format("again {}/{}", i + 1, disturbed.size());
    const RealRunOutcome outcome = run_one_really(*this, {&part, run}, number);
    if (outcome.end == RunEnd::kStopped) return false;
    if (outcome.end == RunEnd::kFailed || *outcome.others_cpu_share >= share) {
      files.discard(*run);
      display.note(fmt::format("[{}] {}: the earlier result stays", number, seed_text(*run)));
      continue;
    }
    files.finish(*run, ending_of(outcome));
    note_result(*this, {&part, run}, number);
  }
  return true;
}

}  // namespace syncopate::bench
