// Data sets: samples by number, immutable, readable from many threads. Inputs keep the dtype of the
// data set until they are on the device. The table of data sets behind --data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/tensor/tensor.h"
#include "worker/input/bad_samples.h"
#include "worker/input/draw.h"
#include "worker/input/sample.h"

namespace syncopate {

// A JPEG or PNG picture as it is stored.
struct StoredPicture {
  std::string name;  // for messages: the file, and the place in it
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> memory;  // owns the bytes
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const noexcept = 0;
  // What a sample of this data set is; the same object at every call.
  virtual const SampleSpec& spec() const noexcept = 0;
  // Reads a sample: fills all its inputs, augmented as `draw` says, and its target. Throws
  // FileError naming file and offset when the sample cannot be read.
  virtual void read(std::int64_t index, const Draw& draw, const SampleView& sample) const = 0;
  // Returns the class of a sample, in [0, spec().num_classes), without decoding the sample; for a
  // label map, the class of most pixels; 0 if the targets are numbers.
  virtual std::int32_t label(std::int64_t index) const = 0;
  // Returns a hash of a sample's stored bytes, and of targets that are numbers, without decoding
  // them. Tasks compare fingerprints, and checkpoints record them.
  virtual std::uint64_t fingerprint(std::int64_t index) const = 0;
  // Returns the account of samples that could not be read and may be skipped; null: read() must not
  // fail.
  virtual BadSamples* bad_samples() const noexcept { return nullptr; }
  // Returns the stored picture of a sample that is decoded when it is read; nothing: samples are
  // not stored as pictures. Throws FileError.
  virtual std::optional<StoredPicture> stored_picture(std::int64_t /*index*/) const {
    return std::nullopt;
  }
};

// Reads a sample and checks its target. Throws as Dataset::read() and check_target().
void read_sample(const Dataset& dataset, std::int64_t index, const Draw& draw,
                 const SampleView& sample);
// Throws FileError, naming the sample, if a target should be a class or a map of classes and is
// not. Numbers are not checked.
void check_target(const Dataset& dataset, std::int64_t index, std::span<const std::byte> target);

// The splits of the data set that --data names.
struct DataSplits {
  std::string name;  // name of the data set, "digits"
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation{};  // null: the data have none
  std::unique_ptr<Dataset> test;          // never null
  // Mean and deviation by channel, as InputOp has them. The networks subtract the mean and divide
  // by the deviation.
  std::vector<float> mean{};
  std::vector<float> stddev{};
  std::vector<std::string> class_names{};  // by class; empty: the data have no names
  std::string table_columns{};  // to_text(CsvColumns) of csv:; empty: the data are no table
  std::string target_place{};   // where csv: has the targets, "field 5 (label)"; else empty
  // Advice at the end of a message, if the targets are numbers that look like classes; else empty.
  std::string classes_advice{};
  bool takes_image_size = false;  // its pictures are decoded, in the size of --image-size
  bool suits_crop_flip = false;   // natural images: mirror images keep their class

  // Returns the split that evaluations during training and all choices read: the validation split
  // if there is one. The results of a run come from the test split.
  const Dataset& watched() const { return validation != nullptr ? *validation : *test; }
};

// Names of the features of a record that make a sample, for tfds:, tfrecord: and otbtf:. Empty: the
// data set's default.
struct RecordFields {
  std::string image;      // --image-feature
  std::string label;      // --label-feature
  std::string raw_shape;  // --raw-shape, "64x64x4:u16"; empty: the image is a JPEG or PNG picture

  friend bool operator==(const RecordFields&, const RecordFields&) = default;
};

inline constexpr std::int64_t kDefaultImageSize = 224;  // pixels

// How stored pictures of any size become samples of one size, and where they are in records.
struct ImageOptions {
  std::int64_t height = 0;  // 0: kDefaultImageSize, for both
  std::int64_t width = 0;
  bool apply_exif = false;  // turn pictures as their EXIF orientation says
  // How many pictures of a split may be damaged. Evaluations leave them out. In training a damaged
  // one keeps its place in the order: the next good one of the split by number, with its class, is
  // read instead. That choice depends on the files alone, so every strategy and every number of
  // replicas trains on the same samples.
  std::int64_t skip_bad_records = 0;
  // The folder, on the machine's own disk, of decoded samples; empty: they are not kept.
  std::filesystem::path cache_dir;
  std::int64_t cache_mb = -1;  // limit of the cache, in 10^6 bytes; -1: half of the disk
  RecordFields fields{};

  // Returns these options with kDefaultImageSize where they have no size.
  ImageOptions with_size() const {
    ImageOptions sized = *this;
    if (height == 0) sized.height = sized.width = kDefaultImageSize;
    return sized;
  }
};

struct DataOptions {
  // The folder that keeps rendered data sets between runs; created when necessary.
  std::filesystem::path cache_dir;
  std::uint64_t seed = 1;  // seed of synthetic data and of `split`
  std::string split{};     // the value of --split (validation_split.h); empty: none
  // Shows progress: called while samples are made or a long text is parsed, on the thread that
  // opens the data set, with the samples or bytes that are done and all of them; may be empty.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = {};
  ImageOptions image = {};
  int local_tasks = 1;  // tasks of a job that open the same data set in the memory of one machine
};

// The groups of flags that only some data sets take.
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
  unsigned flags = 0;  // the DataFlags that it takes, added up

  bool takes(DataFlags group) const noexcept { return (flags & static_cast<unsigned>(group)) != 0; }
};
// Returns the table of data sets behind --data.
std::span<const DatasetRow> datasets() noexcept;
// Whether samples of the data set that --data names are decoded when they are read, which may take
// longer than a step; false for an unknown name.
bool is_encoded(std::string_view specification);
// Returns the patterns of the table, with `separator` between two: of all data sets, or of those
// that take a group of flags.
std::string data_patterns(std::string_view separator, std::optional<DataFlags> group = {});

// Opens the data set that --data names. Throws UsageError (unknown name, listing the known ones;
// missing folder or file), FileError (a file that is cut short, a wrong magic number, a label out
// of range, counts that differ).
DataSplits open_dataset(std::string_view specification, const DataOptions& options);

// A data set of the samples [begin, end) of another data set, numbered from 0. That data set must
// outlive the range.
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

// Returns some of the samples of another data set, which they keep alive. indices: each below
// whole->size().
std::unique_ptr<Dataset> subset_of(std::shared_ptr<const Dataset> whole,
                                   std::vector<std::uint32_t> indices);

// Moves the training samples that a value of --split holds out (validation_split.h) to
// data.validation. Throws UsageError naming --split when the data have a validation split, or a
// part would be empty.
void split_validation(DataSplits& data, const std::string& text, std::uint64_t seed);

// The functions of the table of data sets. The argument is the text behind the colon of --data.
// They throw what open_dataset throws.

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

// Throws UsageError that names the form of --data unless `folder` is a folder.
void check_is_folder(std::string_view data_name, std::string_view folder);

// Samples in memory or in a mapped file: pixels [N * H * W * C], labels [N] and the owner of their
// memory.
struct SampleBlock {
  std::span<const std::uint8_t> pixels;
  std::span<const std::uint8_t> labels;
  std::shared_ptr<const void> memory;
};

// Makes a block of samples that owns the vectors.
SampleBlock make_sample_block(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels);

// Makes a data set of u8 samples of this shape. The caller has checked the block's labels against
// num_classes.
std::unique_ptr<Dataset> make_memory_dataset(SampleBlock block, Shape sample_shape,
                                             int num_classes);

}  // namespace syncopate
