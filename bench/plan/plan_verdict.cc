#include "bench/plan/plan_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr double kAlike = 0.9;        // a smaller gain is not worth more workers or staleness
constexpr double kStillScales = 0.5;  // least efficiency at which adding workers still pays

using Rows = std::vector<const PlanRow*>;

// Groups the rows by strategy, in the order of the plan.
std::vector<Rows> by_strategy(const Plan& plan) {
  std::vector<Rows> all;
  for (const PlanRow& row : plan.rows) {
    const bool is_new = all.empty() || all.back().back()->variant.label != row.variant.label;
    if (is_new) all.emplace_back();
    all.back().push_back(&row);
  }
  return all;
}

// Whether the row's strategy is one process with more workers than a machine holds.
bool exceeds_machine(const PlanOptions& options, const PlanRow& row) {
  return !row.variant.has_tasks() && row.variant.workers > options.workers_per_machine;
}

// Whether a row can be used.
bool fits(const PlanOptions& options, const PlanRow& row) { return !exceeds_machine(options, row); }

// Returns the merit of a row; a higher merit is better, and 0 excludes the row.
double merit(const PlanOptions& options, const PlanRow& row) {
  if (!fits(options, row) || is_too_stale(row)) return 0.0;
  if (!options.time_to_target) return row.samples_per_second;
  return row.target && row.target->seconds ? 1.0 / std::max(*row.target->seconds, 1e-9) : 0.0;
}

bool is_better(const PlanOptions& options, const PlanRow* a, const PlanRow* b) {
  return merit(options, *a) < merit(options, *b);
}

// Keeps only efficient rows, because a thousand workers that are a quarter faster than one are a
// bad choice.
Rows candidates(const PlanOptions& options, const Plan& plan) {
  Rows all;
  Rows efficient;
  for (const PlanRow& row : plan.rows) {
    if (merit(options, row) <= 0.0) continue;
    all.push_back(&row);
    if (row.efficiency >= kStillScales) efficient.push_back(&row);
  }
  return options.time_to_target || efficient.empty() ? all : efficient;
}

std::string what_fills_it(const TimingResult& timing) {
  if (timing.communication_share >= std::max(timing.peers_share, timing.server_share)) {
    return fmt::format("{:.0f}% of the workers' time is communication",
                       100.0 * timing.communication_share);
  }
  if (timing.server_share >= timing.peers_share) {
    return fmt::format("{:.0f}% of the workers' time is waiting for the servers' updates",
                       100.0 * timing.server_share);
  }
  return fmt::format("{:.0f}% of the workers' time is waiting for each other",
                     100.0 * timing.peers_share);
}

std::string scaling_of(const Rows& rows) {
  const std::string name = rows.front()->variant.label + ": ";
  const auto best = *std::ranges::max_element(rows, {}, &PlanRow::samples_per_second);
  const auto below =
      std::ranges::find_if(rows, [](const PlanRow* row) { return row->efficiency < kStillScales; });
  std::string text = name;
  if (below == rows.end()) {
    text += "above half of linear at all counts that were tried; " +
            fmt::format("{:.3g}x", rows.back()->speed_up) + " with " +
            count_text(rows.back()->variant.workers, "worker");
  } else {
    const PlanRow& first = **below;
    text += "below half of linear with " + count_text(first.variant.workers, "worker");
    if (below != rows.begin()) {
      text += fmt::format(" (not yet with {})", (*std::prev(below))->variant.workers);
    }
    text += ", where " + what_fills_it(first.timing);
  }
  if (best != rows.back()) {
    text += "; more than " + count_text(best->variant.workers, "worker") +
            " train no more samples per second";
  }
  return text + ".\n";
}

const PlanRow* fewest_alike(const PlanOptions& options, const Rows& rows) {
  double best = 0.0;
  for (const PlanRow* row : rows) best = std::max(best, merit(options, *row));
  const PlanRow* fewest = nullptr;
  for (const PlanRow* row : rows) {
    if (merit(options, *row) < kAlike * best || merit(options, *row) == 0.0) continue;
    if (fewest == nullptr || row->variant.workers < fewest->variant.workers) fewest = row;
  }
  return fewest;
}

// Describes a row, such as "mirrored with 8 workers: 700 samples/s, 7x one worker, ...".
std::string row_text(const PlanRow& row) {
  const double staleness = row.timing.staleness_max == 0 ? 0.0 : row.timing.staleness_mean;
  return fmt::format(
      "{} with {}: {} samples/s, {:.3g}x one worker, efficiency {:.3g}%; mean staleness {:.3g}, "
      "maximum {}",
      row.variant.label, count_text(row.variant.workers, "worker"),
      number_text(row.samples_per_second), row.speed_up, 100.0 * row.efficiency, staleness,
      row.timing.staleness_max);
}

