// Datasets whose samples identify themselves by label and pixels.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "models/backend/model.h"
#include "models/base/errors.h"
#include "worker/input/dataset.h"

namespace syncopate {

using Labels = std::vector<std::int32_t>;

inline Labels labels_of(const Batch& batch) {
  const auto labels = batch.target.i32();
  return {labels.begin(), labels.end()};
}

inline std::vector<std::uint64_t> keys_of(const Batch& batch) {
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(batch.num_samples));
  std::memcpy(keys.data(), batch.keys.bytes().data(), batch.keys.bytes().size());
  return keys;
}

inline std::vector<std::uint8_t> pixels_of(const Batch& batch) {
  const auto pixels = batch.inputs[0].u8();
  return {pixels.begin(), pixels.end()};
}

// Sample i of a CountingDataset has the label i and pixels i, i + 1, ... (modulo 256); shape [2, 3,
// 1] unless given. Thread-safe.
class CountingDataset : public Dataset {
 public:
  explicit CountingDataset(std::int64_t size, Shape shape = {2, 3, 1})
      : size_(size), spec_(classified_samples(std::move(shape), static_cast<int>(size))) {}

  std::int64_t size() const noexcept override { return size_; }
  const SampleSpec& spec() const noexcept override { return spec_; }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    const std::span<std::byte> pixels = sample.inputs[0];
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<std::byte>(static_cast<std::size_t>(index) + i);
    }
    apply_draw(draw, spec_.inputs[0], pixels, pixels);
    const std::int32_t label = this->label(index);
    std::memcpy(sample.target.data(), &label, sizeof label);
    {
      const std::lock_guard lock(mutex_);
      ++reads_;
    }
    read_one_.notify_all();
  }
  std::int32_t label(std::int64_t index) const override { return static_cast<std::int32_t>(index); }
  std::uint64_t fingerprint(std::int64_t index) const override {
    return static_cast<std::uint64_t>(index);
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
  SampleSpec spec_;
  mutable std::mutex mutex_;
  mutable std::condition_variable read_one_;
  mutable std::int64_t reads_ = 0;  // guarded by mutex_
};

// A BrokenDataset has one sample that cannot be read.
class BrokenDataset final : public CountingDataset {
 public:
  BrokenDataset(std::int64_t size, std::int64_t broken) : CountingDataset(size), broken_(broken) {}

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    if (index == broken_) throw FileError("sample " + std::to_string(index) + " is broken");
    CountingDataset::read(index, draw, sample);
  }

 private:
  std::int64_t broken_;
};

}  // namespace syncopate
