#include "worker/input/array/value_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr std::int64_t kLeastSamples = 64;  // of large samples

// Calls `use` with the bytes of samples of a data set, evenly spaced.
void for_each_sample(const Dataset& dataset,
                     const std::function<void(std::span<const std::byte>)>& use) {
  const SampleSpec& spec = dataset.spec();
  std::vector<std::byte> bytes(spec.inputs[0].size_bytes());
  std::vector<std::byte> target(spec.target.size_bytes());
  const std::array inputs = {std::span(bytes)};
  const std::int64_t count =
      std::clamp(static_cast<std::int64_t>(kMostBytes / std::max<std::size_t>(1, bytes.size())),
                 std::min(kLeastSamples, dataset.size()), dataset.size());
  for (std::int64_t i = 0; i < count; ++i) {
    dataset.read(i * dataset.size() / count, {}, {inputs, target});
    use(bytes);
  }
}

// Calls `add` with the channel and the value of each element of a sample.
template <typename T, typename Add>
void for_each_value(std::span<const std::byte> bytes, std::size_t channels, const Add& add) {
  for (std::size_t at = 0; at < bytes.size();) {
    for (std::size_t c = 0; c < channels; ++c, at += sizeof(T)) {
      T value{};
      std::memcpy(&value, bytes.data() + at, sizeof(T));
      add(c, static_cast<double>(value));
    }
  }
}

template <typename T>
void set_statistics(DataSplits& splits, std::size_t channels, double unit) {
  const Dataset& dataset = *splits.train;
  std::vector<double> mean(channels);
  std::vector<double> variance(channels);
  double count = 0.0;  // of values of a channel
  for_each_sample(dataset, [&](std::span<const std::byte> bytes) {
    for_each_value<T>(bytes, channels, [&](std::size_t c, double value) { mean[c] += value; });
    count += static_cast<double>(bytes.size() / sizeof(T) / channels);
  });
  for (double& sum : mean) sum /= count;
  // A second pass, because the difference of sums of squares loses all digits if the mean of a
  // feature is far from 0.
  for_each_sample(dataset, [&](std::span<const std::byte> bytes) {
    for_each_value<T>(bytes, channels, [&](std::size_t c, double value) {
      variance[c] += (value - mean[c]) * (value - mean[c]);
    });
  });
  for (std::size_t c = 0; c < channels; ++c) {
    const auto deviation = static_cast<float>(std::sqrt(variance[c] / count) / unit);
    splits.mean.push_back(static_cast<float>(mean[c] / unit));
    splits.stddev.push_back(deviation > 0.0F ? deviation : 1.0F);
  }
}

}  // namespace

void set_value_statistics(DataSplits& splits) {
  const TensorSpec& input = splits.train->spec().inputs[0];
  const auto channels = static_cast<std::size_t>(input.shape.size() == 3 ? input.shape[2] : 1);
  switch (input.dtype) {
    case DType::kU8:
      return set_statistics<std::uint8_t>(splits, channels, 255.0);
    case DType::kU16:
      return set_statistics<std::uint16_t>(splits, channels, 65535.0);
    case DType::kF32:
      splits.mean.assign(channels, 0.0F);
      splits.stddev.assign(channels, 1.0F);
      return;
    default:
      break;
  }
  throw InternalError("statistics of samples that are neither u8, u16 nor f32");
}

void set_feature_statistics(DataSplits& splits) {
  set_statistics<float>(splits, static_cast<std::size_t>(splits.train->spec().inputs[0].shape[0]),
                        1.0);
}

std::optional<BadValue> find_bad_value(const TensorSpec& spec, std::span<const std::byte> sample) {
  if (spec.dtype != DType::kF32) return std::nullopt;
  for (std::size_t at = 0; at < sample.size(); at += sizeof(float)) {
    float value = 0.0F;
    std::memcpy(&value, sample.data() + at, sizeof value);
    if (!std::isfinite(value)) return BadValue{at / sizeof(float), value};
  }
  return std::nullopt;
}

}  // namespace syncopate
