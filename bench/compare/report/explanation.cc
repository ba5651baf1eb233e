#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "bench/compare/report/verdict.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns the groups of rows that ended with equal weights, "a, b and c", each of at least two
// rows.
std::vector<std::string> identical_rows(const Rows& rows) {
  std::vector<std::string> groups;
  std::set<std::size_t> grouped;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (grouped.contains(i)) continue;
    std::vector<std::string> names = {named(rows[i])};
    for (std::size_t other = i + 1; other < rows.size(); ++other) {
      if (grouped.contains(other) || !have_same_weights(rows[i], rows[other])) continue;
      grouped.insert(other);
      names.push_back(named(rows[other]));
    }
    if (names.size() > 1) groups.push_back(listed(names));
  }
  return groups;
}

// Returns which variants have a warm-up, and for how long; "" if none has one.
std::string warmup_text(const Comparison& comparison) {
  std::map<int, std::vector<std::string>> variants;
  for (const ComparedVariant& variant : comparison.variants) {
    const auto run = std::ranges::find_if(variant.runs, &ComparedRun::is_done);
    if (run == variant.runs.end() || run->result->warmup_updates == 0) continue;
    variants[run->result->warmup_updates].push_back(variant.label);
  }
  std::string text;
  for (const auto& [updates, labels] : variants) {
    text += fmt::format(" The rate rises over the first {} (warm-up) of {}.",
                        count_text(updates, "update"), listed(labels));
  }
  return text.empty() ? "" : text + " The other rows have no warm-up.";
}

// Returns " Learning rates: 0.001 (a, b), 0.002 (c)."; "" if they are unknown.
std::string rates_text(const Comparison& comparison) {
  std::map<double, std::vector<std::string>> variants;
  for (const ComparedVariant& variant : comparison.variants) {
    if (!variant.learning_rate) return "";
    variants[*variant.learning_rate * variant.learning_rate_factor.value_or(1.0)].push_back(
        variant.label);
  }
  std::vector<std::string> rates;
  for (const auto& [rate, labels] : variants) {
    rates.push_back(fmt::format("{} ({})", exact_text(rate), listed(labels)));
  }
  return rates.empty()
             ? ""
             : fmt::format(" Learning rates: {}.{}", listed(rates), warmup_text(comparison));
}

// Returns in which order the runs were made; "" if that is unknown. Runs are made again if the
// command is repeated after they failed, were interrupted or were disturbed.
std::string order_text(const Comparison& comparison) {
  struct Begin {
    std::size_t position;  // of the run in its variant
    std::size_t row;
    double at;
    std::uint64_t seed;
  };
  std::vector<Begin> begins;
  for (std::size_t row = 0; row < comparison.variants.size(); ++row) {
    const auto& runs = comparison.variants[row].runs;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i].is_done()) continue;
      if (!runs[i].result->began_at) return "";
      begins.push_back({i, row, *runs[i].result->began_at, runs[i].result->seed});
    }
  }
  std::ranges::sort(begins, {}, [](const Begin& one) { return std::pair(one.position, one.row); });
  if (begins.empty()) return "";
  int late = 0;  // runs that began after one that stands behind them in this order
  double next = std::numeric_limits<double>::infinity();
  for (auto one = begins.rbegin(); one != begins.rend(); ++one) {
    late += one->at > next ? 1 : 0;
    next = std::min(next, one->at);
  }
  const std::string order = fmt::format(
      " The runs of seed {} were made first, in the order of the table, then those of the next "
      "seed, and so on",
      begins.front().seed);
  if (late == 0) return order + ".";
  return fmt::format(
      "{}; but {} of {} were made later, or again, as a repeated command does with runs that "
      "failed, were interrupted or were disturbed by other programs.",
      order, late, begins.size());
}

// Returns what other programs took of the CPUs at most during a run; "" if that is unknown.
std::string others_text(const Rows& rows) {
  const double most = most_disturbance(rows);
  if (!(most > 0.0)) return "";
  return fmt::format(
      " Other programs took up to {} of the CPUs during a run; above {} a run counts as disturbed.",
      percent_text(std::round(1000.0 * most) / 1000.0), percent_text(kMostOthersCpuShare));
}

