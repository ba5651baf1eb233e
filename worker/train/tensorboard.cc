#include "worker/train/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "models/base/log.h"
#include "ps/net/endpoint.h"
#include "worker/input/image/png_writer.h"
#include "worker/input/record/proto/event.pb.h"
#include "worker/input/record/record_file.h"

namespace syncopate {
namespace {

constexpr const char* kFileVersion = "brain.Event:2";
constexpr mode_t kBeforeUmask = 0666;
constexpr const char* kFolderAdvice = "; give a folder that can be written";
constexpr std::int64_t kPictureSide = 512;  // pixels, about
constexpr std::int64_t kMostPictureClasses = 2048;
// The tag says what the axes are: one of TensorBoard's two pages shows no description.
constexpr EventFile::Caption kConfusionCaption = {
    .tag = "confusion (row: true class, column: predicted class)",
    .description =
        "Row: the true class, 0 at the top. Column: the predicted class, 0 at the left. "
        "Black: all samples of the class; white: none."};

proto::Event event_at(std::int64_t step) {
  proto::Event event;
  event.set_wall_time(wall_clock_seconds());
  event.set_step(step);
  return event;
}

// Draws a row per class and a column per predicted class.
void add_confusion(EventFile& file, std::int64_t step, const ConfusionMatrix& confusion) {
  const std::int64_t num_classes = confusion.num_classes();
  if (num_classes < 1 || num_classes > kMostPictureClasses) return;
  const std::int64_t cell = std::max<std::int64_t>(1, kPictureSide / num_classes);
  const std::int64_t side = cell * num_classes;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(side * side), 255);
  const std::vector<ClassCounts> classes = confusion.classes();
  for (const auto& [pair, count] : confusion.counts()) {
    const auto& [target, predicted] = pair;
    const double share = static_cast<double>(count) /
                         static_cast<double>(classes[static_cast<std::size_t>(target)].samples);
    const auto grey = static_cast<std::uint8_t>(std::lround(255.0 * (1.0 - share)));
    for (std::int64_t row = target * cell; row < (target + 1) * cell; ++row) {
      std::fill_n(pixels.begin() + row * side + predicted * cell, cell, grey);
    }
  }
  file.add_picture(step, kConfusionCaption, pixels, side, side);
}

FileDescriptor open_claim(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw FileError(describe_errno("create --tensorboard", folder.string(), failed.value()) +
                    kFolderAdvice);
  }
  // TensorBoard reads only files with "tfevents" in their names.
  const std::filesystem::path path = folder / ".tensorboard.lock";
  FileDescriptor file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kBeforeUmask));
  if (!file) {
    throw FileError(describe_errno("open --tensorboard", path.string(), errno) + kFolderAdvice);
  }
  return file;
}

class Curves final : public MetricsWriter {
 public:
  Curves(const std::filesystem::path& folder, CurveWriter which)
      : folder_(folder),
        which_(which),
        train_(folder / "train", which != CurveWriter::kOnly),
        validation_(folder / "validation", which != CurveWriter::kOnly),
        test_(folder / "test", which != CurveWriter::kOnly) {}

  void open() {
    claim_ = claim_curves(folder_);
    train_.open();
  }
  // Each asynchronous worker begins; one of them says so for the job.
  void write(const BeginMetrics& metrics) override {
    if (which_ == CurveWriter::kOtherWorker) return;
    join();
    for (EventFile* const file : {&train_, &validation_, &test_}) {
      file->begin_again(metrics.step + 1);
    }
    begun_at_ = metrics.step;
  }
  void write(const StepMetrics& metrics) override {
    join();
    std::vector<std::pair<std::string_view, double>> values = {
        {"loss", metrics.loss},
        {metrics.metric.name(), metrics.metric.value},
        {"learning_rate", metrics.learning_rate},
        {"samples_per_second", metrics.samples_per_second},
        {"input_wait_fraction", metrics.input_wait_fraction}};
    if (metrics.staleness_max > 0) values.emplace_back("staleness", metrics.staleness_mean);
    train_.add_scalars(metrics.step, values);
  }
  void write(const EvalMetrics& metrics) override {
    join();
    const Evaluation& result = metrics.result;
    std::vector<std::pair<std::string_view, double>> values = {
        {"loss", result.loss}, {result.metric.name(), result.metric.value}};
    if (const auto iou = result.metric.mean_iou) values.emplace_back("mean_iou", *iou);
    EventFile& file = metrics.on_validation ? validation_ : test_;
    // A resumed run may evaluate its first step again; a run without steps to train does not even
    // begin. Another asynchronous worker may have evaluated later steps already.
    if (which_ == CurveWriter::kOnly && metrics.step <= begun_at_.value_or(metrics.step)) {
      file.begin_again(metrics.step);
    }
    file.add_scalars(metrics.step, values);
    if (result.confusion) add_confusion(file, metrics.step, *result.confusion);
  }
  void write(const WorkerMetrics& /*metrics*/) override {}
  // With a validation split the test split is evaluated once, at the end.
  void write(const Summary& summary) override {
    if (!summary.validation || std::isnan(summary.test.loss)) return;
    write(EvalMetrics{.step = summary.steps, .result = summary.test});
  }

