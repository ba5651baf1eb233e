#include "bench/compare/report/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"
#include "bench/compare/report/statistics.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/terminal_table.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

void require_same(const char* what, const std::string& ours, const std::string& theirs) {
  if (ours == theirs) return;
  throw UsageError(
      fmt::format("--against: the {} of the two comparisons differ: {} and {}; "
                  "give a comparison with the same",
                  what, or_unknown(ours), or_unknown(theirs)));
}

// Returns the budget without the name of the data set, which names a folder.
std::string budget_of(const Comparison& comparison) {
  const std::string of_data = " of " + comparison.data;
  const std::string& budget = comparison.budget;
  return budget.ends_with(of_data) ? budget.substr(0, budget.size() - of_data.size()) : budget;
}

// Throws UsageError if the speeds of two variants of one name measure different work.
void require_same_variant(const ComparedVariant& ours, const ComparedVariant& theirs) {
  const auto require = [&](const char* what, std::int64_t our_value, std::int64_t their_value) {
    if (our_value == their_value) return;
    throw UsageError(
        fmt::format("--against: the {} of {} differ: {} and {}; give a comparison with the same",
                    what, ours.label, our_value, their_value));
  };
  require("workers", ours.workers, theirs.workers);
  require("servers", ours.servers, theirs.servers);
  const bool are_known = ours.batch_size > 0 && theirs.batch_size > 0;
  if (are_known) require("samples per step", ours.batch_size, theirs.batch_size);
}

void require_comparable(const Comparison& ours, const Comparison& theirs) {
  require_same("networks", ours.model, theirs.model);
  // The same data may be in another folder.
  const bool have_hashes = !ours.data_hash.empty() && !theirs.data_hash.empty();
  if (!have_hashes) require_same("data sets", ours.data, theirs.data);
  if (have_hashes && ours.data_hash != theirs.data_hash) {
    require_same("data sets", fmt::format("{} ({})", ours.data, ours.data_hash),
                 fmt::format("{} ({})", theirs.data, theirs.data_hash));
  }
  require_same("budgets", budget_of(ours), budget_of(theirs));
  if (ours.derived_target || theirs.derived_target) return;
  require_same("targets", target_text(ours), target_text(theirs));
}

// Returns the ratio of the geometric means of two samples with its interval; nullopt if a sample is
// empty or has a value that is not positive.
std::optional<TimeRatio> ratio_of(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kLevel = 0.05;
  const auto is_usable = [](const std::vector<double>& values) {
    return !values.empty() && std::ranges::min(values) > 0.0;
  };
  if (!is_usable(a) || !is_usable(b)) return std::nullopt;
  const std::vector<double> log_a = logarithms_of(a);
  const std::vector<double> log_b = logarithms_of(b);
  const double difference = mean(log_a) - mean(log_b);
  const auto test = welch_test(log_a, log_b);
  const double reach = test ? test->reach(kLevel, 2) : std::numeric_limits<double>::infinity();
  return TimeRatio{.value = std::exp(difference),
                   .low = std::exp(difference - reach),
                   .high = std::exp(difference + reach)};
}

// A difference of a value of `ours` from the value of `theirs`.
struct SpeedError {
  double size = 0.0;  // divided by the value of `theirs`, without its sign
  std::string words;  // "samples/s of async"
};

// Prints the lines of the variants and finds the largest error.
class Against {
 public:
  Against(const Comparison& ours, const Comparison& theirs)
      : target_("time to " + target_text(ours)) {
    table_.heads = {{"this / other"}, {"samples/s"}, {target_}};
    const Rows our_rows = summarise(ours);
    const Rows their_rows = summarise(theirs);
    for (std::size_t i = 0; i < our_rows.size(); ++i) {
      const auto other = std::ranges::find(their_rows, our_rows[i].name, &VariantSummary::name);
      if (other == their_rows.end()) continue;
      const auto j = static_cast<std::size_t>(other - their_rows.begin());
      require_same_variant(ours.variants[i], theirs.variants[j]);
      add(our_rows[i], *other);
    }
    if (table_.rows.empty()) {
      throw UsageError(
          "--against: the two comparisons have no variant in common; give comparisons of the same "
          "--strategies");
    }
  }

  void print(std::ostream& out) const {
    print_columns(out, table_);
    out << '\n';
    print_paragraph(out,
                    largest_.words.empty()
                        ? "No value can be compared."
                        : fmt::format("Largest error: {}, {}.",
                                      percent_text(std::round(1000.0 * largest_.size) / 1000.0),
                                      largest_.words));
  }

 private:
  void add(const VariantSummary& row, const VariantSummary& other) {
    const auto values = [](const std::optional<Sample>& sample) {
      return sample ? sample->values : std::vector<double>();
    };
    const auto text = [&](const std::optional<TimeRatio>& ratio, const std::string& what) {
      if (!ratio) return std::string("-");
      const double size = std::abs(ratio->value - 1.0);
      if (size >= largest_.size) largest_ = {size, what + " of " + row.name};
      return ratio->has_interval()
                 ? fmt::format("{:.2f} ({:.2f} to {:.2f})", ratio->value, ratio->low, ratio->high)
                 : fmt::format("{:.2f}", ratio->value);
    };
    const bool have_reached = row.seconds_to_target && other.seconds_to_target;
    table_.rows.push_back(
        {.name = row.name,
         .cells = {text(ratio_of(values(row.samples_per_second), values(other.samples_per_second)),
                        "samples/s"),
                   have_reached
                       ? text(ratio_of(row.reached_seconds, other.reached_seconds), target_)
                       : fmt::format("{} of {} / {} of {}", row.reached, row.ended(), other.reached,
                                     other.ended())}});
  }

  const std::string target_;
  Table table_;
  SpeedError largest_;
};

}  // namespace

void print_against(std::ostream& out, const Comparison& ours, Comparison theirs) {
  require_comparable(ours, theirs);
  theirs.target_accuracy = ours.target_accuracy;
  Against(ours, theirs).print(out);
}

}  // namespace syncopate::bench
