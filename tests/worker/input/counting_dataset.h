// Datasets whose samples identify themselves by label and pixels.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "models/backend/model.h"
#include "models/base/errors.h"
#include "worker/input/dataset.h"

namespace syncopate {

using Labels = std::vector<std::int32_t>;

inline Labels labels_of(const Batch& batch) {
  const auto labels = batch.label.i32();
  return {labels.begin(), labels.end()};
}

inline std::vector<std::uint8_t> pixels_of(const Batch& batch) {
  const auto pixels = batch.x.u8();
  return {pixels.begin(), pixels.end()};
}

// Sample i of a CountingDataset has the label i and pixels i, i + 1, ... (modulo 256); shape [2, 3,
// 1] unless given. Thread-safe.
class CountingDataset : public Dataset {
 public:
  explicit CountingDataset(std::int64_t size, Shape shape = {2, 3, 1})
      : size_(size), shape_(std::move(shape)) {}

  std::int64_t size() const noexcept override { return size_; }
  const Shape& sample_shape() const noexcept override { return shape_; }
  int num_classes() const noexcept override { return static_cast<int>(size_); }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(index) + i);
    }
    {
      const std::lock_guard lock(mutex_);
      ++reads_;
    }
    read_one_.notify_all();
    return static_cast<std::int32_t>(index);
  }

  std::int64_t reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }
  // Waits for `count` reads; returns false when there are still fewer reads after ten seconds.
  bool wait_for_reads(std::int64_t count) const {
    std::unique_lock lock(mutex_);
    return read_one_.wait_for(lock, std::chrono::seconds(10), [&] { return reads_ >= count; });
  }

 private:
  std::int64_t size_;
  Shape shape_;
  mutable std::mutex mutex_;
  mutable std::condition_variable read_one_;
  mutable std::int64_t reads_ = 0;  // guarded by mutex_
};

// A BrokenDataset has one sample that cannot be read.
class BrokenDataset final : public CountingDataset {
 public:
  BrokenDataset(std::int64_t size, std::int64_t broken) : CountingDataset(size), broken_(broken) {}

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    if (index == broken_) throw FileError("sample " + std::to_string(index) + " is broken");
    return CountingDataset::read(index, pixels);
  }

 private:
  std::int64_t broken_;
};

}  // namespace syncopate
