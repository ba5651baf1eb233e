#include "bench/plan/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "bench/harness/report.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

std::string percent(double share) {
  return fmt::format("{:.{}f}%", 100.0 * share, share > 0.0 && share < 0.0995 ? 1 : 0);
}

std::string time_text(double seconds) {
  if (seconds >= 1.0) return number_text(seconds) + " s";
  if (seconds >= 1e-3) return number_text(1e3 * seconds) + " ms";
  return number_text(1e6 * seconds) + " us";
}

std::string bytes_text(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return size >= 1e6 ? number_text(size / 1e6) + " MB" : number_text(size / 1e3) + " KB";
}

std::string link_text(const Link& link) {
  const std::string rate =
      link.bytes_per_second > 0.0
          ? fmt::format("{:g} Gbit/s each way", 8.0 * link.bytes_per_second / 1e9)
          : std::string("no limit of bytes per second");
  return rate + ", " + time_text(link.delay_seconds) + " one way";
}

std::string target_cell(const std::optional<TargetTime>& target) {
  if (!target) return "-";
  if (!target->failure.empty()) return "failed";
  if (!target->seconds) return "not reached";
  return number_text(*target->seconds);
}

std::vector<std::string> cells_of(const PlanRow& row, bool has_target) {
  const TimingResult& timing = row.timing;
  std::vector<std::string> cells = {
      row.variant.label,
      std::to_string(row.variant.workers),
      number_text(timing.updates_per_second),
      number_text(row.samples_per_second),
      number_text(row.speed_up) + "x",
      percent(row.efficiency),
      timing.staleness_max == 0 ? "0" : number_text(timing.staleness_mean),
      std::to_string(timing.staleness_max),
      percent(timing.compute_share),
      percent(timing.communication_share),
      percent(timing.peers_share)};
  if (has_target) cells.push_back(target_cell(row.target));
  return cells;
}

json json_of(const PlanRow& row) {
  const TimingResult& timing = row.timing;
  json object = {{"strategy", row.variant.label},
                 {"workers", row.variant.workers},
                 {"servers", row.variant.servers},
                 {"updates_simulated", timing.updates},
                 {"updates_per_second", timing.updates_per_second},
                 {"relative_error", timing.relative_error},
                 {"samples_per_second", row.samples_per_second},
                 {"speed_up", row.speed_up},
                 {"efficiency", row.efficiency},
                 {"staleness_mean", timing.staleness_mean},
                 {"staleness_max", timing.staleness_max},
                 {"compute_share", timing.compute_share},
                 {"communication_share", timing.communication_share},
                 {"peers_share", timing.peers_share}};
  if (row.target) {
    json target = {{"test_accuracy", row.target->accuracy}};
    if (row.target->seconds) target["virtual_seconds"] = *row.target->seconds;
    if (!row.target->failure.empty()) target["failure"] = row.target->failure;
    object["time_to_target"] = target;
  }
  return object;
}

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

// Whether a row can be used: a strategy of one process cannot span several machines.
bool fits(const PlanOptions& options, const PlanRow& row) {
  return row.variant.has_tasks() || row.variant.workers <= options.workers_per_machine;
}

