// Finds the seed with which all rows trained slower or faster than with the others. The machine
// itself may have had another speed then, which no share of its CPUs shows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/compare/report/verdict.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// The speed of one run: its logarithm less the mean logarithm of the row's other runs.
struct Deviation {
  double logarithm = 0.0;
  std::size_t row = 0;
};

// Returns the logarithm of a value less the mean logarithm of the other values.
double deviation_of(const std::vector<double>& values, std::size_t index) {
  double sum = 0.0;
  for (const double value : values) sum += std::log(value);
  const double own = std::log(values[index]);
  return own - (sum - own) / static_cast<double>(values.size() - 1);
}

std::map<std::uint64_t, std::vector<Deviation>> deviations_by_seed(const Comparison& comparison,
                                                                   const Rows& rows) {
  std::map<std::uint64_t, std::vector<Deviation>> by_seed;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].done < kSeedsForAccuracy || rows[i].disturbed > 0) continue;
    std::size_t next = 0;
    for (const ComparedRun& run : comparison.variants[i].runs) {
      if (!run.is_done()) continue;
      const double deviation = deviation_of(rows[i].samples_per_second->values, next++);
      by_seed[run.result->seed].push_back({deviation, i});
    }
  }
  return by_seed;
}

double mean_of(const std::vector<Deviation>& deviations) {
  double sum = 0.0;
  for (const Deviation& one : deviations) sum += one.logarithm;
  return sum / static_cast<double>(deviations.size());
}

// Returns "3 % more" or "40 % fewer".
std::string more_or_fewer(double logarithm) {
  return fmt::format("{} % {}", decimal_text(100.0 * std::abs(std::expm1(logarithm)), 0),
                     logarithm > 0.0 ? "more" : "fewer");
}

// Returns ", and a reached 95 % in 0.936 s, 2.4x as long": the row whose time with this seed
// deviates most in the direction of the speed, if its speed explains half of that; "" if none.
// direction: 1 for a slower machine, -1 for a faster one.
std::string time_words(const Comparison& comparison, const Rows& rows, std::uint64_t seed,
                       double direction) {
  double most = std::log(1.5);  // a time that deviates less is not named
  std::string text;
  for (const VariantSummary& row : rows) {
    const auto at = std::ranges::find(row.seeds, seed);
    if (at == row.seeds.end() || row.done < 2 || row.disturbed > 0) continue;
    if (row.reached != row.done) continue;
    const auto index = static_cast<std::size_t>(at - row.seeds.begin());
    const double longer = deviation_of(row.reached_seconds, index);
    const double slower = -deviation_of(row.samples_per_second->values, index);
    if (!(direction * longer > most) || !std::isfinite(longer)) continue;
    if (direction * slower < 0.5 * direction * longer) continue;  // it needed other samples
    most = direction * longer;
    text = fmt::format(", and {} reached {} in {} s, {} as long", named(row),
                       percent_text(*comparison.target_accuracy),
                       short_text(row.reached_seconds[index]), factor_text(std::exp(longer)));
  }
  return text;
}

}  // namespace

std::optional<Warning> uneven_machine(const Comparison& comparison, const Rows& rows) {
  constexpr double kUneven = 0.9;  // of the speed with the other seeds, or its inverse
  if (comparison.has_virtual_clock) return std::nullopt;
  const auto by_seed = deviations_by_seed(comparison, rows);
  std::uint64_t seed = 0;
  double largest = 0.0;
  for (const auto& [of, deviations] : by_seed) {
    const double deviation = mean_of(deviations);
    if (deviations.size() < 2 || !(std::abs(deviation) > std::abs(largest))) continue;
    seed = of;
    largest = deviation;
  }
  if (std::abs(largest) <= -std::log(kUneven)) return std::nullopt;
  const auto [lowest, highest] = std::ranges::minmax(by_seed.at(seed), {}, &Deviation::logarithm);
  const auto words = [&](const Deviation& one) {
    return fmt::format("{} ({})", more_or_fewer(one.logarithm), named(rows[one.row]));
  };
  return Warning{
      "uneven machine",
      fmt::format("with seed {}, the largest deviation, the rows trained {} samples/s (geometric "
                  "mean) than with the others, from {} to {}{}: a repetition may order the rows "
                  "differently; speed-ups, deviations and intervals include this",
                  seed, more_or_fewer(largest), words(largest < 0.0 ? highest : lowest),
                  words(largest < 0.0 ? lowest : highest),
                  time_words(comparison, rows, seed, largest < 0.0 ? 1.0 : -1.0))};
}

}  // namespace syncopate::bench
