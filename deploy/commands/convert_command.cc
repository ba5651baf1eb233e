// `syncopate convert --to tfrecord`: writes a data set as TFRecord files.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "deploy/commands/commands.h"
#include "deploy/slurm/job_script.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/replacing_file.h"
#include "worker/input/pictures/image_folder.h"
#include "worker/input/record/example.h"
#include "worker/input/record/record_file.h"
#include "worker/run/exit_codes.h"
#include "worker/train/progress.h"
#include "worker/train/stop_signal.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kShardBytes = 128'000'000;

// A folder that appears under its name when it is complete, and is removed otherwise.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& path)
      : path_(without_slash(path)),
        temporary_(fmt::format("{}.tmp{}", path_.string(), ::getpid())) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(path_, error)) &&
        (!fs::is_directory(path_, error) || !fs::is_empty(path_, error) ||
         fs::equivalent(path_, fs::current_path(), error))) {
      throw UsageError(
          fmt::format("{} is there already; give the name of a new folder", path_.string()));
    }
    fs::create_directories(temporary_, error);
    if (error) throw FileError(describe_errno("create", temporary_.string(), error.value()));
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }

  const fs::path& files() const { return temporary_; }
  void commit() {
    std::error_code error;
    fs::rename(temporary_, path_, error);
    if (error) throw FileError(describe_errno("rename to", path_.string(), error.value()));
  }

 private:
  static fs::path without_slash(const fs::path& path) {
    const fs::path normal = path.lexically_normal();
    return normal.has_filename() ? normal : normal.parent_path();
  }

  const fs::path path_;
  const fs::path temporary_;
};

// What the records that were written contain.
struct Written {
  std::vector<std::string> splits;  // "83 train"
  bool are_pictures = false;        // JPEG or PNG, else values
  std::int32_t largest_label = 0;
};

// Returns the flags that read values as the data set does: pictures need none.
std::string value_flags(const DataSplits& data) {
  const TensorSpec& input = data.train->spec().inputs.front();
  std::string flags =
      fmt::format(" --raw-shape {}:{}", fmt::join(input.shape, "x"), name(input.dtype));
  if (!data.mean.empty()) {
    flags +=
        fmt::format(" --normalize {}/{}", fmt::join(data.mean, ","), fmt::join(data.stddev, ","));
  }
  return flags;
}

// Returns a pattern that matches only this path: special letters are escaped.
std::string pattern_of(const fs::path& path) {
  std::string pattern;
  for (const char letter : path.string()) {
    if (std::string_view("*?[]{}\\,").find(letter) != std::string_view::npos) pattern += '\\';
    pattern += letter;
  }
  return pattern;
}

// Throws UsageError unless the samples have one input that --raw-shape describes, and a class, and
// --data tfrecord can name the folder.
void require_writable_samples(const ConvertOptions& options, const Dataset& data) {
  if (options.out.string().find("::") != std::string::npos) {
    throw UsageError(fmt::format("{}: --data tfrecord divides patterns at ::, give another folder",
                                 options.out.string()));
  }
  const SampleSpec& spec = data.spec();
  const TensorSpec& input = spec.inputs.front();
  const bool is_input =
      input.dtype == DType::kU8 || input.dtype == DType::kU16 || input.dtype == DType::kF32;
  if (spec.inputs.size() == 1 && is_input && spec.num_classes > 0 && spec.target.shape.empty()) {
    return;
  }
  throw UsageError(
      fmt::format("convert --to tfrecord writes samples of u8, u16 or f32 with one class each; "
                  "those of {} have {}; train on them as they are",
                  options.source,
                  spec.inputs.size() > 1  ? "several inputs"
                  : !is_input             ? fmt::format("values of {}", name(input.dtype))
                  : spec.num_classes == 0 ? "numbers as targets"
                                          : "a label map"));
}

// A signal asked to stop.
struct Stopped {
  std::string_view signal;
};

// Makes the records of a split, one at a time.
class RecordMaker {
 public:
  // split: its name, for messages.
  RecordMaker(const Dataset& data, std::string_view split)
      : data_(data), split_(split), input_(data.spec().inputs.front().size_bytes()) {}

  bool has_pictures() const noexcept { return has_pictures_; }
  std::int32_t largest_label() const noexcept { return largest_label_; }
  // Returns the record of a sample; nothing: the sample is damaged and may be left out. Throws
  // FileError.
  std::optional<std::vector<std::byte>> make(std::int64_t index) {
    BadSamples* const bad = data_.bad_samples();
    if (bad == nullptr) return record_of(index);
    try {
      read(index);
      return record_of(index);
    } catch (const BadSampleError&) {
      throw;
    } catch (const FileError& error) {
      bad->note(error.what(), "left out");
      bad->require_few(++num_bad_, fmt::format("split {}", split_));
      return std::nullopt;
    }
  }

 private:
  // Fills input_ and label_.
  void read(std::int64_t index) {
    const std::array inputs = {std::span<std::byte>(input_)};
    data_.read(index, {}, {inputs, std::as_writable_bytes(std::span(&label_, 1))});
  }
  std::vector<std::byte> record_of(std::int64_t index) {
    const std::optional<StoredPicture> picture = data_.stored_picture(index);
    if (picture) {
      label_ = data_.label(index);
    } else {
      read(index);
    }
    has_pictures_ = picture.has_value();
    largest_label_ = std::max(largest_label_, label_);
    const std::array<WrittenFeature, 2> features = {
        {{.name = "image", .bytes = picture ? picture->bytes : std::span<const std::byte>(input_)},
         {.name = "label", .integer = label_}}};
    return serialize_example(features);
  }

