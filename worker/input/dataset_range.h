// Samples [begin, end) of another dataset, numbered from 0.
#pragma once

#include "worker/input/dataset.h"

namespace syncopate {

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

}  // namespace syncopate
