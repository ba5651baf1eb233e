// Samples by number: immutable, readable from many threads. Pixels stay u8 until the device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const noexcept = 0;
  virtual const Shape& sample_shape() const noexcept = 0;  // [H, W, C]
  virtual int num_classes() const noexcept = 0;
  // Fills pixels [H * W * C] u8 in H, W, C order; returns the label, in [0, num_classes()).
  // Throws FileError naming file and offset when the sample cannot be read.
  virtual std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const = 0;
};

// What one --data argument stands for.
struct DataSplits {
  std::string name;  // "digits"
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  // Per channel, in units of pixel / 255; what the networks subtract and divide by.
  std::vector<float> mean;
  std::vector<float> stddev;
  bool suits_crop_flip = false;  // natural images: mirror images are the same class
};

struct DataOptions {
  // Where rendered datasets are kept between runs; created when needed.
  std::filesystem::path cache_dir;
  std::uint64_t seed = 1;  // synthetic
  // Called while samples are made that are not in the cache yet, on the thread that opens the data
  // set, with the samples that are done and all samples; may be empty.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = {};
};

struct DatasetRow {
  std::string_view name;     // "mnist"
  std::string_view pattern;  // "mnist:DIR"
  std::string_view help;
  DataSplits (*open)(std::string_view after_the_colon, const DataOptions&);
};
// The table behind --data.
std::span<const DatasetRow> datasets() noexcept;

// Throws UsageError (unknown name, listing the right ones; missing folder or file), FileError (a
// file that is cut short, has a wrong magic number, a label out of range, counts that differ).
DataSplits open_dataset(std::string_view specification, const DataOptions& options);

// Samples [begin, end) of another dataset, numbered from 0.

// The dataset outlives the range.
class DatasetRange final : public Dataset {
 public:
  DatasetRange(const Dataset& whole, std::int64_t begin, std::int64_t end)
      : whole_(whole), begin_(begin), end_(end) {}

  std::int64_t size() const noexcept override { return end_ - begin_; }
  const Shape& sample_shape() const noexcept override { return whole_.sample_shape(); }
  int num_classes() const noexcept override { return whole_.num_classes(); }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    return whole_.read(begin_ + index, pixels);
  }

 private:
  const Dataset& whole_;
  std::int64_t begin_;
  std::int64_t end_;
};

// One function per row of the table behind --data (dataset.cc): what follows the colon in, both
// splits out. They throw what open_dataset promises.

DataSplits open_digits(std::string_view argument, const DataOptions& options);
DataSplits open_mnist(std::string_view folder, const DataOptions& options);
DataSplits open_cifar10(std::string_view folder, const DataOptions& options);
DataSplits open_synthetic(std::string_view argument, const DataOptions& options);

// Throws UsageError, naming the --data form, unless `folder` is one.
void check_is_folder(std::string_view data_name, std::string_view folder);

}  // namespace syncopate
