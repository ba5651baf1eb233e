#include "worker/input/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/parse_number.h"
#include "models/base/random.h"
#include "models/graph/graph.h"

namespace syncopate {
namespace {

constexpr unsigned kPictureFlags = static_cast<unsigned>(DataFlags::kPictures);
constexpr unsigned kFeatureFlags = static_cast<unsigned>(DataFlags::kFeatures);
constexpr unsigned kRawShapeFlag = static_cast<unsigned>(DataFlags::kRawShape);

constexpr std::array<DatasetRow, 12> kDatasets = {{
    {"digits", "digits", "drawn digits, 28x28 grey, 60,000 + 10,000, made here", open_digits},
    {"shapes", "shapes", "label maps: discs and bars on noise, 64x64, 6,000 + 1,000, made here",
     open_shapes},
    {"mnist", "mnist:DIR",
     "folder of the four IDX files from https://ossci-datasets.s3.amazonaws.com/mnist/",
     open_mnist},
    {"cifar10", "cifar10:DIR",
     "folder of the binary version from https://www.cs.toronto.edu/~kriz/cifar.html", open_cifar10},
    {"cifar100", "cifar100:DIR", "folder of the binary version from the same page, 100 fine labels",
     open_cifar100},
    {"images", "images:DIR",
     "JPEG and PNG files, a folder per class; or DIR/train and DIR/test or val", open_images,
     kPictureFlags},
    {"tfds", "tfds:DIR",
     "folder of TensorFlow Datasets' pictures with a class, as tfds.load left it", open_tfds,
     kPictureFlags | kFeatureFlags},
    {"tfrecord", "tfrecord:GLOB[::[VAL_GLOB::]TEST_GLOB]",
     "TFRecord files of Examples with a picture, or values with --raw-shape, and a class, whose "
     "names are lines of LABEL.labels.txt beside them, if there is one; without TEST_GLOB one "
     "record in ten becomes a test sample",
     open_tfrecord, kPictureFlags | kFeatureFlags | kRawShapeFlag},
    {"otbtf", "otbtf:DIR",
     "OTBTF's patches and label maps: TFRecord files in train, valid and test; pixels of class 255 "
     "do not count",
     open_otbtf, kFeatureFlags},
    {"npy", "npy:DIR",
     "NumPy's x_train.npy, y_train.npy, x_test.npy, y_test.npy: u8 or u16, or f32 taken as it is; "
     "y has integers, the classes, or f32, numbers",
     open_npy},
    {"csv", "csv:FILE[:LABEL_COLUMN|:targets=COLUMN,...]",
     "lines of numbers and a class, or numbers as targets, all other columns being inputs; a fifth "
     "of them become test samples; or "
     "DIR/train.csv and test.csv",
     open_csv},
    {"synthetic", "synthetic:CxHxW:CLASSES[:SAMPLES]",
     "noise on a pattern per class, made in memory", open_synthetic},
}};

struct OwnedBlock {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(SampleBlock block, Shape sample_shape, int num_classes)
      : block_(std::move(block)),
        spec_(classified_samples(std::move(sample_shape), num_classes)),
        sample_bytes_(spec_.inputs[0].size_bytes()) {
    check(block_.pixels.size() == block_.labels.size() * sample_bytes_,
          "a data set in memory needs one label for each sample");
  }

  std::int64_t size() const noexcept override {
    return static_cast<std::int64_t>(block_.labels.size());
  }
  const SampleSpec& spec() const noexcept override { return spec_; }

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    apply_draw(draw, spec_.inputs[0], std::as_bytes(pixels(index)), sample.inputs[0]);
    const std::int32_t label = this->label(index);
    std::memcpy(sample.target.data(), &label, sizeof label);
  }
  std::int32_t label(std::int64_t index) const override {
    check(index >= 0 && index < size(), "a sample outside the data set");
    return block_.labels[static_cast<std::size_t>(index)];
  }
  std::uint64_t fingerprint(std::int64_t index) const override {
    const std::span<const std::uint8_t> bytes = pixels(index);
    return hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

 private:
  std::span<const std::uint8_t> pixels(std::int64_t index) const {
    check(index >= 0 && index < size(), "a sample outside the data set");
    return block_.pixels.subspan(static_cast<std::size_t>(index) * sample_bytes_, sample_bytes_);
  }

  SampleBlock block_;
  SampleSpec spec_;
  std::size_t sample_bytes_;
};

// Some of the samples of another data set, which it keeps alive.
class SampleSubset final : public Dataset {
 public:
  SampleSubset(std::shared_ptr<const Dataset> whole, std::vector<std::uint32_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {}

  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(indices_.size()); }
  const SampleSpec& spec() const noexcept override { return whole_->spec(); }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    whole_->read(at(index), draw, sample);
  }
  std::int32_t label(std::int64_t index) const override { return whole_->label(at(index)); }
  std::uint64_t fingerprint(std::int64_t index) const override {
    return whole_->fingerprint(at(index));
  }
  BadSamples* bad_samples() const noexcept override { return whole_->bad_samples(); }
  std::optional<StoredPicture> stored_picture(std::int64_t index) const override {
    return whole_->stored_picture(at(index));
  }

