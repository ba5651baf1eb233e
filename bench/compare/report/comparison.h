// What is compared and what came of it: variants in the order they were asked for, each with its
// runs, and the numbers a variant is judged by. Table, verdict, plots and files are made of these.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/run_result.h"

namespace syncopate::bench {

struct ComparedRun {
  std::string file;                 // as comparison.json names it
  std::optional<RunResult> result;  // nothing: pending; it has not begun or was interrupted

  bool is_done() const noexcept { return result && !result->failure; }
  bool has_failed() const noexcept { return result && result->failure; }
};

struct ComparedVariant {
  std::string label;
  int workers = 1;
  std::vector<ComparedRun> runs;  // one per seed
  // Nothing: comparison.json does not say.
  std::optional<bool> keeps_step{};      // all workers take part in an update, but for backups
  std::optional<bool> is_distributed{};  // workers are processes, which may be on several machines
};

// What guessing gets.
struct Chance {
  double share = 0.0;  // of the test samples: those of the most frequent class
  int classes = 0;
  std::int64_t test_samples = 0;
  // The accuracy above which nobody guesses: three standard errors of that many samples more, since
  // several variants are looked at.
  double limit() const noexcept;
};

struct Comparison {
  std::string command;                    // that made it
  std::string budget;                     // in words: what every run may spend
  std::string trouble;                    // in words or flags; empty: none
  std::optional<double> target_accuracy;  // a fraction
  bool has_virtual_clock = false;
  std::vector<ComparedVariant> variants;
  std::vector<Machine> machines{};  // that it ran on, in the order of time; empty: not told
  int threads_per_worker = 0;       // 0: not told
  std::optional<Chance> chance{};   // nothing: not told
};

// A quantity over the runs of a variant. Never empty.
struct Sample {
  std::vector<double> values;
  double mean = 0.0;
  std::optional<double> deviation;  // standard deviation; nothing for one value
};

// Where a run was first measured at the target or above: nothing is interpolated.
struct TargetPoint {
  double seconds = 0.0;
  std::int64_t samples = 0;
  double gap_seconds = 0.0;   // since the measurement before: it was reached within
  double wall_seconds = 0.0;  // since training began, with evaluations in which it stood still
};

// Nothing: never reached.
std::optional<TargetPoint> time_to_target(const RunResult& run, double target_accuracy);

// How its workers agree: a single one, or one that waits for nobody, has nothing to agree on.
enum class Kind : std::uint8_t { kOneWorker, kSynchronous, kAsynchronous };

// One row. Quantities are over runs that came to a good end; nothing where there is none.
struct VariantSummary {
  std::string name;  // the label; with its workers where several rows have one label
  std::string label;
  int workers = 1;
  Kind kind = Kind::kOneWorker;
  std::optional<bool> is_distributed;
  int done = 0;
  int failed = 0;
  int pending = 0;
  int reached = 0;                    // of the runs that are done
  std::vector<std::string> failures;  // "seed 2: why"
  std::vector<std::string> notes;     // on runs that are done, "seed 2: " before what is not of all
  std::optional<Sample> accuracy;     // final, a fraction
  std::optional<Sample> test_loss;    // final
  std::optional<Sample> seconds;      // of the whole run
  std::optional<Sample> samples_per_second;
  std::optional<Sample> staleness;  // mean of a run; nothing where replicas keep step
  // Only when every run that ended reached the target: the mean of those that did would flatter.
  std::optional<Sample> seconds_to_target;
  std::optional<Sample> samples_to_target;
  std::vector<double> reached_seconds;  // of those that reached it
  std::vector<double> reached_gaps;     // TargetPoint::gap_seconds of the same
  std::vector<std::uint64_t> seeds;     // of the same
  std::vector<std::string> weights;     // hashes at the end, of the runs that are done
  std::optional<Sample> updates;
  std::optional<Sample> samples;        // trained
  std::optional<Sample> learning_rate;  // at the first line of each run

  int ended() const noexcept { return done + failed; }
  // Samples of an update; nothing before there is one.
  std::optional<double> batch() const noexcept {
    return updates && updates->mean > 0.0 ? std::optional(samples->mean / updates->mean)
                                          : std::nullopt;
  }
  bool is_complete() const noexcept { return done > 0 && failed == 0 && pending == 0; }
  // Final accuracies are, in the mean, what guessing may get, or no numbers.
  bool is_at_chance(const std::optional<Chance>& chance) const noexcept;
};

// One per variant, in order.
std::vector<VariantSummary> summarise(const Comparison& comparison);

// The first row's time to the target over this one's, of geometric means over seeds; where the
// first has none, this one's samples per second over the first's, for all rows alike.
enum class SpeedUpKind { kTimeToTarget, kThroughput };
SpeedUpKind speed_up_kind(const std::vector<VariantSummary>& rows);
std::optional<double> speed_up(const std::vector<VariantSummary>& rows, std::size_t row);

// Reads DIR/comparison.json and the runs it names, relative to DIR or to DIR/runs. A missing file
// is a pending run. Throws FileError naming the file.
//   {"command":C, "target_accuracy":A, "budget":B, "clock":"real"|"virtual", "trouble":T,
//    "machines":[{"host":H, "processor":P, "cpus":N, "gpus":[G, ...], "version":V, "date":D}, ...],
//    "threads_per_worker":N, "chance":{"share":S, "classes":K, "test_samples":N},
//    "variants":[{"label":L, "workers":N, "keeps_step":B, "distributed":B, "runs":["FILE", ...]},
//                ...]}
// What is between budget and variants may be missing, as may keeps_step and distributed.
Comparison read_comparison(const std::filesystem::path& dir);

struct Verdict;
// Adds {"recommended":LABEL or null, "verdict":[SENTENCE, ...]} to DIR/comparison.json, in the
// place of those of before. Throws FileError.
void keep_verdict(const std::filesystem::path& dir, const Verdict& verdict);

}  // namespace syncopate::bench