// Returns " The first row used 1 of 2 CPUs."; "" if it used all of them or the number is unknown.
std::string first_row_cpus(const Comparison& comparison) {
  if (comparison.has_virtual_clock || comparison.variants.empty() || comparison.machines.empty()) {
    return "";
  }
  const ComparedVariant& first = comparison.variants.front();
  const int threads = first.threads_per_worker.value_or(comparison.threads_per_worker);
  const int used = first.workers * threads;
  const int cpus = std::ranges::min_element(comparison.machines, {}, &Machine::cpus)->cpus;
  if (threads < 1 || used >= cpus) return "";
  return fmt::format(" The first row used {} of {}.", used, count_text(cpus, "CPU"));
}

// Returns what else than its strategy makes another row faster than the first one.
std::string first_row_words(const Comparison& comparison, const Rows& rows) {
  const auto has_other_batch = [&](const VariantSummary& row) {
    return row.batch() && rows.front().batch() &&
           std::round(*row.batch()) != std::round(*rows.front().batch());
  };
  const bool has_batches = std::ranges::any_of(rows, has_other_batch);
  return first_row_cpus(comparison) +
         (has_batches ? " Where batches differ, a speed-up includes the effect of the batch, of "
                        "fewer updates and of the learning rate with its warm-up."
                      : "");
}

// Returns " with adam"; "" if the optimizer is unknown or not the same in all variants.
std::string optimizer_words(const Comparison& comparison) {
  const auto& variants = comparison.variants;
  const bool is_known = !variants.empty() && !variants.front().optimizer.empty() &&
                        std::ranges::all_of(variants, [&](const ComparedVariant& one) {
                          return one.optimizer == variants.front().optimizer;
                        });
  return is_known ? " with " + variants.front().optimizer : "";
}

// Returns "99.86 % to 99.88 %": the least and the most certain of the intervals of pairs.
std::string interval_levels(const Claims& claims) {
  const auto [least, most] = std::ranges::minmax(claims.all(), {}, &PairDifference::level);
  const std::string low = percent_text(1.0 - most.level);
  const std::string high = percent_text(1.0 - least.level);
  return low == high ? high : fmt::format("{} to {}", low, high);
}

// Returns what the distance between evaluations adds to the uncertainty of times; "" without times.
std::string evaluation_words(const Claims& claims) {
  constexpr double kLargeShare = 0.4;  // from which more evaluations help more than more seeds
  std::vector<double> shares;
  for (const PairDifference& pair : claims.all()) {
    if (pair.evaluation_share > 0.0) shares.push_back(pair.evaluation_share);
  }
  if (shares.empty()) return "";
  const auto [least, most] = std::ranges::minmax(shares);
  const auto percent = [](double share) { return decimal_text(100.0 * share, 0); };
  const std::string low = percent(least);
  const std::string high = percent(most);
  return fmt::format(
      " In times the distance between evaluations is one more source of error (GUM, G.4), except "
      "between rows that ended with the same weights. It is {} % of the variance of a "
      "difference.{} "
      "It counts as independent in both rows, so the interval is wider than needed where both "
      "reach the target at the same evaluation. "
      "Its size is known, so an interval can be narrower than Welch's own.",
      low == high ? high : fmt::format("{} to {}", low, high),
      most > kLargeShare ? " More --evaluations reduce this part; more seeds do not." : "");
}

// Returns how the pairs of rows were tested.
std::string tests_words(const Rows& rows) {
  const Claims claims(rows);
  if (claims.all().empty()) return " No pair of rows was tested.";
  const auto times = std::ranges::count(claims.all(), Measure::kTime, &PairDifference::measure);
  const auto accuracies = std::ssize(claims.all()) - times;
  const std::string_view measures = times == 0        ? "in accuracy"
                                    : accuracies == 0 ? "in time"
                                                      : "in accuracy and in time";
  return fmt::format(
      " All claims that rows differ hold together with a probability of at least {}, if runs "
      "are independent and accuracies and logarithms of times close to normal: Welch's test of "
      "every pair of rows {} ({}), all in one family with Holm's adjustment, not paired by seed. "
      "The interval of a pair is at the level at which it was tested, {}, and intervals do not "
      "hold together.{} What would have been seen follows from the spread of these runs. The best "
      "variant of a kind has the shortest arithmetic mean time, or else the highest "
      "accuracy, of the rows that can be compared, and others of the kind may not differ from it; "
      "a row with one worker and one replica is of neither kind. "
      "A pair of rows without a claim cannot be told apart, also of different kinds. "
      "Rows that cannot be told apart are not thereby equal: a row whose deviation is large may be "
      "recommended for that reason. Rows share seeds, which the tests do not use. Samples/s are "
      "not tested.",
      percent_text(1.0 - kFamilyLevel), measures,
      count_text(static_cast<int>(claims.all().size()), "test"), interval_levels(claims),
      evaluation_words(claims));
}