 private:
  std::int64_t at(std::int64_t index) const {
    check(index >= 0 && index < size(), "a sample outside the data set");
    return indices_[static_cast<std::size_t>(index)];
  }

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::uint32_t> indices_;
};

// Throws UsageError if the options have a flag that the data set does not take.
void check_data_flags(const DatasetRow& row, const ImageOptions& image) {
  struct GivenFlag {
    std::string_view name;
    bool is_given;
    DataFlags group;
  };
  const std::array<GivenFlag, 6> flags = {{
      {"--image-size", image.height != 0, DataFlags::kPictures},
      {"--exif", image.apply_exif, DataFlags::kPictures},
      {"--skip-bad-records", image.skip_bad_records > 0, DataFlags::kPictures},
      {"--image-feature", !image.fields.image.empty(), DataFlags::kFeatures},
      {"--label-feature", !image.fields.label.empty(), DataFlags::kFeatures},
      {"--raw-shape", !image.fields.raw_shape.empty(), DataFlags::kRawShape},
  }};
  for (const GivenFlag& flag : flags) {
    if (!flag.is_given || row.takes(flag.group)) continue;
    throw UsageError(fmt::format("{} is for --data {}; this is --data {}", flag.name,
                                 data_patterns(", ", flag.group), row.name));
  }
}

}  // namespace

std::span<const DatasetRow> datasets() noexcept { return kDatasets; }

std::string data_patterns(std::string_view separator, std::optional<DataFlags> group) {
  std::string patterns;
  for (const DatasetRow& row : kDatasets) {
    if (group && !row.takes(*group)) continue;
    if (!patterns.empty()) patterns += separator;
    patterns += row.pattern;
  }
  return patterns;
}

bool is_encoded(std::string_view specification) {
  const std::string_view name = specification.substr(0, specification.find(':'));
  const auto row = std::ranges::find(kDatasets, name, &DatasetRow::name);
  return row != kDatasets.end() && row->takes(DataFlags::kPictures);
}

DataSplits open_dataset(std::string_view specification, const DataOptions& options) {
  const std::size_t colon = specification.find(':');
  const std::string_view name = specification.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? specification.substr(colon + 1) : "";
  for (const DatasetRow& row : kDatasets) {
    if (row.name == name) {
      const bool wants_argument = row.pattern != row.name;
      if (wants_argument != !argument.empty() || (has_argument && !wants_argument)) {
        const std::string_view missing =
            wants_argument ? row.pattern.substr(row.name.size() + 1) : std::string_view();
        throw UsageError(fmt::format("--data {}: {}{} --data {} ({})", specification, missing,
                                     wants_argument ? " is missing; give" : "expected", row.pattern,
                                     row.help));
      }
      check_data_flags(row, options.image);
      DataSplits splits = row.open(argument, options);
      splits.takes_image_size =
          row.takes(DataFlags::kPictures) && options.image.fields.raw_shape.empty();
      if (!options.split.empty()) split_validation(splits, options.split, options.seed);
      return splits;
    }
  }
  throw UsageError(
      fmt::format("--data {}: no such data set; choose one of {}", name, data_patterns(", ")));
}

void read_sample(const Dataset& dataset, std::int64_t index, const Draw& draw,
                 const SampleView& sample) {
  // A data set of a user's program may throw anything.
  const auto failed = [&](std::string_view why) {
    return FileError(fmt::format("sample {} of {} cannot be read: {}", index, dataset.size(), why));
  };
  try {
    dataset.read(index, draw, sample);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw failed(error.what());
  } catch (...) {
    throw failed("its data set threw an exception of an unknown type");
  }
  check_target(dataset, index, sample.target);
}

