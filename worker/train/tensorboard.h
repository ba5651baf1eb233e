// Event files that TensorBoard reads: TFRecord files of messages Event (event.proto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/file_descriptor.h"
#include "worker/train/confusion.h"
#include "worker/train/metrics.h"

namespace syncopate {

// The event files of one writer in a folder, which is created with its first event. Each event is
// one write, so that TensorBoard shows a run while it trains and a killed run leaves whole events.
// One thread only.
class EventFile {
 public:
  // has_others: other writers have files in the folder. TensorBoard reads files in the order of
  // their names, which begin with a time, and does not return to an earlier one; so this writer
  // begins another file when there is a newer one.
  explicit EventFile(std::filesystem::path folder, bool has_others = false)
      : folder_(std::move(folder)), has_others_(has_others) {}

  // Creates the folder and the file. Throws FileError, and UnavailableError if this build has no
  // protobuf. The functions below call it.
  void open();
  // Says that a run goes on with this step: TensorBoard drops what earlier events of the folder
  // have of this step and later ones. Without earlier events it does nothing.
  void begin_again(std::int64_t step);
  // Adds values of one step, by tag.
  void add_scalars(std::int64_t step, std::span<const std::pair<std::string_view, double>> values);
  // Adds a picture of grey pixels, [height * width], 0 black. TensorBoard shows the tag above the
  // picture, and the description behind a sign beside it.
  struct Caption {
    std::string_view tag;
    std::string_view description;
  };
  void add_picture(std::int64_t step, const Caption& caption, std::span<const std::uint8_t> pixels,
                   std::int64_t width, std::int64_t height);

 private:
  void write(std::string_view event);
  // Returns the name of the newest event file in the folder but for the open one; "" if there is
  // none.
  std::string newest_other() const;
  // Whether this writer has written values, or another event file is in the folder.
  bool has_earlier_events() const;

  const std::filesystem::path folder_;
  const bool has_others_;
  std::filesystem::path path_;
  FileDescriptor file_;
  bool has_values_ = false;
  bool is_failing_ = false;  // the last event could not be written
};

// The role of a writer of a job's curves. A synchronous job has one writer. Each asynchronous
// worker has one, and one of them at a time reports.
enum class CurveWriter : std::uint8_t { kOnly, kFirstWorker, kOtherWorker };

// Makes a writer of the curves of a run: folder/train has loss, accuracy (or the loss's other main
// metric), learning_rate, samples_per_second, and staleness of asynchronous workers, by step;
// folder/validation and folder/test have loss and accuracy of evaluations, and the picture of
// add_confusion_image(). Files are created when their first event is written; the only writer
// creates the file in folder/train at once, so that a folder that cannot be written ends a run
// before it trains. It also claims the folder for its run, and the workers join the claim with
// their first event. A run that begins in a folder with curves replaces what they have of its
// steps. Throws as EventFile::open() and claim_curves().
std::unique_ptr<MetricsWriter> make_tensorboard_writer(const std::filesystem::path& folder,
                                                       CurveWriter which);

// Creates the folder and makes this run the only one that writes curves in it, as long as the
// descriptor is open. Throws UsageError naming the other writer; FileError.
FileDescriptor claim_curves(const std::filesystem::path& folder);

// Throws UnavailableError if this build cannot write event files.
void require_tensorboard();

// Adds a picture of the confusion matrix to folder/test: a row per class, a column per predicted
// class, darker where more samples of the class are predicted as that class. Its tag and
// description explain the axes. The caller has claimed the folder. Throws as EventFile::open().
void add_confusion_image(const std::filesystem::path& folder, std::int64_t step,
                         const ConfusionMatrix& confusion);

}  // namespace syncopate
