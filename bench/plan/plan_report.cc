#include "bench/plan/plan_report.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "bench/harness/report.h"
#include "models/base/formatted.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

std::string percent(double share) {
  return formatted(share > 0.0 && share < 0.0995 ? "%.1f%%" : "%.0f%%", 100.0 * share);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1.0) return number_text(seconds) + " s";
  if (seconds >= 1e-3) return number_text(1e3 * seconds) + " ms";
  return number_text(1e6 * seconds) + " us";
}

std::string bytes_text(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return size >= 1e6 ? number_text(size / 1e6) + " MB" : number_text(size / 1e3) + " KB";
}

std::string link_text(const Link& link) {
  const std::string rate = link.bytes_per_second > 0.0
                               ? formatted("%g Gbit/s each way", 8.0 * link.bytes_per_second / 1e9)
                               : std::string("no limit of bytes per second");
  return rate + ", " + seconds_text(link.delay_seconds) + " one way";
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

}  // namespace

void print_plan(std::ostream& out, const PlanOptions& options, const Plan& plan) {
  const Calibration& measured = plan.calibration;
  out << "measured here: a step of " << options.model << " with " << options.batch_size_per_replica
      << " samples takes " << seconds_text(measured.step_seconds) << " on one thread (median of "
      << measured.steps << ", " << seconds_text(measured.lowest_seconds) << " to "
      << seconds_text(measured.highest_seconds) << "); " << plan.parameters << " parameters, "
      << bytes_text(plan.model_bytes()) << "\n";
  out << "assumed: a step takes " << seconds_text(plan.mean_step_seconds)
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

}  // namespace syncopate::bench
