#include "bench/compare/chance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace syncopate::bench {
namespace {

// Counts the pixels of each class in the label maps of at most 200 samples.
std::vector<std::int64_t> count_pixels(const Dataset& test) {
  constexpr std::int64_t kEnough = 200;
  const SampleSpec& spec = test.spec();
  std::vector<std::vector<std::byte>> memory;
  for (const TensorSpec& input : spec.inputs) memory.emplace_back(input.size_bytes());
  const std::vector<std::span<std::byte>> inputs(memory.begin(), memory.end());
  std::vector<std::int32_t> map(spec.target.size_bytes() / sizeof(std::int32_t));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(spec.num_classes));
  for (std::int64_t sample = 0; sample < std::min(test.size(), kEnough); ++sample) {
    test.read(sample, {}, {inputs, std::as_writable_bytes(std::span(map))});
    for (const std::int32_t label : map) {
      if (label < spec.num_classes) ++counts[static_cast<std::size_t>(label)];
    }
  }
  return counts;
}

// Counts the samples of each class among at most 10,000.
std::vector<std::int64_t> count_samples(const Dataset& test) {
  constexpr std::int64_t kEnough = 10'000;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(test.spec().num_classes));
  for (std::int64_t sample = 0; sample < std::min(test.size(), kEnough); ++sample) {
    ++counts[static_cast<std::size_t>(test.label(sample))];
  }
  return counts;
}

std::vector<std::int64_t> count_classes(const Dataset& test) {
  return test.spec().target.shape.empty() ? count_samples(test) : count_pixels(test);
}

}  // namespace

double loss_of_chance(const DataSplits& data) {
  const std::vector<std::int64_t> counts = count_classes(*data.test);
  const auto all =
      static_cast<double>(std::max<std::int64_t>(std::reduce(counts.begin(), counts.end()), 1));
  double loss = 0.0;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / all;
    if (count > 0) loss -= share * std::log(share);
  }
  return loss;
}

Chance chance_of(const DataSplits& data) {
  const Dataset& test = *data.test;
  const std::vector<std::int64_t> counts = count_classes(test);
  const std::int64_t all = std::max<std::int64_t>(std::reduce(counts.begin(), counts.end()), 1);
  const int classes = test.spec().num_classes;
  return {.share = static_cast<double>(std::ranges::max(counts)) / static_cast<double>(all),
          .classes = classes,
          .test_samples = test.size(),
          .validation_samples = data.validation != nullptr ? data.validation->size() : 0};
}

}  // namespace syncopate::bench