void check_target(const Dataset& dataset, std::int64_t index, std::span<const std::byte> target) {
  const SampleSpec& spec = dataset.spec();
  if (spec.target.dtype != DType::kI32) return;
  const bool is_map = !spec.target.shape.empty();
  const std::span classes(reinterpret_cast<const std::int32_t*>(target.data()),
                          target.size() / sizeof(std::int32_t));
  const auto is_wrong = [&](std::int32_t value) {
    return (value < 0 || value >= spec.num_classes) && !(is_map && value == kUncounted);
  };
  const auto wrong = std::ranges::find_if(classes, is_wrong);
  if (wrong == classes.end()) return;
  throw FileError(fmt::format(
      "sample {} of {}: its {} {}; expected 0 to {}{}", index, dataset.size(),
      is_map ? "label map has the class" : "class is", *wrong, spec.num_classes - 1,
      is_map ? fmt::format(", or {} for a pixel that does not count", kUncounted) : ""));
}

void check_is_folder(std::string_view data_name, std::string_view folder) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(folder, error);
  if (std::filesystem::is_directory(status)) return;
  if (error && status.type() != std::filesystem::file_type::not_found) {
    throw FileError(fmt::format("--data {}:{}: {}; let this user read the folder, or give another",
                                data_name, folder, error.message()));
  }
  const auto row = std::ranges::find(kDatasets, data_name, &DatasetRow::name);
  throw UsageError(fmt::format("--data {0}:{1}: there is no folder {1}; expected --data {2} ({3})",
                               data_name, folder, row->pattern, row->help));
}

SampleBlock make_sample_block(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels) {
  auto owned = std::make_shared<OwnedBlock>(OwnedBlock{std::move(pixels), std::move(labels)});
  return {owned->pixels, owned->labels, owned};
}

std::unique_ptr<Dataset> make_memory_dataset(SampleBlock block, Shape sample_shape,
                                             int num_classes) {
  return std::make_unique<MemoryDataset>(std::move(block), std::move(sample_shape), num_classes);
}

std::unique_ptr<Dataset> subset_of(std::shared_ptr<const Dataset> whole,
                                   std::vector<std::uint32_t> indices) {
  return std::make_unique<SampleSubset>(std::move(whole), std::move(indices));
}

void split_validation(DataSplits& data, const std::string& text, std::uint64_t seed) {
  parse_split(text);  // a mistake in the text is reported first
  if (data.validation != nullptr) {
    throw UsageError(
        fmt::format("--split {}: {} has a validation split of {} samples; leave --split out", text,
                    data.name, data.validation->size()));
  }
  HeldOutSamples parts = hold_out(data.train->size(), text, seed);
  const std::shared_ptr<const Dataset> whole = std::move(data.train);
  data.train = subset_of(whole, std::move(parts.train));
  data.validation = subset_of(whole, std::move(parts.validation));
}

void BadSamples::note(const std::string& reason, std::string_view done) {
  {
    const std::lock_guard lock(mutex_);
    if (!noted_.insert(reason).second) return;
    if (first_.empty()) first_ = reason;
  }
  log(LogLevel::kWarning, fmt::format("a bad sample is {}: {}", done, reason));
}

void BadSamples::require_few(std::int64_t count, std::string_view where) const {
  if (count <= limit_) return;
  const std::lock_guard lock(mutex_);
  throw BadSampleError(fmt::format(
      "{} bad samples in {}, more than --skip-bad-records {}; {}", count, where, limit_,
      first_.empty() ? "the warnings of other tasks name them" : "one of them: " + first_));
}

double parse_split(const std::string& text) {
  constexpr std::string_view kPrefix = "val=";
  const double fraction = text.starts_with(kPrefix)
                              ? parse_number<double>(text.substr(kPrefix.size())).value_or(0.0)
                              : 0.0;
  if (fraction > 0.0 && fraction < 1.0) return fraction;
  throw UsageError(fmt::format(
      "--split {}: expected val=FRACTION with a fraction between 0 and 1, such as val=0.1", text));
}

HeldOutSamples hold_out(std::int64_t samples, const std::string& text, std::uint64_t seed) {
  const auto validation = std::llround(parse_split(text) * static_cast<double>(samples));
  if (validation < 1 || validation >= samples ||
      samples > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format(
        "--split {}: {} training samples would give {} for validation; expected 1 to {}", text,
        samples, validation, samples - 1));
  }
  HeldOutSamples parts{.train = random_permutation(static_cast<std::uint32_t>(samples), seed,
                                                   hash_name("validation split")),
                       .validation = {}};
  parts.validation.assign(parts.train.end() - validation, parts.train.end());
  parts.train.resize(parts.train.size() - parts.validation.size());
  // In the order of the data set, which files on a disk are read fastest in.
  std::ranges::sort(parts.train);
  std::ranges::sort(parts.validation);
  return parts;
}

}  // namespace syncopate