// Returns the merit of a row; a higher merit is better, and 0 excludes the row.
double merit(const PlanOptions& options, const PlanRow& row) {
  if (!fits(options, row)) return 0.0;
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
  if (timing.communication_share >= timing.peers_share) {
    return fmt::format("{:.0f}% of the workers' time is communication",
                       100.0 * timing.communication_share);
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

std::string recommendation(const PlanOptions& options, const Plan& plan) {
  const PlanRow* row = recommended(options, plan);
  if (row == nullptr && !options.time_to_target) {
    return "No row can be recommended: none is of a strategy that reaches over several machines.\n";
  }
  if (row == nullptr) {
    return fmt::format(
        "No row reached {:.4g}%; give more --epochs, other flags of train, or another "
        "--target-accuracy.\n",
        100.0 * options.target_accuracy);
  }
  std::string text =
      "Use " + row->variant.label + " with " + count_text(row->variant.workers, "worker") + ": " +
      number_text(row->samples_per_second) + " samples/s, " +
      fmt::format("{:.3g}x one worker, efficiency {:.3g}%", row->speed_up, 100.0 * row->efficiency);
  if (options.time_to_target) {
    text += ", " + number_text(*row->target->seconds) + " virtual s to " +
            fmt::format("{:.4g}%", 100.0 * options.target_accuracy);
  }
  text += row->timing.staleness_max == 0
              ? "; no gradient is stale.\n"
              : fmt::format("; gradients are {} versions old on average, {} at most.\n",
                            number_text(row->timing.staleness_mean), row->timing.staleness_max);
  return text;
}

// Names the row with the most samples per second if it is faster than the recommended row but less
// efficient.
std::string fastest_text(const PlanOptions& options, const Plan& plan) {
  const PlanRow* used = recommended(options, plan);
  const auto speed = [&](const PlanRow& row) {
    return fits(options, row) ? row.samples_per_second : 0.0;
  };
  const auto fastest = std::ranges::max_element(plan.rows, {}, speed);
  if (used == nullptr || options.time_to_target ||
      kAlike * fastest->samples_per_second <= used->samples_per_second) {
    return "";
  }
  return "The most samples per second of all: " + fastest->variant.label + " with " +
         count_text(fastest->variant.workers, "worker") + ", " +
         number_text(fastest->samples_per_second) +
         fmt::format(", at an efficiency of {:.3g}%.\n", 100.0 * fastest->efficiency);
}

// Returns the line below the table that marks rows shown only for comparison.
std::string one_process_text(const PlanOptions& options, const Plan& plan) {
  std::string names;
  std::string last;
  for (const PlanRow& row : plan.rows) {
    if (fits(options, row) || row.variant.label == last) continue;
    last = row.variant.label;
    names += (names.empty() ? "" : ", ") + last;
  }
  if (names.empty()) return "";
  return names + ": one process on one machine. With more than " +
         count_text(options.workers_per_machine, "worker") +
         " (--workers-per-machine) the rows say what replicas would do that had such links between "
         "them; they are not recommended.\n";
}

std::string caveat(const PlanOptions& options) {
  constexpr std::string_view kAlways =
      " Servers' computing, and links shared with other jobs, are not in it.";
  if (options.time_to_target) {
    return fmt::format(
        "The recommendation is by time to target, from one run with seed {} of each row with up to "
        "{} workers; rows with more were not trained.{}",
        options.seed, kMostTrainedWorkers, kAlways);
  }
  return fmt::format(
      "The recommendation is by samples per second at an efficiency of at least half. Statistical "
      "efficiency is not in it: how many samples a target takes with these batches and this "
      "staleness; --time-to-target trains rows with up to {} workers to find out.{}",
      kMostTrainedWorkers, kAlways);
}

}  // namespace

void print_plan(std::ostream& out, const PlanOptions& options, const Plan& plan) {
  const Calibration& measured = plan.calibration;
  out << "measured here: a step of " << options.model << " with " << options.batch_size_per_replica
      << " samples takes " << time_text(measured.step_seconds) << " on one thread (median of "
      << measured.steps << ", " << time_text(measured.lowest_seconds) << " to "
      << time_text(measured.highest_seconds) << "); " << plan.parameters << " parameters, "
      << bytes_text(plan.model_bytes()) << "\n";
  out << "assumed: a step takes " << time_text(plan.mean_step_seconds)
      << (options.service_time.empty() ? ", as measured, each time"
                                       : " on average (" + options.service_time + ")")
      << "; links of " << link_text(options.link) << "; " << options.servers
      << (options.servers == 1 ? " parameter server\n" : " parameter servers\n");
  out << "simulated: one worker trains " << number_text(plan.one_worker_samples_per_second)
      << " samples/s";
  if (plan.most_pushes_per_second) {
    out << "; the servers' links carry at most " << number_text(*plan.most_pushes_per_second)
        << " pushes/s, "
        << number_text(*plan.most_pushes_per_second *
                       static_cast<double>(options.batch_size_per_replica))
        << " samples/s";
  }
  out << "\n\n";
  std::vector<std::vector<std::string>> cells = {{"strategy", "workers", "updates/s", "samples/s",
                                                  "speed-up", "efficiency", "staleness", "max",
                                                  "computing", "links", "peers"}};
  if (options.time_to_target) {
    cells.front().push_back("to " + percent(options.target_accuracy) + ", virtual s");
  }
  for (const PlanRow& row : plan.rows) cells.push_back(cells_of(row, options.time_to_target));
  out << format_table(cells);
  for (const std::string& left_out : plan.left_out) out << "left out: " << left_out << "\n";
  for (const PlanRow& row : plan.rows) {
    if (row.target && !row.target->failure.empty()) {
      out << "failed: " << row.variant.label << ", " << row.variant.workers
          << " workers: " << row.target->failure << "\n";
    }
  }
}

std::string json_of(const PlanOptions& options, const Plan& plan) {
  json rows = json::array();
  for (const PlanRow& row : plan.rows) rows.push_back(json_of(row));
  json object = {{"model", options.model},
                 {"data", options.data},
                 {"batch_size_per_replica", options.batch_size_per_replica},
                 {"calibration",
                  {{"step_seconds", plan.calibration.step_seconds},
                   {"lowest_seconds", plan.calibration.lowest_seconds},
                   {"highest_seconds", plan.calibration.highest_seconds},
                   {"steps", plan.calibration.steps},
                   {"device", plan.calibration.device}}},
                 {"parameters", plan.parameters},
                 {"server_bytes", plan.server_bytes},
                 {"service_time", options.service_time},
                 {"mean_step_seconds", plan.mean_step_seconds},
                 {"link_delay_seconds", options.link.delay_seconds},
                 {"link_bytes_per_second", options.link.bytes_per_second},
                 {"one_worker_samples_per_second", plan.one_worker_samples_per_second},
                 {"seed", options.seed},
                 {"left_out", plan.left_out},
                 {"rows", rows}};
  if (plan.most_pushes_per_second) object["most_pushes_per_second"] = *plan.most_pushes_per_second;
  return object.dump(2);
}

const PlanRow* recommended(const PlanOptions& options, const Plan& plan) {
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

std::string verdict_of(const PlanOptions& options, const Plan& plan) {
  std::string text = one_process_text(options, plan);
  for (const Rows& rows : by_strategy(plan)) {
    if (rows.size() > 1) text += scaling_of(rows);
  }
  return text + recommendation(options, plan) + fastest_text(options, plan) + caveat(options);
}

}  // namespace syncopate::bench
