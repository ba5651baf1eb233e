#include "bench/compare/report/verdict_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/reported_faults.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Rounds up, so that what is promised for a factor holds for the factor that is printed.
std::string detectable_factor(double logarithm) {
  const double factor = std::exp(logarithm);
  const int decimals = factor < 2.0 ? 2 : 1;
  const double unit = std::pow(10.0, -decimals);
  constexpr double kRounding = 1e-9;  // a factor that needs no rounding stays as it is
  return decimal_text(std::ceil(factor / unit - kRounding) * unit, decimals);
}

}  // namespace

std::string capitalised(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string VerdictWords::names(const RowIndices& rows) const {
  std::vector<std::string> words;
  for (const std::size_t row : rows) words.push_back(name(row));
  return listed(words);
}

std::string VerdictWords::either(const RowIndices& rows) const {
  std::string text = names(rows);
  const std::size_t at = text.rfind(" and ");
  if (rows.size() > 1 && at != std::string::npos) text.replace(at, 5, " or ");
  return text;
}

std::string VerdictWords::target() const { return percent_text(*comparison_.target_accuracy); }

std::string VerdictWords::seconds(double value) const {
  return short_text(value) + (comparison_.has_virtual_clock ? " virtual s" : " s");
}

std::string VerdictWords::mean_time(std::size_t row) const {
  return seconds(rows_[row].seconds_to_target->mean);
}

std::string VerdictWords::mean_times(const RowIndices& rows) const {
  std::vector<std::string> words;
  for (const std::size_t row : rows) words.push_back(mean_time(row));
  return listed(words);
}

int VerdictWords::fewest_seeds(const RowIndices& rows) const {
  int fewest = rows_[rows.front()].done;
  for (const std::size_t row : rows) fewest = std::min(fewest, rows_[row].done);
  return fewest;
}

std::string VerdictWords::seeds(const RowIndices& rows) const {
  return count_text(fewest_seeds(rows), "seed");
}

std::string VerdictWords::rates() const {
  const std::string& rule = comparison_.learning_rate_rule;
  if (rule == "linear") return "with learning rates scaled linearly with the batch, not tuned, ";
  if (rule == "sqrt") return "with learning rates scaled with the batch's square root, not tuned, ";
  if (rule == "inverse-workers") return "with learning rates divided by the workers, not tuned, ";
  if (rule == "preset") return "at the preset's learning rates, ";
  if (rule == "given") return "at the learning rates given for each variant, ";
  if (rule == "mixed") return "with learning rates chosen by several rules, ";
  std::optional<double> rate;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::optional<double> of_row = comparison_.variants[i].learning_rate;
    if (!of_row && rows_[i].learning_rate) of_row = rows_[i].learning_rate->mean;
    if (!of_row) continue;
    constexpr double kAlike = 0.01;  // relative difference of rates that count as one
    if (rate && std::abs(*rate - *of_row) > kAlike * *rate) {
      return "at learning rates that were neither scaled nor tuned, ";
    }
    rate = of_row;
  }
  return rate ? fmt::format("at one learning rate, {}, not tuned, ", exact_text(*rate)) : "";
}

bool VerdictWords::has_suitable_rates() const {
  const std::string& rule = comparison_.learning_rate_rule;
  return !rule.empty() && rule != "none" && rule != "mixed";
}

std::string VerdictWords::setting() const {
  const std::string all = faults();
  return fmt::format("{}{}{}", rates(),
                     comparison_.has_virtual_clock ? "under the virtual clock, " : "",
                     all.empty() ? "" : fmt::format("with {}, ", all));
}

std::string VerdictWords::faults() const { return describe_faults(effective_faults(comparison_)); }

std::string VerdictWords::detectable(const RowIndices& rows, Measure measure) const {
  double most = 0.0;
  std::size_t least_certain = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto pair = claims_.difference(rows.front(), rows[i], measure);
    if (!pair) continue;
    if (!std::isfinite(pair->detectable)) {
      return measure == Measure::kTime
                 ? "; no difference could have been seen where the first evaluation reached it"
                 : "";
    }
    if (pair->detectable <= most) continue;
    most = pair->detectable;
    least_certain = rows[i];
  }
  if (!(most > 0.0)) return "";
  double highest = 0.0;
  for (const std::size_t row : rows) highest = std::max(highest, rows_[row].accuracy->mean);
  const std::string difference = measure == Measure::kTime
                                     ? "a factor of " + detectable_factor(most)
                                     : fmt::format("{} points, of {} remaining to 100 %,",
                                                   points_text(most), points_text(1.0 - highest));
  return fmt::format(
      "; {}{} would have been seen with a probability of about 80 %", difference,
      rows.size() > 2 ? fmt::format(" ({}, less for the others)", name(least_certain)) : "");
}