// choice: the row to recommend; null if no row reached the target.
std::string by_time_to_target(const PlanOptions& options, const Plan& plan, const PlanRow* choice) {
  if (choice == nullptr) {
    return fmt::format(
        "No row reached {:.4g}%; give more --epochs, other flags of train, or another "
        "--target-accuracy.\n",
        100.0 * options.target_accuracy);
  }
  const auto soonest = std::ranges::max_element(
      plan.rows, {}, [&](const PlanRow& row) { return merit(options, row); });
  const auto by_row = [](const PlanRow& row) {
    return fmt::format("{} virtual s by {}.\n", number_text(*row.target->seconds), row_text(row));
  };
  const std::string text = fmt::format("Shortest time to {:.4g}%: {}",
                                       100.0 * options.target_accuracy, by_row(*soonest));
  return choice == &*soonest
             ? text
             : text + fmt::format("Recommended (rows within {:.2g}% count as equal): {}",
                                  100.0 * (1.0 - kAlike), by_row(*choice));
}

// Returns the usable row with the most samples per second; null if there is none.
const PlanRow* find_fastest(const PlanOptions& options, const Plan& plan, bool may_be_too_stale) {
  const PlanRow* most = nullptr;
  for (const PlanRow& row : plan.rows) {
    if (!fits(options, row) || (is_too_stale(row) && !may_be_too_stale)) continue;
    if (most == nullptr || row.samples_per_second > most->samples_per_second) most = &row;
  }
  return most;
}

// Returns the refusal of a row that is too stale, and the best row within the limit.
std::string within_limit(const PlanRow* best) {
  std::string text = fmt::format(
      "It is not recommended: its mean staleness is above {}. In the preset staleness of compare, "
      "accuracy fell by half a point at a mean staleness of 3 and by four points at 7; the preset "
      "has no row between them (bench/README.md).\n",
      kMostStaleness);
  if (best == nullptr) {
    return text + fmt::format("No row has a mean staleness of at most {}.\n", kMostStaleness);
  }
  return text + fmt::format("Most samples per second with a mean staleness of at most {}: {}.\n",
                            kMostStaleness, row_text(*best));
}

const PlanRow* find_recommended(const PlanOptions& options, const Plan& plan) {
  const Rows rows = candidates(options, plan);
  if (rows.empty()) return nullptr;
  const auto less = [&](const PlanRow* a, const PlanRow* b) { return is_better(options, a, b); };
  const PlanRow* best = *std::ranges::max_element(rows, less);
  Rows synchronous;
  for (const PlanRow* row : rows) {
    if (row->variant.is_synchronous) synchronous.push_back(row);
  }
  if (!synchronous.empty()) {
    const PlanRow* other = *std::ranges::max_element(synchronous, less);
    if (merit(options, *other) >= kAlike * merit(options, *best)) best = other;
  }
  Rows of_strategy;
  for (const PlanRow* row : rows) {
    if (row->variant.label == best->variant.label) of_strategy.push_back(row);
  }
  return fewest_alike(options, of_strategy);
}

// Whether the tasks of the row are on several machines.
bool has_several_machines(const PlanOptions& options, const PlanRow& row) {
  return row.variant.has_tasks() && row.variant.workers > options.workers_per_machine;
}

double samples_per_second_of_one_machine(const PlanOptions& options, const Plan& plan) {
  double most = plan.one_worker_samples_per_second;
  for (const PlanRow& row : plan.rows) {
    const bool is_one = !row.variant.has_tasks() && !exceeds_machine(options, row);
    if (is_one) most = std::max(most, row.samples_per_second);
  }
  return most;
}

Rows slower_than_one_machine(const PlanOptions& options, const Plan& plan) {
  const double one = samples_per_second_of_one_machine(options, plan);
  Rows slower;
  for (const PlanRow& row : plan.rows) {
    if (has_several_machines(options, row) && row.samples_per_second < one) slower.push_back(&row);
  }
  return slower;
}

// Returns the sentence that names these rows; "" if there are none.
std::string slower_text(const Rows& slower) {
  std::vector<std::string> names;
  for (auto row = slower.begin(); row != slower.end();) {
    const std::string& label = (*row)->variant.label;
    std::vector<std::string> workers;
    for (; row != slower.end() && (*row)->variant.label == label; ++row) {
      workers.push_back(std::to_string((*row)->variant.workers));
    }
    names.push_back(fmt::format("{} with {} workers", label, listed(workers)));
  }
  if (names.empty()) return "";
  return fmt::format("Several machines train fewer samples per second than one: {}.\n",
                     fmt::join(names, "; "));
}

