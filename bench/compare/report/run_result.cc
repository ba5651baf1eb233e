#include "bench/compare/report/run_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/compare/report/job_clock.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// A line of a run's file with its position, for error messages.
struct RunLine {
  json object;
  const std::filesystem::path& file;
  std::size_t number;

  [[noreturn]] void refuse(const std::string& what) const {
    throw FileError(fmt::format("{}, line {}: {}; remove the file to run it again", file.string(),
                                number, what));
  }
  const json& at(const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse(fmt::format("has no \"{}\"", key));
    return *found;
  }
  template <typename T>
  T get(const char* key) const {
    try {
      return at(key).get<T>();
    } catch (const json::exception&) {
      refuse(fmt::format("\"{}\" is {}, which has the wrong type", key, at(key).dump()));
    }
  }
  // Reads a number; null stands for NaN, because JSON has no NaN.
  double number_at(const char* key) const {
    return at(key).is_null() ? kNotANumber : get<double>(key);
  }
  template <typename T>
  std::optional<T> get_optional(const char* key) const {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return std::nullopt;
    return get<T>(key);
  }
};

// A run with a validation split is judged by that split while it trains.
CurvePoint curve_point(const RunLine& line) {
  const bool on_validation = line.object.contains("val_accuracy");
  return {.step = line.get<std::int64_t>("step"),
          .samples = line.get<std::int64_t>("trained_samples"),
          .seconds = line.number_at("trained_seconds"),
          .loss = line.number_at(on_validation ? "val_loss" : "test_loss"),
          .accuracy = line.number_at(on_validation ? "val_accuracy" : "test_accuracy")};
}

StepMetrics read_step(const RunLine& line) {
  return {.step = line.get<std::int64_t>("step"),
          .loss = line.number_at("loss"),
          .learning_rate = line.get_optional<double>("learning_rate").value_or(kNotANumber),
          .samples = line.get<std::int64_t>("samples"),
          .seconds = line.number_at("seconds"),
          .samples_per_second = line.number_at("samples_per_second")};
}

WorkerMetrics read_worker(const RunLine& line) {
  return {.worker = line.get<int>("worker"),
          .steps = line.get<std::int64_t>("steps"),
          .samples = line.get<std::int64_t>("samples"),
          .seconds = line.number_at("seconds"),
          .compute_seconds = line.number_at("compute_seconds"),
          .communication_exposed_seconds = line.number_at("communication_exposed_seconds"),
          .peers_wait_seconds = line.get_optional<double>("peers_wait_seconds"),
          .input_wait_seconds = line.number_at("input_wait_seconds"),
          .bytes_sent = line.get_optional<std::int64_t>("bytes_sent"),
          .bytes_received = line.get_optional<std::int64_t>("bytes_received")};
}

std::vector<WorkerStaleness> read_staleness(const RunLine& line) {
  std::vector<WorkerStaleness> workers;
  for (const json& object : line.get<std::vector<json>>("staleness")) {
    const RunLine worker{object, line.file, line.number};
    auto counts = worker.get<std::vector<std::int64_t>>("counts");
    const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const double sum = worker.number_at("mean") * static_cast<double>(total);
    workers.push_back({.worker = worker.get<int>("worker"),
                       .histogram = ps::StalenessHistogram::of(std::move(counts), sum,
                                                               worker.get<std::uint64_t>("max"))});
  }
  return workers;
}

Summary read_summary(const RunLine& line) {
  return {.steps = line.get<std::int64_t>("steps"),
          .samples = line.get<std::int64_t>("samples"),
          .seconds = line.number_at("seconds"),
          .samples_per_second = line.number_at("samples_per_second"),
          .train_loss = line.number_at("train_loss"),
          .test = {.loss = line.number_at("test_loss"),
                   .metric = {.value = line.number_at("test_accuracy")}},
          .staleness_mean = line.number_at("staleness_mean"),
          .staleness_max = line.get<std::int64_t>("staleness_max"),
          .input_wait_fraction = line.number_at("input_wait_fraction"),
          .communication_exposed_fraction = line.number_at("communication_exposed_fraction"),
          .weights_hash = line.get<std::string>("weights_hash"),
          .staleness = read_staleness(line)};
}

// Collects the lines of one run in the order of the file.
class RunReader {
 public:
  void take(const RunLine& line) {
    if (!line.object.is_object()) line.refuse("is not an object");
    const auto event = line.get<std::string>("event");
    if (line.number == 1) return take_head(line, event);
    if (event == "begin") note_begin(line);
    if (event == "step") {
      run_.training.push_back(read_step(line));
      note_time(line, run_.training.back().seconds, training_began_);
    }
    if (event == "eval") {
      run_.curve.push_back(curve_point(line));
      note_time(line, run_.curve.back().seconds, curve_began_);
      if (const auto began_at = began_of(line)) {
        const double seconds = line.get_optional<double>("seconds").value_or(0.0);
        clock_.add_evaluation(*began_at, seconds);
        run_.curve.back().paused_seconds = paused_seconds_;
        if (is_synchronous_[*began_at]) paused_seconds_ += seconds;
      }
    }
    if (event == "worker") run_.times.push_back(read_worker(line));
    if (event == "machine") {
      run_.others_cpu_share = line.get_optional<double>("others_cpu_share");
    }
    if (event == "note") run_.notes.push_back(line.get<std::string>("text"));
    if (event == "failure") run_.failure = line.get<std::string>("reason");
    if (event == "summary") {
      run_.summary = read_summary(line);
      note_time(line, run_.summary.seconds, summary_began_);
      has_summary_ = true;
    }
  }

