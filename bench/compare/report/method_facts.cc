#include "bench/compare/report/method_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "bench/compare/report/answer_facts.h"
#include "bench/compare/report/local_update_facts.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/training_facts.h"
#include "bench/compare/report/tuning_report.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "worker/train/service_time.h"

namespace syncopate::bench {
namespace {

class MethodTeller {
 public:
  explicit MethodTeller(const Outcome& outcome)
      : outcome_(outcome), comparison_(outcome.comparison), rows_(outcome.rows) {}

  std::vector<Fact> tell() {
    tell_method();
    for (const PaperClaim& claim : comparison_.claims) tell_claim(claim);
    tell_conditions();
    return std::move(facts_);
  }

 private:
  void tell(std::string subject, std::string text) {
    if (!text.empty()) facts_.push_back({std::move(subject), std::move(text), false});
  }

  void tell_method() {
    tell(
        "tests",
        fmt::format(
            "all pairs of variants are compared, times at a level of {} and accuracies at "
            "{} (Games and Howell 1976). {}The levels are fixed before the runs. With a "
            "probability of {} no claim of this report is false and all intervals hold, "
            "if runs are independent, accuracies and logarithms of times close to normal, and if a "
            "target is reached at any time between two evaluations with the same probability. "
            "Times of few seeds have few different values, so a very small p rests on these "
            "assumptions. A tie means that no difference was shown; the times may still differ. An "
            "answer names the rows that may be the soonest and that were shown to be sooner than "
            "the next one: the soonest row that was shown to be slower than one of them. Claims "
            "need {} seeds",
            percent_text(kTimeLevel), percent_text(kAccuracyLevel), censored_text(),
            percent_text(1.0 - kFamilyLevel), kSeedsForClaims));
    tell("seeds",
         "runs with one seed begin with the same weights and read the samples in the same order, "
         "which "
         "is another one in each epoch" +
             std::string(comparison_.has_virtual_clock
                             ? ", and each worker draws the same step times"
                             : "") +
             ", in all variants" + seeds_text() +
             ". The tests compare variants as if all their runs were independent; "
             "if runs with one seed are alike, intervals are wider than necessary. runs.csv has "
             "the results of every run");
    if (comparison_.target_accuracy) tell_times();
    tell("parts", parts_of_answer(outcome_));
    tell("spikes", spikes_words(outcome_));
    tell("targets", other_targets_words(outcome_));
    tell_accuracy();
    for (const VariantSummary& row : rows_) {
      if (!row.same_as) continue;
      tell("equal", fmt::format("{} and {} had the same weights and times, bit for bit, and count "
                                "once",
                                rows_[*row.same_as].name, row.name));
    }
  }

  void tell_accuracy() {
    const std::string samples =
        comparison_.chance
            ? fmt::format(" of {} samples",
                          decimal_text(static_cast<double>(comparison_.chance->test_samples), 0))
            : "";
    tell("accuracy", (comparison_.watched_split() == "test"
                          ? fmt::format("the mean of the evaluations in the last tenth of a run, "
                                        "on the test set{}; its sampling error is in no deviation",
                                        samples)
                          : fmt::format("evaluated once on the test set{}, after training; the "
                                        "target is judged on the validation set",
                                        samples)) +
                         largest_accuracy_difference());
  }

  // Returns the largest difference of two variants' accuracies that the intervals contain.
  std::string largest_accuracy_difference() const {
    double largest = 0.0;
    for (const PairDifference& pair : outcome_.claims.all()) {
      if (pair.measure != Measure::kAccuracy) continue;
      const Interval interval = pair.interval();
      largest = std::max({largest, interval.high, -interval.low});
    }
    return largest > 0.0 && largest < 1.0
               ? fmt::format(
                     ". By the intervals of all pairs, no two variants differ by more than "
                     "{} points",
                     decimal_text(std::ceil(10000.0 * largest) / 100.0, 2))
               : "";
  }