std::string not_quiet_text(const Plan& plan) {
  return fmt::format(
      "No row is recommended, because other processes used {:.0f}% of one CPU during the "
      "measurements, more than {:.0f}%, and the times may be too long; give the same command on a "
      "quiet machine.",
      100.0 * plan.foreign_share, 100.0 * kForeignLimit);
}

std::string recommendation(const PlanOptions& options, const Plan& plan,
                           const PlanVerdict& verdict) {
  const PlanRow* most = verdict.fastest;
  if (most == nullptr) {
    return "Most samples per second: none. No row can be recommended, because no row is of a "
           "strategy that reaches over several machines.\n";
  }
  const PlanRow* row = verdict.recommended;
  std::string text = "Most samples per second: " + row_text(*most) + ".\n";
  const PlanRow* best = find_fastest(options, plan, false);
  if (is_too_stale(*most)) text += within_limit(best);
  if (options.time_to_target) return text + by_time_to_target(options, plan, row);
  if (row == nullptr || row == best) return text;
  const auto has_several = [&](const PlanRow& other) {
    return fits(options, other) && other.variant.workers > 1;
  };
  if (row->variant.workers == 1 && std::ranges::any_of(plan.rows, has_several)) {
    text += fmt::format(
        "Several workers do not pay here: those with an efficiency of at least {:.3g}% train "
        "hardly "
        "more samples per second.\n",
        100.0 * kStillScales);
  }
  text += "Recommended";
  if (row->efficiency >= kStillScales) {
    text += fmt::format(", with an efficiency of at least {:.3g}%", 100.0 * kStillScales);
  }
  return text + fmt::format(" (rows within {:.2g}% count as equal): {}.\n", 100.0 * (1.0 - kAlike),
                            row_text(*row));
}

// Returns the line below the table that marks rows shown only for comparison.
std::string one_process_text(const PlanOptions& options, const Plan& plan) {
  std::string names;
  std::string last;
  for (const PlanRow& row : plan.rows) {
    if (!exceeds_machine(options, row) || row.variant.label == last) continue;
    last = row.variant.label;
    names += (names.empty() ? "" : ", ") + last;
  }
  if (names.empty()) return "";
  return names + ": one process on one machine. With more than " +
         count_text(options.workers_per_machine, "worker") +
         " (--workers-per-machine) the rows predict replicas with such links between them; they "
         "are not recommended.\n";
}

std::string caveat(const PlanOptions& options) {
  constexpr std::string_view kAlways =
      " Each server updates on one thread, as fast as a thread of this machine. A server's work "
      "for messages, and links shared with other jobs, are not in it.";
  if (options.time_to_target) {
    return fmt::format(
        "The shortest time is from one run with seed {} of each row with up to {} workers; larger "
        "jobs were not trained. As in compare, rows with larger updates were trained at larger "
        "learning rates, unless flags of train set --learning-rate-scale or, in braces, the "
        "rate.{}",
        options.seed, kMostTrainedWorkers, kAlways);
  }
  return fmt::format(
      "Statistical efficiency is not in it: how many samples a target takes with these batches and "
      "this staleness; --time-to-target trains rows with up to {} workers to find out.{}",
      kMostTrainedWorkers, kAlways);
}

}  // namespace

bool is_too_stale(const PlanRow& row) {
  const bool reached_target = row.target && row.target->seconds;
  return !reached_target && row.timing.staleness_mean > kMostStaleness;
}

bool is_quiet(const Plan& plan) { return plan.foreign_share <= kForeignLimit; }

PlanVerdict judge(const PlanOptions& options, const Plan& plan) {
  if (!is_quiet(plan)) return {};
  return {.is_quiet = true,
          .fastest = find_fastest(options, plan, true),
          .recommended = find_recommended(options, plan),
          .slower_than_one_machine = slower_than_one_machine(options, plan)};
}

std::string verdict_of(const PlanOptions& options, const Plan& plan) {
  const PlanVerdict verdict = judge(options, plan);
  if (!verdict.is_quiet) return not_quiet_text(plan);
  std::string text = recommendation(options, plan, verdict) +
                     slower_text(verdict.slower_than_one_machine) + one_process_text(options, plan);
  for (const Rows& rows : by_strategy(plan)) {
    if (rows.size() > 1) text += scaling_of(rows);
  }
  return text + caveat(options);
}

}  // namespace syncopate::bench