 private:
  // Takes part in the claim of the run's only writer, which may end before this one.
  void join() {
    if (claim_) return;
    claim_ = open_claim(folder_);
    join_claim(claim_);
  }

  const std::filesystem::path folder_;
  const CurveWriter which_;
  FileDescriptor claim_;
  std::optional<std::int64_t> begun_at_;  // the step
  EventFile train_;
  EventFile validation_;
  EventFile test_;
};

// Returns the seconds in the name of an event file; 0 for another name.
std::int64_t seconds_in(std::string_view name) {
  constexpr std::string_view kMark = "tfevents.";
  const std::size_t mark = name.find(kMark);
  if (mark == std::string_view::npos) return 0;
  const std::string_view digits = name.substr(mark + kMark.size());
  std::int64_t seconds = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  return seconds;
}

}  // namespace

std::string EventFile::newest_other() const {
  std::string newest;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder_, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::string name = at->path().filename().string();
    const bool is_other = name.find("tfevents") != std::string::npos && at->path() != path_;
    if (is_other) newest = std::max(newest, std::move(name));
  }
  return newest;
}

void EventFile::open() {
  if (has_others_ && file_ && newest_other() > path_.filename().string()) file_.reset();
  if (file_) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (failed) {
    throw FileError(describe_errno("create --tensorboard", folder_.string(), failed.value()) +
                    kFolderAdvice);
  }
  do {  // again if another writer has just taken the name
    const std::int64_t seconds =
        std::max(static_cast<std::int64_t>(wall_clock_seconds()), seconds_in(newest_other()) + 1);
    path_ = folder_ /
            fmt::format("events.out.tfevents.{}.{}.{}.0.v2", seconds, own_host_name(), ::getpid());
    file_ = FileDescriptor(
        ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, kBeforeUmask));
  } while (!file_ && errno == EEXIST);
  if (!file_) {
    throw FileError(describe_errno("open --tensorboard", path_.string(), errno) + kFolderAdvice);
  }
  proto::Event first = event_at(0);
  first.set_file_version(kFileVersion);
  write(first.SerializeAsString());
}

bool EventFile::has_earlier_events() const { return has_values_ || !newest_other().empty(); }

void EventFile::begin_again(std::int64_t step) {
  if (!has_earlier_events()) return;
  open();
  proto::Event event = event_at(step);
  event.mutable_session_log()->set_status(proto::SessionLog::START);
  // TensorBoard takes the first START of a folder for the beginning of the run, which drops
  // nothing. Source: _CheckForRestartAndMaybePurge in its plugin_event_accumulator.py.
  for (int i = 0; i < 2; ++i) write(event.SerializeAsString());
}

void EventFile::add_scalars(std::int64_t step,
                            std::span<const std::pair<std::string_view, double>> values) {
  open();
  has_values_ = true;
  proto::Event event = event_at(step);
  for (const auto& [tag, value] : values) {
    proto::Summary::Value* const added = event.mutable_summary()->add_value();
    added->set_tag(std::string(tag));
    added->set_simple_value(static_cast<float>(value));
  }
  write(event.SerializeAsString());
}

void EventFile::add_picture(std::int64_t step, const Caption& caption,
                            std::span<const std::uint8_t> pixels, std::int64_t width,
                            std::int64_t height) {
  open();
  has_values_ = true;
  const std::vector<std::byte> png = encode_grey_png(pixels, width, height);
  proto::Event event = event_at(step);
  proto::Summary::Value* const added = event.mutable_summary()->add_value();
  added->set_tag(std::string(caption.tag));
  added->mutable_metadata()->set_summary_description(std::string(caption.description));
  proto::Summary::Image* const image = added->mutable_image();
  image->set_width(static_cast<std::int32_t>(width));
  image->set_height(static_cast<std::int32_t>(height));
  image->set_colorspace(1);
  image->set_encoded_image_string(png.data(), png.size());
  write(event.SerializeAsString());
}

// An event that cannot be written, because the disk is full, is lost; training is worth more.
void EventFile::write(std::string_view event) {
  std::vector<std::byte> record;
  append_record(std::as_bytes(std::span(event)), record);
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  const bool is_whole = write_all(file_, record) == record.size();
  if (!is_whole && !is_failing_) {
    log(LogLevel::kWarning, describe_errno("write --tensorboard", path_.string(), errno) +
                                "; training goes on, and later events are tried again");
  }
  // TensorBoard would stop at a part of an event.
  if (!is_whole && ::ftruncate(file_.get(), end) != 0) file_.reset();
  is_failing_ = !is_whole;
}

FileDescriptor claim_curves(const std::filesystem::path& folder) {
  FileDescriptor claim = open_claim(folder);
  claim_file(claim, "--tensorboard", folder);
  return claim;
}

void require_tensorboard() {}

std::unique_ptr<MetricsWriter> make_tensorboard_writer(const std::filesystem::path& folder,
                                                       CurveWriter which) {
  auto curves = std::make_unique<Curves>(folder, which);
  if (which == CurveWriter::kOnly) curves->open();
  return curves;
}

void add_confusion_image(const std::filesystem::path& folder, std::int64_t step,
                         const ConfusionMatrix& confusion) {
  EventFile file(folder / "test");
  add_confusion(file, step, confusion);
}

}  // namespace syncopate
