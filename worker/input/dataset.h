// The interface of data sets, and the table of data sets for --data. A data set has numbered
// samples, is immutable, and can be read from many threads. Inputs keep the dtype of the data set
// until they are on the device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/tensor/tensor.h"
#include "worker/input/draw.h"
#include "worker/input/sample.h"

namespace syncopate {

// Logs the unreadable samples of one data set, and throws an error when they are more than
// --skip-bad-records allows. Thread-safe.
class BadSamples {
 public:
  // limit: the largest number of samples that may be bad; above 0.
  explicit BadSamples(std::int64_t limit) : limit_(limit) {}

  std::int64_t limit() const noexcept { return limit_; }
  // Logs that a bad sample was found; logs each `reason` only once. reason: why the sample is bad.
  // done: what is done with the sample, "left out" or "replaced ...".
  void note(const std::string& reason, std::string_view done);
  // Throws BadSampleError if `count` is above the limit given to the constructor. count: the number
  // of bad samples in `where`, such as "epoch 1".
  void require_few(std::int64_t count, std::string_view where) const;

 private:
  const std::int64_t limit_;
  mutable std::mutex mutex_;
  std::set<std::string> noted_;  // guarded by mutex_
  std::string first_;            // the reason of the first note(); guarded by mutex_
};

// A JPEG or PNG picture as it is stored.
struct StoredPicture {
  std::string name;  // for messages: the file, and the position in the file
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> memory;  // owns the bytes
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const noexcept = 0;
  // Describes the tensors of a sample of this data set. All calls return the same object.
  virtual const SampleSpec& spec() const noexcept = 0;
  // Reads a sample: fills all its inputs, augmented as `draw` says, and its target. Throws
  // FileError naming file and offset if the sample cannot be read.
  virtual void read(std::int64_t index, const Draw& draw, const SampleView& sample) const = 0;
  // Returns the class of a sample, in [0, spec().num_classes), without decoding the sample. For a
  // label map, returns the class that most pixels have. Returns 0 if the targets are numbers.
  virtual std::int32_t label(std::int64_t index) const = 0;
  // Returns a hash of a sample's stored bytes, without decoding the sample. If the target of the
  // sample is numbers, the hash includes the target. Tasks compare fingerprints, and checkpoints
  // record them.
  virtual std::uint64_t fingerprint(std::int64_t index) const = 0;
  // Returns the counter of samples that could not be read and may be skipped; null if no sample may
  // be skipped.
  virtual BadSamples* bad_samples() const noexcept { return nullptr; }
  // Returns the stored picture of a sample; nullopt if samples are not stored as pictures. Throws
  // FileError.
  virtual std::optional<StoredPicture> stored_picture(std::int64_t /*index*/) const {
    return std::nullopt;
  }
};

// Reads a sample and checks its target. Throws what Dataset::read() and check_target() throw.
void read_sample(const Dataset& dataset, std::int64_t index, const Draw& draw,
                 const SampleView& sample);
// Throws FileError naming the sample if a target of classes, or a label map, has a value that is
// not a class. Targets that are numbers are not checked.
void check_target(const Dataset& dataset, std::int64_t index, std::span<const std::byte> target);

// The splits of the data set that --data names.
struct DataSplits {
  std::string name;  // name of the data set, "digits"
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation{};  // null if the data have no validation split
  std::unique_ptr<Dataset> test;          // never null
  // Mean and standard deviation of each channel, in the units of InputOp. Networks subtract the
  // mean and divide by the deviation.
  std::vector<float> mean{};
  std::vector<float> stddev{};
  std::vector<std::string> class_names{};  // one per class; empty if the classes have no names
  std::string table_columns{};  // to_text(CsvColumns) for csv: data; empty for other data
  // The place of the targets in csv: data, "field 5 (label)"; empty for other data.
  std::string target_place{};
  // Advice for the end of an error message, if the targets are numbers that look like classes; else
  // empty.
  std::string classes_advice{};
  bool takes_image_size = false;  // true: pictures are decoded to the size of --image-size
  bool suits_crop_flip = false;   // true: natural images, so that a mirrored image keeps its class

