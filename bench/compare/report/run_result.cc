#include "bench/compare/report/run_result.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/compare/report/job_clock.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

// One line, and where it stands for whoever has to mend it.
struct Line {
  json object;
  const std::filesystem::path& file;
  std::size_t number;

  [[noreturn]] void refuse(const std::string& what) const {
    throw FileError(file.string() + ", line " + std::to_string(number) + ": " + what +
                    "; remove the file to run it again");
  }
  const json& at(const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse(std::string("has no \"") + key + "\"");
    return *found;
  }
  template <typename T>
  T get(const char* key) const {
    try {
      return at(key).get<T>();
    } catch (const json::exception&) {
      refuse(std::string("\"") + key + "\" is " + at(key).dump() + ", which it cannot be");
    }
  }
  // JSON has no NaN: it was written as null.
  double number_at(const char* key) const {
    return at(key).is_null() ? std::numeric_limits<double>::quiet_NaN() : get<double>(key);
  }
  template <typename T>
  std::optional<T> get_optional(const char* key) const {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return std::nullopt;
    return get<T>(key);
  }
};

CurvePoint curve_point(const Line& line) {
  return {.step = line.get<std::int64_t>("step"),
          .samples = line.get<std::int64_t>("trained_samples"),
          .seconds = line.number_at("trained_seconds"),
          .loss = line.number_at("test_loss"),
          .accuracy = line.number_at("test_accuracy")};
}

TrainingPoint training_point(const Line& line) {
  return {.step = line.get<std::int64_t>("step"),
          .samples = line.get<std::int64_t>("samples"),
          .seconds = line.number_at("seconds"),
          .loss = line.number_at("loss"),
          .samples_per_second = line.number_at("samples_per_second"),
          .learning_rate = line.get_optional<double>("learning_rate")};
}

WorkerTimes worker_times(const Line& line) {
  return {.worker = line.get<int>("worker"),
          .steps = line.get<std::int64_t>("steps"),
          .samples = line.get<std::int64_t>("samples"),
          .seconds = line.number_at("seconds"),
          .compute_seconds = line.number_at("compute_seconds"),
          .communication_seconds = line.number_at("communication_exposed_seconds"),
          .peers_seconds = line.get_optional<double>("peers_wait_seconds"),
          .input_seconds = line.number_at("input_wait_seconds"),
          .bytes_sent = line.get_optional<std::int64_t>("bytes_sent"),
          .bytes_received = line.get_optional<std::int64_t>("bytes_received")};
}

std::vector<WorkerStalenessCounts> staleness_counts(const Line& line) {
  std::vector<WorkerStalenessCounts> workers;
  for (const json& object : line.get<std::vector<json>>("staleness")) {
    const Line worker{object, line.file, line.number};
    workers.push_back({.worker = worker.get<int>("worker"),
                       .mean = worker.number_at("mean"),
                       .max = worker.get<std::int64_t>("max"),
                       .counts = worker.get<std::vector<std::int64_t>>("counts")});
  }
  return workers;
}

void read_summary(const Line& line, RunResult& run) {
  run.steps = line.get<std::int64_t>("steps");
  run.samples = line.get<std::int64_t>("samples");
  run.seconds = line.number_at("seconds");
  run.samples_per_second = line.number_at("samples_per_second");
  run.train_loss = line.number_at("train_loss");
  run.test_accuracy = line.number_at("test_accuracy");
  run.test_loss = line.number_at("test_loss");
  run.staleness_mean = line.number_at("staleness_mean");
  run.staleness_max = line.get<std::int64_t>("staleness_max");
  run.input_wait_fraction = line.number_at("input_wait_fraction");
  run.communication_exposed_fraction = line.number_at("communication_exposed_fraction");
  run.weights_hash = line.get<std::string>("weights_hash");
  run.staleness = staleness_counts(line);
}

class Reader {
 public:
  void take(const Line& line) {
    if (!line.object.is_object()) line.refuse("is not an object");
    const auto event = line.get<std::string>("event");
    if (line.number == 1) return take_head(line, event);
    if (event == "begin") note_begin(line);
    if (event == "step") {
      run_.training.push_back(training_point(line));
      note_time(line, run_.training.back().seconds, training_began_);
    }
    if (event == "eval") {
      run_.curve.push_back(curve_point(line));
      note_time(line, run_.curve.back().seconds, curve_began_);
      if (const auto began_at = began_of(line)) {
        const double seconds = line.get_optional<double>("seconds").value_or(0.0);
        clock_.add_evaluation(*began_at, seconds);
        run_.curve.back().stood_still_seconds = stood_still_seconds_;
        if (stands_still_[*began_at]) stood_still_seconds_ += seconds;
      }
    }
    if (event == "worker") run_.times.push_back(worker_times(line));
    if (event == "note") run_.notes.push_back(line.get<std::string>("text"));
    if (event == "failure") run_.failure = line.get<std::string>("reason");
    if (event == "summary") {
      read_summary(line, run_);
      note_time(line, run_.seconds, summary_began_);
      has_summary_ = true;
    }
  }