std::string VerdictWords::detectable_over(std::size_t a, const RowIndices& rows) const {
  double most = 0.0;
  for (const std::size_t row : rows) {
    const auto pair = claims_.difference(row, a, Measure::kTime);
    if (!pair || !std::isfinite(pair->detectable)) return "";
    most = std::max(most, pair->detectable);
  }
  const std::string factor = fmt::format("{} over {}", detectable_factor(most), name(a));
  std::optional<double> possible;
  for (const std::size_t row : rows) {
    const auto by_cpus =
        parallel_factor(comparison_, comparison_.variants[a], comparison_.variants[row]);
    if (by_cpus) possible = std::max(possible.value_or(0.0), *by_cpus);
  }
  if (!possible || most <= std::log(*possible)) return factor;
  return fmt::format("{} (more than the {} that parallel work alone allows here)", factor,
                     decimal_text(*possible, 1));
}

std::string VerdictWords::times(const PairDifference& time) const {
  const std::size_t first = time.value < 0.0 ? time.a : time.b;
  const std::size_t second = first == time.a ? time.b : time.a;
  const PairDifference later = *claims_.difference(second, first, Measure::kTime);
  if (later.is_claimed()) {
    return fmt::format("{} took {} as long as {}{}", name(second),
                       factor_text(std::exp(later.value)), name(first), in_parentheses(later));
  }
  const std::string both = names({first, second});
  if (later.is_equal()) {
    return fmt::format("{} took equally long, within a factor of {}", both,
                       decimal_text(kEqualTime, 1));
  }
  const std::string interval = interval_words(later);
  return fmt::format(
      "{} cannot be told apart in time{}", both,
      interval.empty() ? "" : fmt::format(" (the latter took {} as long)", interval));
}

std::string VerdictWords::reached(std::size_t row) const {
  const VariantSummary& summary = rows_[row];
  std::vector<std::string> notes;
  if (summary.failed > 0) notes.push_back(fmt::format("{} failed", summary.failed));
  if (summary.disturbed > 0) {
    notes.emplace_back("busy machine");
  } else if (const auto middle = median(row)) {
    notes.push_back("median " + seconds(*middle));
  }
  return fmt::format("{} reached {} with {} of {}{}", name(row), target(), summary.reached,
                     count_text(summary.ended(), "seed"),
                     notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, "; ")));
}

std::string VerdictWords::why_no_claim(std::size_t row, Measure measure) const {
  const VariantSummary& summary = rows_[row];
  const bool has_missed = measure == Measure::kTime && summary.reached < summary.ended();
  if (has_missed || summary.failed > 0) {
    return fmt::format("{} of {} seeds{}", has_missed ? summary.reached : summary.done,
                       summary.ended(),
                       summary.failed > 0 ? fmt::format(", {} failed", summary.failed) : "");
  }
  if (summary.disturbed > 0) return "busy machine";
  if (!summary.has_comparable_times && measure == Measure::kTime) return "several machines";
  return count_text(summary.done, "seed");
}

std::optional<double> VerdictWords::median(std::size_t row) const {
  return censored_median(rows_[row].reached_seconds, rows_[row].ended());
}

std::string VerdictWords::accuracies(std::size_t a, std::size_t b) const {
  const auto pair = claims_.difference(a, b, Measure::kAccuracy);
  const std::string both = fmt::format("{} ({}) and {} ({})", accuracy_of(rows_[a]), name(a),
                                       accuracy_of(rows_[b]), name(b));
  if (!pair) {
    return have_same_weights(rows_[a], rows_[b])
               ? "both ended with the same weights"
               : fmt::format("final accuracies were {}, without a claim", both);
  }
  if (pair->is_claimed()) {
    return fmt::format("{} ended {} points {} than {}{}", name(a),
                       points_text(std::abs(pair->value)), pair->value < 0.0 ? "lower" : "higher",
                       name(b), in_parentheses(*pair));
  }
  if (pair->is_equal()) {
    return fmt::format("final accuracies, {}, are equal within {} points", both,
                       points_text(kEqualAccuracy));
  }
  return fmt::format("final accuracies, {}, cannot be told apart{}", both,
                     detectable({a, b}, Measure::kAccuracy));
}

}  // namespace syncopate::bench
