#include "worker/metrics.h"

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/errors.h"
#include "models/base/unique_handle.h"

namespace syncopate {
namespace {

// Keys come out in the order they are written here.
using Json = nlohmann::ordered_json;

struct FileTraits {
  using Type = std::FILE*;
  static Type none() noexcept { return nullptr; }
  static void close(Type file) noexcept { std::fclose(file); }
};
using File = UniqueHandle<FileTraits>;

class NoMetrics final : public MetricsWriter {
 public:
  void write(const StepMetrics& /*metrics*/) override {}
  void write(const EvalMetrics& /*metrics*/) override {}
  void write(const Summary& /*summary*/) override {}
};

class JsonLines final : public MetricsWriter {
 public:
  JsonLines(std::filesystem::path path, bool append)
      : path_(std::move(path)), file_(std::fopen(path_.c_str(), append ? "a+be" : "wbe")) {
    if (!file_) fail("open metrics file");
    if (append) end_broken_line();
  }

  void write(const StepMetrics& metrics) override {
    write_line({{"event", "step"},
                {"step", metrics.step},
                {"epoch", metrics.epoch},
                {"loss", metrics.loss},
                {"accuracy", metrics.accuracy},
                {"learning_rate", metrics.learning_rate},
                {"samples", metrics.samples},
                {"seconds", metrics.seconds},
                {"samples_per_second", metrics.samples_per_second},
                {"input_wait_fraction", metrics.input_wait_fraction},
                {"compute_seconds", metrics.compute_seconds},
                {"communication_exposed_seconds", metrics.communication_exposed_seconds},
                {"communication_hidden_seconds", metrics.communication_hidden_seconds}});
  }

  void write(const EvalMetrics& metrics) override {
    write_line({{"event", "eval"},
                {"step", metrics.step},
                {"epoch", metrics.epoch},
                {"test_loss", metrics.test_loss},
                {"test_accuracy", metrics.test_accuracy},
                {"samples", metrics.samples},
                {"seconds", metrics.seconds}});
  }

  void write(const Summary& summary) override {
    write_line({{"event", "summary"},
                {"strategy", summary.strategy},
                {"model", summary.model},
                {"replicas", summary.replicas},
                {"global_batch", summary.global_batch},
                {"steps", summary.steps},
                {"samples", summary.samples},
                {"seconds", summary.seconds},
                {"samples_per_second", summary.samples_per_second},
                {"train_loss", summary.train_loss},
                {"test_accuracy", summary.test_accuracy},
                {"test_loss", summary.test_loss},
                {"staleness_mean", summary.staleness_mean},
                {"staleness_max", summary.staleness_max},
                {"input_wait_fraction", summary.input_wait_fraction},
                {"communication_exposed_fraction", summary.communication_exposed_fraction},
                {"peak_memory_bytes", summary.peak_memory_bytes},
                {"data", summary.data},
                {"device", summary.device},
                {"weights_hash", summary.weights_hash}});
  }

 private:
  // JSON has no NaN: the library writes null.
  void write_line(const Json& json) {
    const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    // Flushed at once: who watches the file sees whole lines, and a killed run leaves them.
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
        std::fflush(file_.get()) != 0) {
      fail("write metrics file");
    }
  }

  // A run that was killed inside a line must not spoil the next one.
  void end_broken_line() {
    if (std::fseek(file_.get(), -1, SEEK_END) != 0) return;  // empty
    if (std::fgetc(file_.get()) == '\n') return;
    if (std::fseek(file_.get(), 0, SEEK_END) != 0 || std::fputc('\n', file_.get()) == EOF) {
      fail("write metrics file");
    }
  }

  [[noreturn]] void fail(std::string_view action) const {
    throw FileError(describe_errno(action, path_.string(), errno));
  }

  std::filesystem::path path_;
  File file_;
};

}  // namespace

std::unique_ptr<MetricsWriter> make_metrics_writer(const std::filesystem::path& path, bool append) {
  if (path.empty()) return std::make_unique<NoMetrics>();
  return std::make_unique<JsonLines>(path, append);
}

}  // namespace syncopate
