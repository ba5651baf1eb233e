// Event files for TensorBoard, which are TFRecord files of Event messages (event.proto).
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

// Writes values and pictures for TensorBoard, as events, to event files in a folder. The folder is
// created with the first event. Each event is written with one system call, so that TensorBoard can
// show a run while it trains, and a killed run leaves only whole events. One thread only.
class EventFile {
 public:
  // has_others: whether other writers may have files in the folder. TensorBoard reads files in the
  // order of their names, which begin with a time, and does not return to an earlier file. This
  // writer therefore begins a new file if another writer has a newer file than this writer.
  explicit EventFile(std::filesystem::path folder, bool has_others = false)
      : folder_(std::move(folder)), has_others_(has_others) {}

  // Creates the folder and the file; the functions below call it. Throws FileError, and
  // UnavailableError if this build has no protobuf.
  void open();
  // Writes an event which says that a run continues at `step`, so that TensorBoard drops earlier
  // events of the folder from `step` on. Does nothing if the folder has no earlier events.
  void begin_again(std::int64_t step);
  // Adds the values of one step as pairs of tag and value.
  void add_scalars(std::int64_t step, std::span<const std::pair<std::string_view, double>> values);
  // The texts of a picture. TensorBoard shows the tag above the picture, and the description behind
  // an info symbol beside the tag.
  struct Caption {
    std::string_view tag;
    std::string_view description;
  };
  // Adds a picture of grey pixels [height * width], where 0 is black.
  void add_picture(std::int64_t step, const Caption& caption, std::span<const std::uint8_t> pixels,
                   std::int64_t width, std::int64_t height);

 private:
  void write(std::string_view event);
  // Returns the name of the newest event file in the folder other than the open file; "" if there
  // is none.
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

// The role of a writer of a job's curves. A synchronous job has one writer. In an asynchronous job
// each worker has a writer, and one worker at a time reports; the first worker also writes the step
// at which the run begins.
enum class CurveWriter : std::uint8_t { kOnly, kFirstWorker, kOtherWorker };

// Makes a writer of the curves of a run. folder/train has the curves of training: loss, accuracy
// (or the other main metric of the loss), learning_rate, samples_per_second, and the staleness of
// asynchronous workers. folder/validation and folder/test have loss and accuracy of evaluations,
// and the picture of add_confusion_image(). Files are created when their first event is written. A
// writer of role kOnly creates the file in folder/train at once, so that a folder that cannot be
// written ends a run before it trains. A writer of role kOnly also reserves the folder for its run
// with claim_curves(). Writers of the other roles share one reservation, which each of them joins
// with its first event. If the folder has curves of an earlier run, the new run replaces their
// values from its first step on. Throws what EventFile::open() and claim_curves() throw.
std::unique_ptr<MetricsWriter> make_tensorboard_writer(const std::filesystem::path& folder,
                                                       CurveWriter which);

// Creates the folder and prevents other runs from writing curves in it while the returned
// descriptor is open. Throws UsageError naming the other writer if another run writes there; also
// throws FileError.
FileDescriptor claim_curves(const std::filesystem::path& folder);

// Throws UnavailableError if this build cannot write event files.
void require_tensorboard();

// Adds a picture of the confusion matrix to folder/test. It has a row per true class and a column
// per predicted class; a pixel is darker if more samples of the true class are predicted as the
// class of the column. The tag and the description of the picture explain the axes. The caller must
// have called claim_curves(). Throws what EventFile::open() throws.
void add_confusion_image(const std::filesystem::path& folder, std::int64_t step,
                         const ConfusionMatrix& confusion);

}  // namespace syncopate