  // A failure counts even if another process had written the summary before.
  std::optional<RunResult> finish() {
    if (!has_summary_ && !run_.failure) return std::nullopt;
    convert_to_job_seconds();
    // Lines of several processes may be mixed; the lines of each process are in order.
    const auto by_step = [](const auto& a, const auto& b) { return a.step < b.step; };
    std::stable_sort(run_.training.begin(), run_.training.end(), by_step);
    std::stable_sort(run_.curve.begin(), run_.curve.end(), by_step);
    std::ranges::stable_sort(run_.times, {}, &WorkerMetrics::worker);
    if (!run_.failure) check_order_of_time();
    return std::move(run_);
  }

 private:
  // Returns the start of the process that wrote the line. Empty under the virtual clock.
  static std::optional<double> began_of(const RunLine& line) {
    return line.get_optional<double>("began_at");
  }

  void note_begin(const RunLine& line) {
    const auto began_at = began_of(line);
    if (!began_at) return;
    run_.began_at = std::min(run_.began_at.value_or(*began_at), *began_at);
    clock_.add(*began_at, 0.0);
    is_synchronous_[*began_at] = line.get<bool>("in_step");
    clock_.set_synchronous(*began_at, is_synchronous_[*began_at]);
  }

  void note_time(const RunLine& line, double seconds, std::vector<std::optional<double>>& began) {
    began.push_back(began_of(line));
    if (began.back()) clock_.add(*began.back(), std::isfinite(seconds) ? seconds : 0.0);
  }

  void convert_to_job_seconds() {
    const std::map<double, double> offsets = clock_.offsets(has_kills_);
    const auto shift = [&](const std::optional<double>& began, double& seconds) {
      if (began) seconds += offsets.at(*began);
    };
    for (std::size_t i = 0; i < run_.training.size(); ++i) {
      shift(training_began_[i], run_.training[i].seconds);
    }
    for (std::size_t i = 0; i < run_.curve.size(); ++i) {
      shift(curve_began_[i], run_.curve[i].seconds);
    }
    if (!has_summary_ || !summary_began_.back()) return;
    Summary& summary = run_.summary;
    const double own = summary.seconds;
    shift(summary_began_.back(), summary.seconds);
    // The process that wrote the summary knows only the speed since its own start.
    if (summary.seconds > own) {
      summary.samples_per_second = static_cast<double>(summary.samples) / summary.seconds;
    }
  }

  // Marks the run as failed if its evaluations go back in time.
  void check_order_of_time() {
    // The tolerance in seconds, since the clocks of processes and machines may differ.
    constexpr double kSlack = 0.1;
    for (std::size_t i = 1; i < run_.curve.size(); ++i) {
      const double before = run_.curve[i - 1].seconds;
      double& seconds = run_.curve[i].seconds;
      if (seconds >= before || std::isnan(seconds) || std::isnan(before)) continue;
      if (seconds >= before - kSlack) {
        seconds = before;
        continue;
      }
      run_.failure = fmt::format(
          "its times are not in order: the evaluation at step {} came {} s after training began, "
          "and "
          "an earlier one {} s; train it again",
          run_.curve[i].step, seconds, before);
      return;
    }
  }

  void take_head(const RunLine& line, const std::string& event) {
    if (event != "run") line.refuse("the first line is not {\"event\":\"run\",...}");
    run_.label = line.get<std::string>("label");
    run_.seed = line.get<std::uint64_t>("seed");
    run_.workers = line.get<int>("workers");
    run_.predicted_communication_seconds =
        line.get_optional<double>("predicted_communication_seconds");
    run_.faults =
        line.get_optional<std::vector<std::string>>("trouble").value_or(std::vector<std::string>{});
    has_kills_ = std::ranges::find(run_.faults, "--kill") != run_.faults.end();
    run_.warmup_updates = line.get_optional<int>("warmup_updates").value_or(0);
  }

  RunResult run_;
  bool has_summary_ = false;
  bool has_kills_ = false;
  JobClock clock_;
  std::map<double, bool> is_synchronous_;  // by `began_at`: evaluations pause training
  double paused_seconds_ = 0.0;
  // For each training point, evaluation and summary: the start of the process that wrote it.
  std::vector<std::optional<double>> training_began_;
  std::vector<std::optional<double>> curve_began_;
  std::vector<std::optional<double>> summary_began_;
};

}  // namespace

std::optional<RunResult> read_run(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw FileError(fmt::format("{}: cannot be read; does it exist?", file.string()));
  RunReader reader;
  std::string text;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    json object = json::parse(text, nullptr, false);
    // A last line without a line end was cut short, because its writer was stopped.
    const bool is_open_ended = in.eof();
    if (object.is_discarded() && is_open_ended) break;
    const RunLine line{std::move(object), file, number};
    if (line.object.is_discarded()) line.refuse("is not JSON");
    reader.take(line);
  }
  if (in.bad()) throw FileError(fmt::format("{}: reading failed", file.string()));
  return reader.finish();
}

}  // namespace syncopate::bench
