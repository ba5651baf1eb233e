#include "bench/plan/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/plan/plan_rounds.h"
#include "bench/plan/plan_verdict.h"
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

std::string staleness_cell(const PlanRow& row) {
  const TimingResult& timing = row.timing;
  const std::string mean = timing.staleness_max == 0 ? "0" : number_text(timing.staleness_mean);
  return is_too_stale(row) ? mean + " !" : mean;
}

std::vector<std::string> cells_of(const PlanRow& row, bool has_target) {
  const TimingResult& timing = row.timing;
  std::vector<std::string> cells = {row.variant.label,
                                    std::to_string(row.variant.workers),
                                    number_text(timing.updates_per_second),
                                    number_text(row.samples_per_second),
                                    number_text(row.speed_up) + "x",
                                    percent(row.efficiency),
                                    staleness_cell(row),
                                    std::to_string(timing.staleness_max),
                                    percent(timing.compute_share),
                                    percent(timing.communication_share),
                                    percent(timing.peers_share),
                                    percent(timing.server_share)};
  if (has_target) cells.push_back(target_cell(row.target));
  return cells;
}

json name_of(const PlanRow* row) {
  if (row == nullptr) return nullptr;
  return {{"strategy", row->variant.label}, {"workers", row->variant.workers}};
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
                 {"peers_share", timing.peers_share},
                 {"server_share", timing.server_share},
                 {"is_too_stale", is_too_stale(row)}};
  if (row.rounds) object["rounds"] = json_of(*row.rounds);
  if (row.pipeline) object["pipeline"] = json_of(*row.pipeline);
  if (row.target) {
    json target = {{"test_accuracy", row.target->accuracy}};
    if (row.target->seconds) target["virtual_seconds"] = *row.target->seconds;
    if (!row.target->failure.empty()) target["failure"] = row.target->failure;
    object["time_to_target"] = target;
  }
  return object;
}

void print_rounds(std::ostream& out, const Plan& plan) {
  std::vector<std::vector<std::string>> cells = {{"rounds of", "workers"}};
  std::ranges::copy(headings_of_rounds(), std::back_inserter(cells.front()));
  for (const PlanRow& row : plan.rows) {
    if (!row.rounds) continue;
    cells.push_back({row.variant.label, std::to_string(row.variant.workers)});
    std::ranges::copy(cells_of(*row.rounds), std::back_inserter(cells.back()));
  }
  if (cells.size() == 1) return;
  out << "\n"
      << format_table(cells)
      << "steps before: the fraction of the steps that sum gradients; sent per step: by a worker, "
         "on "
         "average; memory: what a task takes at least\n";
}

void print_measurements(std::ostream& out, const PlanOptions& options, const Plan& plan) {
  const Calibration& step = plan.calibration;
  out << fmt::format(
      "measured here: a step of {} with {} samples takes {} on one thread (median of {}, {} to "
      "{}); {} parameters, {}\n",
      options.model, options.batch_size_per_replica, time_text(step.step_seconds), step.steps,
      time_text(step.lowest_seconds), time_text(step.highest_seconds), plan.parameters,
      bytes_text(plan.model_bytes()));
  out << fmt::format(
      "measured here: a server applies a gradient of {} and copies the new values in {} on one "
      "thread (SGD, median of {}), {} GB/s\n",
      bytes_text(plan.server.bytes), time_text(plan.server.update_seconds), plan.server.pushes,
      number_text(plan.server.bytes_per_second() / 1e9));
  out << fmt::format(
      "for syncopate-bench compare --clock virtual: --costs step={:.3g}ms,update={:.3g}gb\n",
      1e3 * step.step_seconds, plan.server.bytes_per_second() / 1e9);
  if (const auto& check = plan.check) {
    out << fmt::format(
        "prediction for {} workers on this machine: {} samples/s, measured {} (median of {} "
        "rounds, {} to {}; error {:+.1f}%). Two replicas of mirrored in one process: this checks "
        "neither links, servers and delays nor more workers\n",
        kCheckedWorkers, number_text(check->predicted), number_text(check->measured.median),
        kCheckRounds, number_text(check->measured.min), number_text(check->measured.max),
        100.0 * check->error());
  }
  out << fmt::format("other processes used {:.0f}% of one CPU during the measurements{}\n",
                     100.0 * plan.foreign_share, is_quiet(plan) ? "" : ", NOT QUIET");
  out << fmt::format(
      "assumed: a step takes {}{}; links of {}; {}\n", time_text(plan.mean_step_seconds),
      options.service_time.empty() ? ", as measured, each time"
                                   : fmt::format(" on average ({})", options.service_time),
      link_text(options.link), count_text(options.servers, "parameter server"));
  out << fmt::format("simulated: one worker trains {} samples/s",
                     number_text(plan.one_worker_samples_per_second));
  if (const auto& most = plan.most_pushes_per_second) {
    out << fmt::format(
        "; the servers' links carry at most {} pushes/s, {} samples/s with a push in every step",
        number_text(*most),
        number_text(*most * static_cast<double>(options.batch_size_per_replica)));
  }
  out << fmt::format("; the servers apply at most {} pushes/s\n\n",
                     number_text(plan.most_updates_per_second));
}

}  // namespace