  // A run of which one process failed after another had written the summary has failed.
  std::optional<RunResult> finish() {
    if (!has_summary_ && !run_.failure) return std::nullopt;
    count_from_the_jobs_begin();
    // Several processes may have written lines, each its own in order.
    const auto by_step = [](const auto& a, const auto& b) { return a.step < b.step; };
    std::stable_sort(run_.training.begin(), run_.training.end(), by_step);
    std::stable_sort(run_.curve.begin(), run_.curve.end(), by_step);
    std::ranges::stable_sort(run_.times, {}, &WorkerTimes::worker);
    if (!run_.failure) require_that_time_rises();
    return std::move(run_);
  }

 private:
  // Nothing: written before lines said it, or under the virtual clock.
  static std::optional<double> began_of(const Line& line) {
    return line.get_optional<double>("began_at");
  }

  void note_begin(const Line& line) {
    const auto began_at = began_of(line);
    if (!began_at) return;
    clock_.add(*began_at, 0.0);
    stands_still_[*began_at] = line.get<bool>("in_step");
    clock_.set_in_step(*began_at, stands_still_[*began_at]);
  }

  void note_time(const Line& line, double seconds, std::vector<std::optional<double>>& began) {
    began.push_back(began_of(line));
    if (began.back()) clock_.add(*began.back(), std::isfinite(seconds) ? seconds : 0.0);
  }

  void count_from_the_jobs_begin() {
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
    const double own = run_.seconds;
    shift(summary_began_.back(), run_.seconds);
    // The process that speaks knows the speed of what it saw itself.
    if (run_.seconds > own) {
      run_.samples_per_second = static_cast<double>(run_.samples) / run_.seconds;
    }
  }

  void require_that_time_rises() {
    // Clocks of several processes and machines differ by less.
    constexpr double kSlack = 0.1;
    for (std::size_t i = 1; i < run_.curve.size(); ++i) {
      const double before = run_.curve[i - 1].seconds;
      double& seconds = run_.curve[i].seconds;
      if (seconds >= before || std::isnan(seconds) || std::isnan(before)) continue;
      if (seconds >= before - kSlack) {
        seconds = before;
        continue;
      }
      run_.failure = "its times are no use: the evaluation at step " +
                     std::to_string(run_.curve[i].step) + " came " + std::to_string(seconds) +
                     " s after training began, an earlier one " + std::to_string(before) +
                     " s; train it again";
      return;
    }
  }

  void take_head(const Line& line, const std::string& event) {
    if (event != "run") line.refuse("the first line is not {\"event\":\"run\",...}");
    run_.label = line.get<std::string>("label");
    run_.seed = line.get<std::uint64_t>("seed");
    run_.workers = line.get<int>("workers");
    run_.predicted_communication_seconds =
        line.get_optional<double>("predicted_communication_seconds");
    run_.trouble =
        line.get_optional<std::vector<std::string>>("trouble").value_or(std::vector<std::string>{});
    has_kills_ = std::ranges::find(run_.trouble, "--kill") != run_.trouble.end();
  }

  RunResult run_;
  bool has_summary_ = false;
  bool has_kills_ = false;
  JobClock clock_;
  std::map<double, bool> stands_still_;  // by `began_at`: does training, for evaluations
  double stood_still_seconds_ = 0.0;
  // Of whose process the seconds are; by point, and of the summaries.
  std::vector<std::optional<double>> training_began_;
  std::vector<std::optional<double>> curve_began_;
  std::vector<std::optional<double>> summary_began_;
};

}  // namespace

std::optional<RunResult> read_run(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw FileError(file.string() + ": cannot be read; does it exist?");
  Reader reader;
  std::string text;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    json object = json::parse(text, nullptr, false);
    // getline met the end of the file before the end of the line: whoever wrote it was stopped.
    const bool is_open_ended = in.eof();
    if (object.is_discarded() && is_open_ended) break;
    const Line line{std::move(object), file, number};
    if (line.object.is_discarded()) line.refuse("is no JSON");
    reader.take(line);
  }
  if (in.bad()) throw FileError(file.string() + ": reading failed");
  return reader.finish();
}

}  // namespace syncopate::bench
