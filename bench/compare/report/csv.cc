#include "bench/compare/report/csv.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/compare/report/text.h"
#include "bench/compare/report/whole_file.h"

namespace syncopate::bench {
namespace {

// All digits that the number has, so that who reads it has the same number.
std::string field(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string field(std::int64_t value) { return std::to_string(value); }
std::string field(const std::string& text) { return csv_field(text); }
template <typename T>
std::string field(const std::optional<T>& value) {
  return value ? field(*value) : "";
}

template <typename... Fields>
std::string line(const Fields&... fields) {
  std::string text;
  ((text += field(fields) + ","), ...);
  text.back() = '\n';
  return text;
}

std::string run_line(const Comparison& comparison, const ComparedVariant& variant,
                     const ComparedRun& compared) {
  const std::string status = compared.is_done()      ? "done"
                             : compared.has_failed() ? "failed"
                                                     : "pending";
  const std::int64_t workers = variant.workers;
  std::string head = line(variant.label, workers, compared.file, status);
  head.back() = ',';
  constexpr int kFieldsBehindFailure = 16;
  if (!compared.result) return head + std::string(kFieldsBehindFailure + 1, ',') + "\n";
  const RunResult& run = *compared.result;
  const auto seed = fmt::format("{}", run.seed);
  if (!compared.is_done()) {
    return head + csv_field(seed) + "," + csv_field(*run.failure) +
           std::string(kFieldsBehindFailure, ',') + "\n";
  }
  const auto point =
      comparison.target_accuracy ? time_to_target(run, *comparison.target_accuracy) : std::nullopt;
  const auto seconds = point ? std::optional(point->seconds) : std::nullopt;
  const auto samples = point ? std::optional(point->samples) : std::nullopt;
  return head + line(seed, std::string(), run.steps, run.samples, run.seconds,
                     run.samples_per_second, run.train_loss, run.test_accuracy, run.test_loss,
                     comparison.target_accuracy, seconds, samples, run.staleness_mean,
                     run.staleness_max, run.input_wait_fraction, run.communication_exposed_fraction,
                     run.predicted_communication_seconds, run.weights_hash);
}

}  // namespace

std::string runs_csv(const Comparison& comparison) {
  std::string text =
      "label,workers,file,status,seed,failure,steps,samples,seconds,samples_per_second,train_loss,"
      "test_accuracy,test_loss,target_accuracy,seconds_to_target,samples_to_target,staleness_mean,"
      "staleness_max,input_wait_fraction,communication_exposed_fraction,"
      "predicted_communication_seconds,weights_hash\n";
  for (const ComparedVariant& variant : comparison.variants) {
    for (const ComparedRun& run : variant.runs) text += run_line(comparison, variant, run);
  }
  return text;
}

std::string curves_csv(const Comparison& comparison) {
  std::string text =
      "label,workers,seed,kind,step,samples,seconds,loss,accuracy,samples_per_second\n";
  const std::optional<double> nothing;
  for (const ComparedVariant& variant : comparison.variants) {
    const std::int64_t workers = variant.workers;
    for (const ComparedRun& compared : variant.runs) {
      if (!compared.result) continue;
      const auto seed = fmt::format("{}", compared.result->seed);
      for (const CurvePoint& point : compared.result->curve) {
        text += line(variant.label, workers, seed, std::string("test"), point.step, point.samples,
                     point.seconds, point.loss, point.accuracy, nothing);
      }
      for (const TrainingPoint& point : compared.result->training) {
        text += line(variant.label, workers, seed, std::string("train"), point.step, point.samples,
                     point.seconds, point.loss, nothing, point.samples_per_second);
      }
    }
  }
  return text;
}

void write_csv(const std::filesystem::path& path, const Comparison& comparison) {
  write_whole(path, runs_csv(comparison));
}

void write_curves_csv(const std::filesystem::path& path, const Comparison& comparison) {
  write_whole(path, curves_csv(comparison));
}

}  // namespace syncopate::bench