void print_plan(std::ostream& out, const PlanOptions& options, const Plan& plan) {
  print_measurements(out, options, plan);
  std::vector<std::vector<std::string>> cells = {{"strategy", "workers", "updates/s", "samples/s",
                                                  "speed-up", "efficiency", "staleness", "max",
                                                  "computing", "links", "peers", "servers"}};
  if (options.time_to_target) {
    cells.front().push_back("to " + percent(options.target_accuracy) + ", virtual s");
  }
  for (const PlanRow& row : plan.rows) cells.push_back(cells_of(row, options.time_to_target));
  out << format_table(cells);
  if (std::ranges::any_of(plan.rows, is_too_stale)) {
    out << "! mean staleness above " << kMostStaleness << ": not recommended\n";
  }
  print_rounds(out, plan);
  for (const PlanRow& row : plan.rows) {
    if (!row.pipeline) continue;
    print_stages(out, row.variant.label + ", " + count_text(row.variant.workers, "worker"),
                 *row.pipeline);
  }
  for (const std::string& note : plan.notes) out << "note: " << note << "\n";
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
                 {"server_calibration",
                  {{"bytes", plan.server.bytes},
                   {"update_seconds", plan.server.update_seconds},
                   {"bytes_per_second", plan.server.bytes_per_second()},
                   {"pushes", plan.server.pushes},
                   {"optimizer", "sgd"}}},
                 {"foreign_share_of_a_core", plan.foreign_share},
                 {"parameters", plan.parameters},
                 {"server_bytes", plan.server_bytes},
                 {"service_time", options.service_time},
                 {"mean_step_seconds", plan.mean_step_seconds},
                 {"link_delay_seconds", options.link.delay_seconds},
                 {"link_bytes_per_second", options.link.bytes_per_second},
                 {"inside_machine_link",
                  {{"delay_seconds", kInsideMachine.delay_seconds},
                   {"bytes_per_second", kInsideMachine.bytes_per_second}}},
                 {"workers_per_machine", options.workers_per_machine},
                 {"most_updates_per_second", plan.most_updates_per_second},
                 {"most_staleness", kMostStaleness},
                 {"one_worker_samples_per_second", plan.one_worker_samples_per_second},
                 {"seed", options.seed},
                 {"notes", plan.notes},
                 {"left_out", plan.left_out},
                 {"rows", rows}};
  if (plan.most_pushes_per_second) object["most_pushes_per_second"] = *plan.most_pushes_per_second;
  if (plan.check) {
    object["prediction_check"] = {{"strategy", kMirrored},
                                  {"workers", kCheckedWorkers},
                                  {"predicted_samples_per_second", plan.check->predicted},
                                  {"measured_samples_per_second", plan.check->measured.median},
                                  {"measured_lowest", plan.check->measured.min},
                                  {"measured_highest", plan.check->measured.max},
                                  {"relative_error", plan.check->error()}};
  }
  const PlanVerdict verdict = judge(options, plan);
  object["is_quiet"] = verdict.is_quiet;
  object["most_samples_per_second"] = name_of(verdict.fastest);
  object["recommended"] = name_of(verdict.recommended);
  return object.dump(2);
}

}  // namespace syncopate::bench