  // Returns the split that is evaluated during training and that decides, for example, which
  // checkpoint is the best: the validation split if there is one, else the test split. The results
  // of a run come from the test split.
  const Dataset& watched() const { return validation != nullptr ? *validation : *test; }
};

// The features of a record that make a sample, for --data tfds:DIR, tfrecord:GLOB and otbtf:DIR. An
// empty name means the default of the data set.
struct RecordFields {
  std::string image;  // the value of --image-feature
  std::string label;  // the value of --label-feature
  // The value of --raw-shape, "64x64x4:u16"; empty: the image is a JPEG or PNG picture.
  std::string raw_shape;

  friend bool operator==(const RecordFields&, const RecordFields&) = default;
};

inline constexpr std::int64_t kDefaultImageSize = 224;  // pixels

// How stored pictures of any size become samples of one size, and which features of a record have
// the picture and the class.
struct ImageOptions {
  std::int64_t height = 0;  // 0: height and width are kDefaultImageSize
  std::int64_t width = 0;
  bool apply_exif = false;  // turn pictures as their EXIF orientation says
  // The most pictures of a split that may be damaged. Evaluations leave damaged pictures out. In
  // training, the next good picture of the split (by number; the first follows the last) takes the
  // place of a damaged picture, with its own class. The choice of this picture depends on the files
  // alone, so every strategy and every number of replicas trains on the same samples.
  std::int64_t skip_bad_records = 0;
  // The folder for decoded samples, on the machine's own disk; empty: decoded samples are not
  // stored.
  std::filesystem::path cache_dir;
  std::int64_t cache_mb = -1;  // limit of the cache, in 10^6 bytes; -1: half of the disk
  RecordFields fields{};

  // Returns these options, with kDefaultImageSize if they have no size.
  ImageOptions with_size() const {
    ImageOptions sized = *this;
    if (height == 0) sized.height = sized.width = kDefaultImageSize;
    return sized;
  }
};

struct DataOptions {
  // The folder in which rendered data sets are stored for later runs; created if necessary.
  std::filesystem::path cache_dir;
  std::uint64_t seed = 1;  // seed of synthetic data and of `split`
  std::string split{};     // the value of --split (parse_split); empty: none
  // Called with the progress while samples are drawn or a long file is read, on the thread that
  // opens the data set; may be empty. done: the number of samples or bytes that are done. total:
  // the number of all samples or bytes.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = {};
  ImageOptions image = {};
  int local_tasks = 1;  // number of tasks of the job that open the data set on this machine
};

// Groups of flags, each of which only some data sets accept.
enum class DataFlags : std::uint8_t {
  kPictures = 1,  // --image-size, --exif, --skip-bad-records
  kFeatures = 2,  // --image-feature, --label-feature
  kRawShape = 4,  // --raw-shape
};

struct DatasetRow {
  std::string_view name;     // name of the data set, "mnist"
  std::string_view pattern;  // form of the --data value, "mnist:DIR"
  std::string_view help;
  DataSplits (*open)(std::string_view after_the_colon, const DataOptions&);
  unsigned flags = 0;  // the sum of the DataFlags that the data set accepts

  bool takes(DataFlags group) const noexcept { return (flags & static_cast<unsigned>(group)) != 0; }
};
// Returns the table of all data sets that --data can name.
std::span<const DatasetRow> datasets() noexcept;
// Whether samples of the data set are decoded when they are read, which may take longer than a
// step. False for an unknown name. specification: the value of --data.
bool is_encoded(std::string_view specification);
// Returns the patterns of data sets, such as "mnist:DIR", separated by `separator`. group: selects
// the data sets that accept this group of flags; nullopt selects all data sets.
std::string data_patterns(std::string_view separator, std::optional<DataFlags> group = {});

// Opens the data set that --data names. Throws UsageError for an unknown name, with a list of the
// known names, and for a missing folder or file. Throws FileError for a file that is cut short or
// has a wrong magic number, for a label out of range, and if the numbers of samples and labels
// differ.
DataSplits open_dataset(std::string_view specification, const DataOptions& options);

// The samples [begin, end) of the data set `whole`, numbered from 0. `whole` must outlive the
// range.
class DatasetRange final : public Dataset {
 public:
  DatasetRange(const Dataset& whole, std::int64_t begin, std::int64_t end)
      : whole_(whole), begin_(begin), end_(end) {}

