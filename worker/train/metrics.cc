#include "worker/train/metrics.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/file_lock.h"
#include "models/base/log.h"
#include "worker/train/class_table.h"

namespace syncopate {

namespace {

// A line of JSON. Keys are written in the order of their addition.
using OrderedJson = nlohmann::ordered_json;

class NoMetrics final : public MetricsWriter {
 public:
  bool is_read() const noexcept override { return false; }
  void write(const BeginMetrics& /*metrics*/) override {}
  void write(const StepMetrics& /*metrics*/) override {}
  void write(const EvalMetrics& /*metrics*/) override {}
  void write(const WorkerMetrics& /*metrics*/) override {}
  void write(const Summary& /*summary*/) override {}
};

class Both final : public MetricsWriter {
 public:
  Both(std::unique_ptr<MetricsWriter> first, std::unique_ptr<MetricsWriter> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  bool is_read() const noexcept override { return first_->is_read() || second_->is_read(); }
  void write(const BeginMetrics& metrics) override { pass_on(metrics); }
  void write(const StepMetrics& metrics) override { pass_on(metrics); }
  void write(const EvalMetrics& metrics) override { pass_on(metrics); }
  void write(const WorkerMetrics& metrics) override { pass_on(metrics); }
  void write(const Summary& summary) override { pass_on(summary); }

 private:
  template <typename Metrics>
  void pass_on(const Metrics& metrics) {
    first_->write(metrics);
    second_->write(metrics);
  }

  std::unique_ptr<MetricsWriter> first_;
  std::unique_ptr<MetricsWriter> second_;
};

// "counts" come from ps::StalenessHistogram: exact below 64, then ranges of stalenesses.
OrderedJson staleness_of(const std::vector<WorkerStaleness>& workers) {
  OrderedJson all = OrderedJson::array();
  for (const WorkerStaleness& worker : workers) {
    all.push_back({{"worker", worker.worker},
                   {"mean", worker.histogram.mean()},
                   {"max", worker.histogram.max()},
                   {"counts", worker.histogram.counts()}});
  }
  return all;
}

template <typename T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson as_json(const LocalUpdateOptions& options) {
  const OuterRuleOptions outer = outer_options(options);
  OrderedJson all = {
      {"sync_every", options.sync_every},           {"outer", options.outer},
      {"outer_learning_rate", outer.learning_rate}, {"outer_momentum", outer.momentum},
      {"outer_nesterov", outer.nesterov},           {"outer_scale_by_rate", outer.scale_by_rate},
      {"inner_state", name(options.inner_state)}};
  if (pushes_displacements(options)) all["push"] = name(options.push);
  if (options.sync_groups > 1) all["sync_groups"] = options.sync_groups;
  if (options.local_from) all["local_from"] = *options.local_from;
  return all;
}

// Returns the key of a split's metric, such as "test_accuracy".
std::string key_of(std::string_view split, const MetricValue& metric) {
  return fmt::format("{}_{}", split, metric.name());
}

// Adds what an evaluation of label maps says beside the main metric.
void add_map_quality(OrderedJson& line, std::string_view split, const Evaluation& result) {
  if (const auto iou = result.metric.mean_iou) line[fmt::format("{}_mean_iou", split)] = *iou;
  if (result.classes.empty()) return;
  line[fmt::format("{}_classes", split)] = classes_as_json(result.classes);
}

class JsonLines final : public MetricsWriter {
 public:
  JsonLines(std::filesystem::path path, bool append) : path_(std::move(path)), append_(append) {}

  // is_late: another task of the run has claimed the file.
  void open_file(bool is_late) {
    constexpr mode_t kBeforeUmask = 0666;
    // A writer that appends also reads, to find out how the file ends. A pipe with a slow or
    // missing reader does not stop training.
    const int flags = O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | (append_ ? O_RDWR : O_WRONLY);
    file_ = FileDescriptor(::open(path_.c_str(), flags, kBeforeUmask));
    if (!file_ && errno == ENXIO) {
      throw FileError("open --metrics " + path_.string() +
                      ": no program reads this pipe; start its reader first, or give a file");
    }
    if (!file_) {
      throw FileError(describe_errno("open --metrics", path_.string(), errno) +
                      "; give a file in a folder that exists");
    }
    if (is_late) {
      join_claim(file_);
    } else if (append_) {
      claim_file(file_, "--metrics", path_);
    } else {
      claim_empty_file(file_, "--metrics", path_);
    }
    if (append_) end_broken_line();
  }

  void write(const BeginMetrics& metrics) override {
    began_at_ = metrics.began_at;
    OrderedJson line = {{"event", "begin"},
                        {"step", metrics.step},
                        {"samples", metrics.samples},
                        {"in_step", metrics.is_synchronous}};
    if (!metrics.head.empty()) line["head"] = metrics.head;
    if (!metrics.normalize.empty()) line["normalize"] = metrics.normalize;
    if (metrics.local_updates) line["local_updates"] = as_json(*metrics.local_updates);
    write_line(std::move(line));
  }

