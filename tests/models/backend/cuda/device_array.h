// A DeviceArray is memory as kernels get it: aligned to 256 bytes like the device's blocks (or off
// by some elements) and enclosed by guards. Guards and elements start as bytes 0xff, NaN in every
// floating-point type, so that a missing write or a read beyond the end shows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/backend/cuda/kernels/pack.h"
#include "tests/reference/operations.h"

namespace syncopate::cuda {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t count, std::int64_t offset = 0)
      : count_(static_cast<std::size_t>(count)),
        bytes_(kGuardBytes + offset_bytes(offset) + count_ * sizeof(T) + kGuardBytes + kAlignment) {
    std::fill(bytes_.begin(), bytes_.end(), kUnwritten);
    void* start = bytes_.data() + kGuardBytes;
    std::size_t space = bytes_.size() - kGuardBytes;
    start = std::align(kAlignment, 1, start, space);
    data_ = reinterpret_cast<T*>(static_cast<unsigned char*>(start) + offset_bytes(offset));
  }
  // Makes an array of the values, rounded to T.
  explicit DeviceArray(const reference::Values& values, std::int64_t offset = 0)
      : DeviceArray(static_cast<std::int64_t>(values.size()), offset) {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = rounded(values[i]);
  }
  ~DeviceArray() {
    const auto* const first = reinterpret_cast<const unsigned char*>(data_);
    const auto* const last = first + count_ * sizeof(T);
    const auto unwritten = [](unsigned char byte) { return byte == kUnwritten; };
    EXPECT_TRUE(std::all_of(static_cast<const unsigned char*>(bytes_.data()), first, unwritten))
        << "a kernel wrote before the first element";
    EXPECT_TRUE(std::all_of(last, static_cast<const unsigned char*>(bytes_.data()) + bytes_.size(),
                            unwritten))
        << "a kernel wrote behind the last element";
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  std::int64_t size() const { return static_cast<std::int64_t>(count_); }
  reference::Values values() const {
    reference::Values values;
    for (std::size_t i = 0; i < count_; ++i) values.push_back(as_double(data_[i]));
    return values;
  }

 private:
  static constexpr unsigned char kUnwritten = 0xff;
  static constexpr std::size_t kGuardBytes = 256;
  static constexpr std::size_t kAlignment = 256;

  static std::size_t offset_bytes(std::int64_t offset) {
    return static_cast<std::size_t>(offset) * sizeof(T);
  }
  static T rounded(double value) {
    if constexpr (std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>) {
      return from_float<T>(static_cast<float>(value));
    } else {
      return static_cast<T>(value);
    }
  }
  static double as_double(T value) {
    if constexpr (std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>) {
      return static_cast<double>(to_float(value));
    } else {
      return static_cast<double>(value);
    }
  }

  std::size_t count_;
  std::vector<unsigned char> bytes_;
  T* data_ = nullptr;
};

}  // namespace syncopate::cuda