  const Dataset& data_;
  const std::string_view split_;
  std::vector<std::byte> input_;
  std::int32_t label_ = 0;
  std::int64_t num_bad_ = 0;
  bool has_pictures_ = false;  // the last record has one
  std::int32_t largest_label_ = 0;
};

// Gives the files of a split, which have names of their number alone, names that also tell how many
// there are, so that a reader notices a file that is missing.
class ShardFiles {
 public:
  ShardFiles(const fs::path& folder, const std::string& split) : folder_(folder), split_(split) {}

  // Returns the path of the next file, until finish().
  fs::path add() { return folder_ / fmt::format("{}-{:05}", split_, count_++); }
  void finish() const {
    for (int i = 0; i < count_; ++i) {
      const fs::path from = folder_ / fmt::format("{}-{:05}", split_, i);
      std::error_code error;
      fs::rename(from, fmt::format("{}-of-{:05}.tfrecord", from.string(), count_), error);
      if (error) throw FileError(describe_errno("rename", from.string(), error.value()));
    }
  }

 private:
  const fs::path folder_;
  const std::string split_;
  int count_ = 0;
};

// Writes the samples of a split into files of about kShardBytes. Throws Stopped.
void write_split(const Dataset& data, const fs::path& folder, const std::string& split,
                 StopSignal& signals,
                 const std::function<void(std::int64_t, std::int64_t)>& on_progress,
                 Written& written) {
  RecordMaker maker(data, split);
  std::optional<RecordWriter> writer;
  ShardFiles files(folder, split);
  std::int64_t num_written = 0;
  std::int64_t bytes = 0;
  const auto commit = [&] {
    if (writer) writer->commit();
    writer.reset();
    bytes = 0;
  };
  for (std::int64_t i = 0; i < data.size(); ++i) {
    if (const auto signal = signals.poll()) throw Stopped{*signal};
    if (const auto record = maker.make(i)) {
      if (!writer) writer.emplace(files.add());
      writer->write(*record);
      bytes += static_cast<std::int64_t>(record->size());
      ++num_written;
    }
    if (bytes >= kShardBytes) commit();
    constexpr std::int64_t kTick = 1024;
    if (i % kTick == 0 || i + 1 == data.size()) on_progress(i + 1, data.size());
  }
  commit();
  files.finish();
  written.splits.push_back(fmt::format("{} {}", num_written, split));
  written.are_pictures = written.are_pictures || maker.has_pictures();
  written.largest_label = std::max(written.largest_label, maker.largest_label());
}

// Writes a name a line, where --data tfrecord: reads it. Classes without names have their numbers
// as names, if the labels alone would say that there are fewer.
void write_class_names(const DataSplits& data, std::int32_t largest_label, const fs::path& folder) {
  std::vector<std::string> names = data.class_names;
  const std::int64_t classes = data.train->spec().num_classes;
  for (std::int64_t i = 0; data.class_names.empty() && largest_label + 1 < classes && i < classes;
       ++i) {
    names.push_back(std::to_string(i));
  }
  if (names.empty()) return;
  std::string text;
  for (const std::string& name : names) text += printable(name) + '\n';
  replace_file(folder / "label.labels.txt", text);
}

}  // namespace

int run_convert(const ConvertOptions& options, std::ostream& out) {
  if (options.format == "network") return run_convert_network(options, out);
  const auto display = make_progress_display(true);
  const DataSplits data =
      open_dataset(options.source, {.cache_dir = options.cache_dir,
                                    .on_progress = show_progress(*display, "preparing the data"),
                                    .image = options.image});
  require_writable_samples(options, *data.train);
  StopSignal signals;  // the threads that opened the data have ended
  NewFolder folder(options.out);
  Written written;
  const auto write = [&](const Dataset* split, const std::string& name) {
    if (split == nullptr) return;
    write_split(*split, folder.files(), name, signals, show_progress(*display, "writing " + name),
                written);
  };
  try {
    write(data.train.get(), "train");
    write(data.validation.get(), "validation");
    write(data.test.get(), "test");
    write_class_names(data, written.largest_label, folder.files());
  } catch (const Stopped& stopped) {
    display->finish();
    log(LogLevel::kError,
        fmt::format("convert was stopped by {}; nothing was written", stopped.signal));
    return kExitFailed;
  }
  folder.commit();
  display->finish();
  const std::string dir = pattern_of(options.out);
  const std::string globs = fmt::format("tfrecord:{0}/train-*::{1}{0}/test-*", dir,
                                        data.validation != nullptr ? dir + "/validation-*::" : "");
  out << fmt::format("wrote {} samples of {} to {}\n", fmt::join(written.splits, ", "),
                     options.source, options.out.string())
      << fmt::format("read them with --data {}{}\n", shell_word(globs),
                     written.are_pictures ? "" : value_flags(data))
      << std::flush;
  return 0;
}

}  // namespace syncopate