  void write(const StepMetrics& metrics) override {
    OrderedJson line = {{"event", "step"},
                        {"step", metrics.step},
                        {"epoch", metrics.epoch},
                        {"loss", metrics.loss},
                        {std::string(metrics.metric.name()), metrics.metric.value},
                        {"learning_rate", metrics.learning_rate},
                        {"samples", metrics.samples},
                        {"seconds", metrics.seconds},
                        {"samples_per_second", metrics.samples_per_second},
                        {"input_wait_fraction", metrics.input_wait_fraction},
                        {"compute_seconds", metrics.compute_seconds},
                        {"communication_exposed_seconds", metrics.communication_exposed_seconds},
                        {"communication_hidden_seconds", metrics.communication_hidden_seconds},
                        {"staleness_mean", metrics.staleness_mean},
                        {"staleness_max", metrics.staleness_max}};
    if (metrics.loss_scale) {
      line["loss_scale"] = metrics.loss_scale->scale;
      line["skipped_steps"] = metrics.loss_scale->skipped_steps;
    }
    if (metrics.round) {
      line["round"] = metrics.round->number;
      line["inner_steps"] = metrics.round->inner_steps;
    }
    write_line(std::move(line));
  }

  void write(const EvalMetrics& metrics) override {
    const Evaluation& result = metrics.result;
    const std::string split = metrics.on_validation ? "val" : "test";
    OrderedJson line = {{"event", "eval"},
                        {"step", metrics.step},
                        {"epoch", metrics.epoch},
                        {split + "_loss", result.loss},
                        {key_of(split, result.metric), result.metric.value},
                        {"samples", result.samples},
                        {"seconds", result.seconds},
                        {"trained_samples", metrics.trained_samples},
                        {"trained_seconds", metrics.trained_seconds}};
    add_map_quality(line, split, result);
    if (metrics.began_at) line["began_at"] = *metrics.began_at;
    if (result.bad_samples > 0) {
      line["bad_samples"] = result.bad_samples;
      line["first_bad"] = result.first_bad;
    }
    write_line(std::move(line));
  }

  void write(const WorkerMetrics& metrics) override {
    OrderedJson line = {{"event", "worker"},
                        {"worker", metrics.worker},
                        {"steps", metrics.steps},
                        {"samples", metrics.samples},
                        {"seconds", metrics.seconds},
                        {"compute_seconds", metrics.compute_seconds},
                        {"communication_exposed_seconds", metrics.communication_exposed_seconds},
                        {"peers_wait_seconds", or_null(metrics.peers_wait_seconds)},
                        {"input_wait_seconds", metrics.input_wait_seconds},
                        {"bytes_sent", or_null(metrics.bytes_sent)},
                        {"bytes_received", or_null(metrics.bytes_received)}};
    if (metrics.skipped_steps) line["skipped_steps"] = *metrics.skipped_steps;
    if (metrics.dropped_steps) {
      line["dropped_steps"] = metrics.dropped_steps->whole;
      line["dropped_in_part"] = metrics.dropped_steps->in_part;
    }
    write_line(std::move(line));
  }

  void write(const Summary& summary) override {
    const Evaluation& test = summary.test;
    const Evaluation validation = summary.validation.value_or(Evaluation{});
    OrderedJson line = {{"event", "summary"},
                        {"strategy", summary.strategy},
                        {"model", summary.model},
                        {"replicas", summary.replicas},
                        {"global_batch", summary.global_batch},
                        {"steps", summary.steps},
                        {"samples", summary.samples},
                        {"seconds", summary.seconds},
                        {"samples_per_second", summary.samples_per_second},
                        {"train_loss", summary.train_loss},
                        {key_of("test", test.metric), test.metric.value},
                        {"test_loss", test.loss},
                        {"staleness_mean", summary.staleness_mean},
                        {"staleness_max", summary.staleness_max},
                        {"input_wait_fraction", summary.input_wait_fraction},
                        {"communication_exposed_fraction", summary.communication_exposed_fraction},
                        {"peak_memory_bytes", summary.peak_memory_bytes},
                        {"data", summary.data},
                        {"device", summary.device},
                        {"weights_hash", summary.weights_hash},
                        {"repeated_batches", summary.repeated_batches},
                        {"staleness", staleness_of(summary.staleness)}};
    if (!summary.stage_idle_fractions.empty()) {
      line["stage_idle_fractions"] = summary.stage_idle_fractions;
    }
    if (summary.bytes_per_sample) line["bytes_per_sample"] = *summary.bytes_per_sample;
    if (summary.rounds) {
      line["rounds"] = summary.rounds->number;
      line["exchange_seconds"] = summary.rounds->exchange_seconds;
    }
    add_map_quality(line, "test", test);
    if (summary.validation) {
      line[key_of("val", validation.metric)] = validation.metric.value;
      add_map_quality(line, "val", validation);
      line["val_loss"] = validation.loss;
    }
    if (summary.train_bad_samples > 0) line["train_bad_samples"] = summary.train_bad_samples;
    if (test.bad_samples > 0) line["test_bad_samples"] = test.bad_samples;
    if (validation.bad_samples > 0) line["val_bad_samples"] = validation.bad_samples;
    const std::string& first_bad = test.bad_samples > 0 ? test.first_bad : validation.first_bad;
    if (!first_bad.empty()) line["first_bad"] = first_bad;
    if (summary.gpu) {
      line["gpu_utilisation"] = summary.gpu->utilisation;
      line["gpu_memory_bytes"] = summary.gpu->memory_bytes;
      line["gpu_watts"] = summary.gpu->watts;
    }
    write_line(std::move(line));
  }