  void tell_times() {
    double least = std::numeric_limits<double>::infinity();
    double most = 0.0;
    for (const VariantSummary& row : rows_) {
      for (const double gap : row.reached_gaps) {
        least = std::min(least, gap);
        most = std::max(most, gap);
      }
    }
    std::string text = fmt::format(
        "seconds of training, without evaluations, until the first evaluation at {} that lasts: "
        "one of the next two is there, too. An evaluation is of the values after the last counted "
        "update; gradients on their way to a server do not count",
        target_text(comparison_));
    if (most > 0.0) {
      text += fmt::format(
          ". The previous evaluation was {} to {} s earlier, and the target was reached at an "
          "unknown time between the two: tests and intervals add w x w / 12 to the variance of the "
          "mean logarithm, with infinitely many degrees of freedom, where w is the mean logarithm "
          "of the ratio of the two times; ratios are those of the later times{}. {}{}",
          short_text(least), short_text(most), middle_text(), evaluations_text(),
          sampling_error_text());
    }
    tell("times", text +
                      ". Means of times are geometric, other means are not; ± is the standard "
                      "deviation of the values over "
                      "the seeds");
  }

  // Returns by how much ratios would differ in the middle between two evaluations; "" if unknown.
  std::string middle_text() const {
    double least = std::numeric_limits<double>::infinity();
    double most = 0.0;
    for (const VariantSummary& row : rows_) {
      double sum = 0.0;
      for (std::size_t i = 0; i < row.reached_seconds.size(); ++i) {
        sum += std::log(row.reached_seconds[i] / (row.reached_seconds[i] - row.reached_gaps[i]));
      }
      const double width = sum / static_cast<double>(row.reached_seconds.size());
      if (!std::isfinite(width)) continue;
      least = std::min(least, width);
      most = std::max(most, width);
    }
    return most > least ? fmt::format(
                              ", and half way between the two logarithms they would "
                              "differ from these by a factor of up to {:.2f}",
                              std::exp(0.5 * (most - least)))
                        : "";
  }

  // Returns the standard error of an accuracy at the target, from the number of samples.
  std::string sampling_error_text() const {
    if (!comparison_.chance || !comparison_.target_accuracy) return "";
    const bool is_test = comparison_.watched_split() == "test";
    const std::int64_t samples =
        is_test ? comparison_.chance->test_samples : comparison_.chance->validation_samples;
    if (samples == 0) return "";
    const double share = *comparison_.target_accuracy;
    return fmt::format(
        ". At the target, the number of samples of an evaluation gives its accuracy a standard "
        "error of {} points, which may move the evaluation that counts, and is in no interval",
        decimal_text(100.0 * std::sqrt(share * (1.0 - share) / static_cast<double>(samples)), 2));
  }

  // Returns how many samples lie between two evaluations; "" if no run has two.
  std::string evaluations_text() const {
    double least = std::numeric_limits<double>::infinity();
    double most = 0.0;
    for (const ComparedVariant& variant : comparison_.variants) {
      for (const RunResult* const run : variant.results()) {
        if (run->curve.size() < 2) continue;
        const auto gap = static_cast<double>(run->curve[1].samples - run->curve[0].samples);
        least = std::min(least, gap);
        most = std::max(most, gap);
      }
    }
    if (most == 0.0) return "";
    const std::string low = decimal_text(least, 0);
    const std::string high = decimal_text(most, 0);
    return fmt::format(
        "Evaluations (--evaluations) are {} samples apart, by variant, which is the resolution of "
        "times and samples to the target",
        low == high ? low : low + " to " + high);
  }