  std::int64_t size() const noexcept override { return end_ - begin_; }
  const SampleSpec& spec() const noexcept override { return whole_.spec(); }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    whole_.read(begin_ + index, draw, sample);
  }
  std::int32_t label(std::int64_t index) const override { return whole_.label(begin_ + index); }
  std::uint64_t fingerprint(std::int64_t index) const override {
    return whole_.fingerprint(begin_ + index);
  }
  BadSamples* bad_samples() const noexcept override { return whole_.bad_samples(); }
  std::optional<StoredPicture> stored_picture(std::int64_t index) const override {
    return whole_.stored_picture(begin_ + index);
  }

 private:
  const Dataset& whole_;
  std::int64_t begin_;
  std::int64_t end_;
};

// Returns a data set of some samples of `whole`, and keeps `whole` alive. indices: the numbers of
// the samples in `whole`.
std::unique_ptr<Dataset> subset_of(std::shared_ptr<const Dataset> whole,
                                   std::vector<std::uint32_t> indices);

// Moves the training samples that hold_out() selects to data.validation. text: the value of
// --split. Throws UsageError naming --split if the data already have a validation split, or a part
// would be empty.
void split_validation(DataSplits& data, const std::string& text, std::uint64_t seed);

// Each of these functions opens one data set of the table, see DatasetRow::open. The first argument
// is the text after the colon in --data. The functions throw what open_dataset() throws.

DataSplits open_digits(std::string_view argument, const DataOptions& options);
DataSplits open_shapes(std::string_view argument, const DataOptions& options);
DataSplits open_mnist(std::string_view folder, const DataOptions& options);
DataSplits open_cifar10(std::string_view folder, const DataOptions& options);
DataSplits open_cifar100(std::string_view folder, const DataOptions& options);
DataSplits open_images(std::string_view folder, const DataOptions& options);
DataSplits open_npy(std::string_view folder, const DataOptions& options);
DataSplits open_csv(std::string_view argument, const DataOptions& options);
DataSplits open_synthetic(std::string_view argument, const DataOptions& options);
DataSplits open_tfds(std::string_view folder, const DataOptions& options);
DataSplits open_tfrecord(std::string_view globs, const DataOptions& options);
DataSplits open_otbtf(std::string_view folder, const DataOptions& options);

// Throws UsageError unless `folder` is a folder. The error message shows the form of --data for
// this data set.
void check_is_folder(std::string_view data_name, std::string_view folder);

// Samples in memory or in a mapped file: pixels [N * H * W * C], labels [N], and an owner that
// keeps the memory of both valid.
struct SampleBlock {
  std::span<const std::uint8_t> pixels;
  std::span<const std::uint8_t> labels;
  std::shared_ptr<const void> memory;
};

// Makes a block of samples that owns the vectors.
SampleBlock make_sample_block(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels);

// Makes a data set of u8 samples of this shape. The caller must check that the labels of the block
// are below num_classes.
std::unique_ptr<Dataset> make_memory_dataset(SampleBlock block, Shape sample_shape,
                                             int num_classes);

// Returns the fraction that a value of --split gives: 0.1 for "val=0.1". Throws UsageError unless
// the fraction is above 0 and below 1.
double parse_split(const std::string& text);

// The indices of the samples in two parts of a data set, each in ascending order.
struct HeldOutSamples {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> validation;
};

// Selects validation samples for --split: the last samples of a permutation that depends on the
// seed only. The number of validation samples is `samples` times the fraction that `text`, a value
// of --split, gives. Throws UsageError naming --split if a part would be empty.
HeldOutSamples hold_out(std::int64_t samples, const std::string& text, std::uint64_t seed);

}  // namespace syncopate