bool has_label_with(const Comparison& comparison, std::string_view word) {
  return std::ranges::any_of(comparison.variants, [&](const ComparedVariant& variant) {
    return variant.label.find(word) != std::string::npos;
  });
}

// Returns how the runs were made and what the columns count, where readers may expect otherwise.
std::string counting_words(const Comparison& comparison, const Rows& rows) {
  std::string text =
      " A batch is the samples of one update; the last, shorter batch of an epoch is not trained.";
  if (comparison.budget.ends_with(" digits")) {
    text += " The digits are drawn by this program and are not those of MNIST.";
  }
  if (comparison.has_virtual_clock) {
    text += " Seconds are simulated.";
  } else {
    text += order_text(comparison) + others_text(rows);
    text += " All rows were evaluated after training, with values saved during it";
    text += has_label_with(comparison, "parameter-server")
                ? ", which counts in the times of the parameter server alone."
                : ".";
  }
  if (std::ranges::any_of(rows,
                          [](const VariantSummary& row) { return row.staleness.has_value(); })) {
    text +=
        " Staleness: updates of the servers' values between a worker's pull and the use of its "
        "gradient; \"-\" where every update uses gradients of the newest values.";
  }
  if (has_label_with(comparison, "ssp:")) {
    text +=
        " The bound in \"ssp:\" is on the steps by which a worker may lead the slowest one; "
        "staleness in updates may be larger.";
  }
  if (has_label_with(comparison, "+backup")) {
    text +=
        " With backup workers, updates, samples and samples/s count only the gradients that were "
        "used; the "
        "other samples are trained again.";
  }
  return text;
}

}  // namespace

std::string explanation(const Comparison& comparison, const Rows& rows,
                        std::string_view plus_minus) {
  int fewest = std::numeric_limits<int>::max();
  int most = 0;
  for (const VariantSummary& row : rows) {
    fewest = std::min(fewest, row.done);
    most = std::max(most, row.done);
  }
  if (most == 0) return "";
  const std::string seeds =
      fewest == most ? fmt::format("{}", most) : fmt::format("{} to {}", fewest, most);
  std::string text = fmt::format(
      "{}{}{}{}n = {} seeds per row; {} is one standard deviation over them, and also of the "
      "machine's own noise in times, and in accuracies that depend on timing. ",
      comparison.model, optimizer_words(comparison), comparison.model.empty() ? "" : ", ",
      comparison.budget.empty() ? "" : comparison.budget + " per run; ", seeds, plus_minus);
  text += speed_up_kind(rows) == SpeedUpKind::kTimeToTarget
              ? fmt::format(
                    "Speed-up: geometric mean of the times to the target of the first row "
                    "divided by that of the row; its interval, at the level of this pair, needs {} "
                    "seeds.",
                    kSeedsForTime)
              : std::string(
                    "Speed-up: geometric mean of the row's samples per second divided by "
                    "that of the first row, with the 95 % interval of this row alone.");
  text += comparison.target_accuracy
              ? " Times and samples/s are arithmetic means, so their order may differ."
              : " Samples/s are arithmetic means, so their order may differ.";
  text += first_row_words(comparison, rows);
  text += tests_words(rows) +
          " Times begin with the first step, include the slower first steps, and leave out "
          "evaluation.";
  if (comparison.chance) {
    const bool is_validated = comparison.chance->validation_samples > 0;
    text += fmt::format(
        " {}ccuracy is on the test set of {} samples, whose own sampling error no deviation has. "
        "The final accuracy is of one moment; evaluations shortly before it may differ by more "
        "than the deviation.",
        is_validated ? "Times to the target are on the validation set, and the final a" : "A",
        decimal_text(static_cast<double>(comparison.chance->test_samples), 0));
  }
  const auto has_missed = [](const VariantSummary& row) { return row.reached < row.ended(); };
  if (comparison.target_accuracy && std::ranges::any_of(rows, has_missed)) {
    text +=
        " A median counts runs that missed the target or failed as longer (Kaplan and Meier 1958).";
  }
  text += rates_text(comparison);
  for (const std::string& group : identical_rows(rows)) {
    text += fmt::format(
        " {} ended with the same weights, bit for bit, and count as one row in accuracy.", group);
  }
  return text + counting_words(comparison, rows);
}

}  // namespace syncopate::bench