 private:
  // A number that is not finite has no form in JSON; the library writes null for it.
  void write_line(OrderedJson json) {
    if (!file_) open_file(true);
    if (began_at_ && !json.contains("began_at")) json["began_at"] = *began_at_;
    append(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
  }

  // A process that was killed in the middle of a line must not spoil the next line. A line of
  // another process may still be on its way into the file, so a short wait comes first.
  void end_broken_line() {
    constexpr std::chrono::milliseconds kMoment(1);
    for (int looks = 0; looks < 20; ++looks) {
      if (ends_with_a_line()) return;
      std::this_thread::sleep_for(kMoment);
    }
    ends_broken_ = true;
    append("");
  }

  bool ends_with_a_line() const {
    char last = '\n';
    if (::lseek(file_.get(), -1, SEEK_END) < 0) return true;  // the file is empty
    return ::read(file_.get(), &last, 1) != 1 || last == '\n';
  }

  // Writes a line unbuffered, so that a reader sees whole lines and a killed run leaves them. A
  // line that cannot be written, because the disk is full, is lost; training is worth more than a
  // line.
  void append(const std::string& line) {
    const std::string text = ends_broken_ ? "\n" + line : line;
    const std::size_t written = write_all(file_, std::as_bytes(std::span(text)));
    const bool is_whole = written == text.size();
    if (written > 0) ends_broken_ = !is_whole;
    if (!is_whole && !is_failing_) {
      log(LogLevel::kWarning, describe_errno("write --metrics", path_.string(), errno) +
                                  "; training goes on, and later lines are tried again");
    }
    is_failing_ = !is_whole;
  }

  std::filesystem::path path_;
  bool append_;
  FileDescriptor file_;
  bool ends_broken_ = false;  // the file ends with a part of a line
  bool is_failing_ = false;   // the last line could not be written
  std::optional<double> began_at_;
};

}  // namespace

double wall_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::unique_ptr<MetricsWriter> make_metrics_writer(const std::filesystem::path& path, bool append) {
  if (path.empty()) return std::make_unique<NoMetrics>();
  auto lines = std::make_unique<JsonLines>(path, append);
  lines->open_file(false);
  return lines;
}

std::unique_ptr<MetricsWriter> make_late_metrics_writer(const std::filesystem::path& path) {
  if (path.empty()) return std::make_unique<NoMetrics>();
  return std::make_unique<JsonLines>(path, true);
}

std::unique_ptr<MetricsWriter> make_both(std::unique_ptr<MetricsWriter> first,
                                         std::unique_ptr<MetricsWriter> second) {
  return std::make_unique<Both>(std::move(first), std::move(second));
}

std::string describe(const EvalMetrics& metrics) {
  const char* const split = metrics.on_validation ? "validation" : "test";
  const Evaluation& result = metrics.result;
  const std::string bad =
      result.bad_samples > 0 ? fmt::format(", {} bad left out", result.bad_samples) : "";
  return fmt::format("step {}, epoch {:.2f}: {} {} {}, {} loss {:.4f} ({} samples{}, {:.1f} s)",
                     metrics.step, metrics.epoch, split, result.metric.name(),
                     to_text(result.metric), split, result.loss, result.samples, bad,
                     result.seconds);
}

namespace {

std::string two_decimals(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", number);
  return text.data();
}

}  // namespace

ps::StalenessHistogram merge_staleness(std::span<const WorkerStaleness> workers) {
  ps::StalenessHistogram all;
  for (const WorkerStaleness& worker : workers) all.merge(worker.histogram);
  return all;
}

std::string describe_staleness(std::span<const WorkerStaleness> workers) {
  const ps::StalenessHistogram all = merge_staleness(workers);
  std::string text = fmt::format("mean {}, max {} over {} bucket pushes", two_decimals(all.mean()),
                                 all.max(), all.count());
  if (workers.size() < 2) return text;
  text += "; by worker";
  for (const WorkerStaleness& worker : workers) text += " " + two_decimals(worker.histogram.mean());
  return text;
}

}  // namespace syncopate