  // Says whether the direction of a paper's claim was seen.
  void tell_claim(const PaperClaim& claim) {
    const auto row_of = [&](const std::string& label) {
      return static_cast<std::size_t>(
          std::ranges::find(comparison_.variants, label, &ComparedVariant::label) -
          comparison_.variants.begin());
    };
    const std::size_t better = row_of(claim.better);
    const std::size_t worse = row_of(claim.worse);
    if (std::max(better, worse) >= rows_.size()) return;
    if (!rows_[better].accuracy || !rows_[worse].accuracy) return;
    const Claims& claims = outcome_.claims;
    const bool is_seen = claims.is_more_accurate(better, worse) || claims.is_sooner(better, worse);
    const bool is_opposite =
        claims.is_more_accurate(worse, better) || claims.is_sooner(worse, better);
    const auto result = [&](std::size_t row) {
      return fmt::format("\"{}\" ended with {} % and reached {} in {} of {} runs", rows_[row].name,
                         decimal_text(100.0 * rows_[row].accuracy->mean, 1),
                         target_text(comparison_), rows_[row].reached, rows_[row].done);
    };
    tell("paper",
         fmt::format("{}: {}. {}: {}; {}. The figures of the paper are of other networks and data, "
                     "and were not reproduced",
                     claim.source, claim.text,
                     is_seen == is_opposite ? "This was not shown"
                     : is_seen              ? "This was seen"
                                            : "The opposite was seen",
                     result(better), result(worse)));
  }

