#include "bench/scaling/scaling_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/compare/report/statistics.h"
#include "bench/harness/report.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

// All sides of the table run on the CPUs of one machine, the one that measures.
constexpr int kNodes = 1;
constexpr const char* kDevice = "cpu";

double utilisation_of(const ScalingResult& result, std::size_t entry, int cpus) {
  std::vector<double> shares;
  for (const std::size_t round : quiet_rounds(result.rounds.foreign)) {
    const ScalingTurn& turn = result.turns[entry][round];
    shares.push_back(turn.cpu_seconds / (turn.wall_seconds * cpus));
  }
  return mean(shares);
}

ScalingRow make_row(const ScalingResult& result, std::size_t i, int cpus) {
  const ScalingEntry& entry = result.entries[i];
  ScalingRow row{.strategy = entry.name,
                 .tasks = std::max<int>(1, static_cast<int>(entry.side->pids().size())),
                 .replicas = entry.replicas,
                 .threads = entry.lanes,
                 .batch_size = entry.batch_size,
                 .samples_per_second = spread_of(result.rounds.counted(i)),
                 .samples_per_second_per_round = result.rounds.sides[i],
                 .speed_up = ratio_of(result.rounds.counted(i), result.rounds.counted(0))};
  row.utilisation = utilisation_of(result, i, row.cpus());
  row.is_oversubscribed = row.cpus() > cpus;
  return row;
}

std::string spread_cell(const Spread& spread, std::string (*text)(double)) {
  return text(spread.median) + " [" + text(spread.min) + "-" + text(spread.max) + "]";
}

std::string whole_percent(double fraction) { return decimal_text(100.0 * fraction, 0); }

bool any_oversubscribed(const ScalingTable& table) {
  return std::ranges::any_of(table.rows, &ScalingRow::is_oversubscribed);
}

TableRow cells_of(const ScalingTable& table, const ScalingRow& row) {
  const ScalingRow& base = table.rows.front();
  TableRow line{.name = row.strategy};
  for (const int count : {kNodes, row.tasks, row.replicas, row.cpus_per_task()}) {
    line.cells.push_back(std::to_string(count));
  }
  line.cells.insert(line.cells.end(),
                    {kDevice, spread_cell(row.samples_per_second, short_text),
                     short_text(seconds_per_pass(table, row)), whole_percent(row.utilisation),
                     spread_cell(row.speed_up, short_text),
                     whole_percent(scaling_efficiency(row.speed_up.median, row, base))});
  if (row.is_oversubscribed) line.notes.emplace_back("oversubscribed");
  return line;
}

std::string batch_note(const ScalingTable& table) {
  const ScalingRow& base = table.rows.front();
  const bool is_global = std::ranges::all_of(
      table.rows, [&](const ScalingRow& row) { return row.batch_size == base.batch_size; });
  const bool is_one_count = std::ranges::all_of(
      table.rows, [&](const ScalingRow& row) { return row.replicas == base.replicas; });
  if (is_global && !is_one_count) {
    return "All replicas together have a batch of " + std::to_string(base.batch_size) + ".";
  }
  return "Each replica has a batch of " + std::to_string(base.batch_size / base.replicas) + ".";
}

json row_json(const ScalingTable& table, const ScalingRow& row) {
  const ScalingRow& base = table.rows.front();
  return {{"strategy", row.strategy},
          {"nodes", kNodes},
          {"tasks", row.tasks},
          {"replicas", row.replicas},
          {"threads_per_replica", row.threads},
          {"cpus_per_task", row.cpus_per_task()},
          {"device", kDevice},
          {"batch_size", row.batch_size},
          {"samples_per_second", spread_json(row.samples_per_second)},
          {"samples_per_second_per_round", row.samples_per_second_per_round},
          {"seconds_per_pass", seconds_per_pass(table, row)},
          {"utilisation", row.utilisation},
          {"speed_up", spread_json(row.speed_up)},
          {"efficiency", scaling_efficiency(row.speed_up.median, row, base)},
          {"oversubscribed", row.is_oversubscribed}};
}

}  // namespace

ScalingTable make_scaling_table(const ScalingResult& result, int cpus) {
  ScalingTable table{.model = result.workload.model,
                     .optimizer = result.workload.optimizer,
                     .data = result.workload.data_flag,
                     .cpus = cpus,
                     .is_quiet = is_quiet(result.rounds.foreign),
                     .conditions = describe_conditions(result.rounds)};
  if (const auto& data = result.workload.data) {
    table.samples_per_pass = static_cast<double>(data->train->size());
  }
  for (std::size_t i = 0; i < result.entries.size(); ++i) {
    table.rows.push_back(make_row(result, i, cpus));
  }
  return table;
}

double scaling_efficiency(double speed_up, const ScalingRow& row, const ScalingRow& base) {
  return speed_up * base.cpus() / row.cpus();
}

double seconds_per_pass(const ScalingTable& table, const ScalingRow& row) {
  return table.samples_per_pass / row.samples_per_second.median;
}

std::string combination_text(const ScalingRow& row) {
  return count_text(row.replicas, "replica") + " x " + count_text(row.threads, "thread");
}

std::string scaling_verdict(const ScalingTable& table) {
  const ScalingRow& base = table.rows.front();
  const ScalingRow& best = *std::ranges::max_element(
      table.rows, {}, [](const ScalingRow& row) { return row.samples_per_second.median; });
  std::string text = table.model + ": most samples per second, " +
                     short_text(best.samples_per_second.median) + ", with " + best.strategy + ", " +
                     combination_text(best);
  if (&best != &base) {
    text += ": " + short_text(best.speed_up.median) + " times those of " + base.strategy + ", " +
            combination_text(base) + ", an efficiency of " +
            whole_percent(scaling_efficiency(best.speed_up.median, best, base)) + " %";
  }
  return text + (table.is_quiet ? "." : ". NOT QUIET: not to be quoted; measure again.");
}

std::string scaling_note(const ScalingTable& table) {
  std::string text =
      "Speed-up is over the first row, round by round; efficiency is speed-up per requested CPU "
      "(replicas x threads), and 100 % in the first row. One pass is " +
      decimal_text(table.samples_per_pass, 0) +
      (table.data.empty() ? " samples" : " samples of " + table.data) +
      ". Utilisation is the CPU time of all tasks, spinning included, over wall time times "
      "the requested CPUs.";
  text += " " + batch_note(table);
  if (!any_oversubscribed(table)) return text;
  return text + " Oversubscribed: more threads than the machine's " +
         count_text(table.cpus, "CPU") + ".";
}

Table scaling_cells(const ScalingTable& table) {
  Table cells{.heads = {{"strategy"},
                        {"nodes"},
                        {"tasks"},
                        {"replicas"},
                        {"CPUs", "per task"},
                        {"devices"},
                        {"samples/s", "median [min-max]"},
                        {"one pass", "s"},
                        {"utilisation", "%"},
                        {"speed-up", "median [min-max]"},
                        {"efficiency", "%"}}};
  for (const ScalingRow& row : table.rows) {
    cells.rows.push_back(cells_of(table, row));
  }
  return cells;
}

json scaling_json(const ScalingTable& table) {
  json document = {{"model", table.model},
                   {"optimizer", table.optimizer},
                   {"data", table.data},
                   {"cpus", table.cpus},
                   {"samples_per_pass", table.samples_per_pass},
                   {"quiet", table.is_quiet},
                   {"conditions", table.conditions},
                   {"rows", json::array()}};
  for (const ScalingRow& row : table.rows) {
    document["rows"].push_back(row_json(table, row));
  }
  return document;
}

}  // namespace syncopate::bench
