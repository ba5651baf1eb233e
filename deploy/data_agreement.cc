#include "deploy/data_agreement.h"

#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

// First, last and between: 17 samples.
std::uint64_t hash_samples(const Dataset& dataset) {
  constexpr std::int64_t kSpread = 16;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(num_elements(dataset.sample_shape())));
  std::string all;
  for (std::int64_t i = 0; i <= kSpread; ++i) {
    const std::int32_t label = dataset.read((dataset.size() - 1) * i / kSpread, pixels);
    all += std::to_string(label) + ":" +
           std::to_string(hash_name({reinterpret_cast<const char*>(pixels.data()), pixels.size()}));
  }
  return hash_name(all);
}

// As numbers that doubles hold exactly.
std::vector<double> fingerprint(const DataSplits& data) {
  std::vector<double> numbers;
  for (const Dataset* split : {data.train.get(), data.test.get()}) {
    const std::uint64_t hash = hash_samples(*split);
    numbers.insert(numbers.end(),
                   {static_cast<double>(split->size()), static_cast<double>(split->num_classes()),
                    static_cast<double>(hash >> 32), static_cast<double>(hash & 0xffffffffU)});
  }
  return numbers;
}

}  // namespace

void require_same_data(const DataSplits& data, Strategy& strategy) {
  const std::vector<double> mine = fingerprint(data);
  const std::vector<double> all = strategy.gather(mine);
  const std::size_t width = mine.size();
  for (std::size_t task = 1; task * width < all.size(); ++task) {
    for (std::size_t i = 0; i < width; ++i) {
      if (all[task * width + i] == all[i]) continue;
      const auto samples = [&](std::size_t of) {
        return std::to_string(static_cast<std::int64_t>(all[of * width])) + " + " +
               std::to_string(static_cast<std::int64_t>(all[of * width + width / 2]));
      };
      throw UsageError("--data: rank " + std::to_string(task) + " found other samples (" +
                       samples(task) + ") than rank 0 (" + samples(0) +
                       "); give every task the same data");
    }
  }
}

}  // namespace syncopate