  void tell_conditions() {
    std::ranges::move(training_facts(outcome_), std::back_inserter(facts_));
    tell(kTuningFact, tuning_words(comparison_));
    std::ranges::move(local_update_facts(comparison_), std::back_inserter(facts_));
    tell("resources",
         "each thread of a worker or replica counts as one CPU, and each server as one" +
             std::string(comparison_.has_virtual_clock ? "; these CPUs are simulated" : "") +
             servers_text());
    tell(
        "updates",
        "a batch is the samples of one update. Synchronous workers divide each batch; asynchronous "
        "ones take the next batch of all samples when they are free. Samples at the end of an "
        "epoch that are too few for "
        "a batch are not trained; for asynchronous workers and backup workers, that is the batch "
        "of "
        "one worker");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].dropped_gradients) continue;
      tell("dropped",
           fmt::format("{} drops {}: {} % of its gradients. A worker finishes its step before its "
                       "gradient is dropped; the samples of a dropped gradient are trained again, "
                       "and count once",
                       rows_[i].name, comparison_.variants[i].drops,
                       decimal_text(100.0 * *rows_[i].dropped_gradients, 0)));
    }
    if (std::ranges::any_of(rows_, [](const auto& row) { return row.staleness.has_value(); })) {
      tell("staleness",
           "updates of the servers' values between a worker's pull and the use of its gradient; "
           "the bound of ssp is on steps, so it may be larger");
    }
    if (comparison_.budget.ends_with(" digits")) {
      tell("digits", "drawn by this program, not taken from MNIST");
    }
    tell("clock",
         comparison_.has_virtual_clock
             ? virtual_clock_text()
             : "real: workers of one machine, over shared memory and loopback sockets, "
               "without a network between them; all variants with one seed, then the next");
    const double others = most_disturbance(rows_);
    if (others > 0.0) {
      tell("others",
           fmt::format("other programs took up to {} of the CPUs during a run; above {} a "
                       "run proves nothing",
                       percent_text(std::round(1000.0 * others) / 1000.0),
                       percent_text(kMostOthersCpuShare)));
    }
    for (const Machine& machine : comparison_.machines) tell("machine", describe(machine));
    if (const auto use = cpu_use(comparison_)) tell("workers", use->words);
    if (comparison_.target_accuracy) {
      tell("target", target_fact());
    }
    tell("scope",
         "one network, data set, number of workers and target; the answer may differ for "
         "others. Only the variants of the table were compared");
    tell("budget", comparison_.budget);
    if (!comparison_.data_hash.empty()) {
      tell("data",
           fmt::format(
               "{}{}; hash of all samples {}", comparison_.data,
               comparison_.train_samples > 0
                   ? fmt::format("; {} training samples",
                                 decimal_text(static_cast<double>(comparison_.train_samples), 0))
                   : "",
               comparison_.data_hash));
    }
    if (!comparison_.model.empty()) {
      tell("network",
           fmt::format("{}{}; syncopate network --model {} prints its layers", comparison_.model,
                       comparison_.network_layers.empty() ? "" : ": " + comparison_.network_layers,
                       comparison_.model));
    }
    tell("flags", comparison_.faults);
    tell("command", comparison_.command);
  }

  // Returns " (seeds 1 to 5)"; "" without runs.
  std::string seeds_text() const {
    std::set<std::uint64_t> seeds;
    for (const ComparedVariant& variant : comparison_.variants) {
      for (const RunResult* const run : variant.results()) seeds.insert(run->seed);
    }
    return seeds.empty() ? "" : fmt::format(" (seeds {} to {})", *seeds.begin(), *seeds.rbegin());
  }

  // Says how runs that missed the target are tested; "" if there are none.
  std::string censored_text() const {
    const auto has_missed = [](const VariantSummary& row) { return row.reached < row.done; };
    return std::ranges::none_of(rows_, has_missed)
               ? ""
               : "Runs that missed the target count as longer, in a log-rank test (exact up to 22 "
                 "runs). ";
  }

  // Returns ". Servers: 1 (async and sync)"; "" if no variant has servers.
  std::string servers_text() const {
    std::map<int, std::vector<std::string>> variants;
    for (const ComparedVariant& variant : comparison_.variants) {
      if (variant.servers > 0) variants[variant.servers].push_back(variant.label);
    }
    std::vector<std::string> texts;
    for (const auto& [servers, labels] : variants) {
      texts.push_back(fmt::format("{} ({})", servers, listed(labels)));
    }
    return texts.empty() ? "" : ". Servers: " + listed(texts);
  }

  std::string target_fact() const {
    std::string text = fmt::format(
        "{} {} accuracy{}", target_text(comparison_), comparison_.watched_split(),
        comparison_.derived_target ? target_source(comparison_) : ", given by the command");
    if (const auto& derived = comparison_.derived_target) {
      text += fmt::format(
          ", rounded down to 0.1 points. The median over its runs in this report of "
          "their highest {} accuracy is {} %",
          comparison_.watched_split(), decimal_text(100.0 * derived->best_accuracy, 2));
    }
    return text;
  }

  // Returns the words of the faults that follow --service-time.
  std::string step_time_text() const {
    std::istringstream words(comparison_.faults);
    for (std::string flag, value; words >> flag >> value;) {
      if (flag != "--service-time") continue;
      try {
        return fmt::format(
            "The compute time of a step is an assumption, drawn independently for each worker, and "
            "for each step unless times come in bursts or from a file (--service-time {}): {}. "
            "{}With other times the answer may differ. ",
            value, describe_service_time(value),
            has_random_step_times(comparison_)
                ? "Synchronous workers wait for the slowest draw, which favours asynchronous ones. "
                : "");
      } catch (const UsageError&) {  // a comparison.json that was not written by compare
      }
    }
    return "";
  }

  // Says what takes time under the virtual clock.
  std::string virtual_clock_text() const {
    std::string text =
        "virtual: gradients, updates and accuracies are computed, in the order of simulated time; "
        "only seconds are simulated. All are the same on one instruction set and version of "
        "oneDNN, whatever the number of real CPUs. " +
        step_time_text();
    if (comparison_.has_free_messages()) {
      return text +
             "Messages and servers' updates take no time, which favours variants with many small "
             "updates, such as asynchronous ones; --link-rate and --costs give them times";
    }
    const bool has_costs = comparison_.faults.find("--costs") != std::string::npos;
    return text + (has_costs
                       ? "Messages and servers' updates take the times of --costs and of the link"
                       : "Messages take the time of the link, and updates no time");
  }

  const Outcome& outcome_;
  const Comparison& comparison_;
  const Rows& rows_;
  std::vector<Fact> facts_;
};

}  // namespace

bool has_random_step_times(const Comparison& comparison) {
  return std::ranges::any_of(
      std::array{"exponential", "lognormal", "bursts"}, [&](const std::string& kind) {
        return comparison.faults.find("--service-time " + kind) != std::string::npos;
      });
}

std::vector<Fact> method_facts(const Outcome& outcome) { return MethodTeller(outcome).tell(); }

}  // namespace syncopate::bench
