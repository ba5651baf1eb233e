#include "bench/compare/chance.h"

#include <algorithm>
#include <vector>

namespace syncopate::bench {

Chance chance_of(const Dataset& test) {
  constexpr std::int64_t kEnough = 10'000;
  const std::int64_t looked_at = std::min(test.size(), kEnough);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(num_elements(test.sample_shape())));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(test.num_classes()));
  for (std::int64_t sample = 0; sample < looked_at; ++sample) {
    ++counts[static_cast<std::size_t>(test.read(sample, pixels))];
  }
  return {.share = static_cast<double>(std::ranges::max(counts)) / static_cast<double>(looked_at),
          .classes = test.num_classes(),
          .test_samples = test.size()};
}

}  // namespace syncopate::bench
