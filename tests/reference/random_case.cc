#include "tests/reference/random_case.h"

#include <cmath>
#include <type_traits>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate::reference {
namespace {

// Returns values that are uniform in [centre - width, centre + width].
Values draw(std::int64_t count, const RandomStream& random, float centre, float width) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = centre + width * (2.0F * random.uniform(i) - 1.0F);
  }
  return values;
}

}  // namespace

Variables random_variables(const Graph& graph, std::uint64_t seed) {
  Variables variables;
  for (const Parameter& parameter : graph.parameters) {
    const RandomStream random(seed, hash_name(parameter.name));
    const bool is_weight = parameter.init != Init::kZeros && parameter.init != Init::kOnes;
    const float centre = parameter.init == Init::kOnes ? 1.0F : 0.0F;
    const float width = is_weight ? std::sqrt(6.0F / static_cast<float>(parameter.fan_in)) : 0.5F;
    variables.parameters.push_back(draw(num_elements(parameter.shape), random, centre, width));
  }
  for (const State& state : graph.state) {
    const RandomStream random(seed, hash_name(state.name));
    variables.state.push_back(draw(num_elements(state.shape), random, state.initial, 0.5F));
  }
  return variables;
}

Samples random_samples(const Graph& graph, std::int64_t count, std::uint64_t seed) {
  const InputOp& input = std::get<InputOp>(graph.first_input().operation);
  const RandomStream pixels(seed, hash_name("pixels"));
  const RandomStream labels(seed, hash_name("labels"));
  Samples samples;
  samples.x = draw(count * num_elements(graph.input_shape()), pixels, 0.0F, 1.0F);
  if (input.dtype != DType::kF32) {
    const std::uint32_t values = input.dtype == DType::kU8 ? 256 : 65536;
    for (std::size_t i = 0; i < samples.x.size(); ++i) samples.x[i] = pixels.below(i, values);
  }
  samples.targets_per_sample = num_elements(graph.target_shape());
  const bool has_labels = has_classes(graph.loss().kind);
  if (!has_labels) {
    const RandomStream numbers(seed, hash_name("numbers"));
    samples.numbers = draw(count * samples.targets_per_sample, numbers, 0.5F, 0.5F);
  }
  // One pixel of a label map in eight does not count.
  for (std::int64_t n = 0; has_labels && n < count * samples.targets_per_sample; ++n) {
    if (!graph.target_shape().empty() && n % 8 == 3) {
      samples.labels.push_back(kUncounted);
      continue;
    }
    const auto classes = static_cast<std::uint32_t>(graph.num_classes());
    samples.labels.push_back(
        static_cast<std::int32_t>(labels.below(static_cast<std::uint64_t>(n), classes)));
  }
  for (std::int64_t n = 0; n < count; ++n) {
    const auto words = RandomStream(seed, hash_name("keys")).block(static_cast<std::uint64_t>(n));
    samples.keys.push_back(std::uint64_t{words[0]} << 32 | words[1]);
  }
  return samples;
}

Samples first_samples(const Samples& samples, std::int64_t count) {
  const auto first = [&](const auto& values) {
    const auto per_sample = static_cast<std::int64_t>(values.size()) / samples.size();
    return std::decay_t<decltype(values)>(values.begin(), values.begin() + count * per_sample);
  };
  return {first(samples.x), first(samples.labels), first(samples.numbers),
          samples.targets_per_sample, first(samples.keys)};
}

double relative_l2(std::span<const double> expected, std::span<const double> found) {
  check(expected.size() == found.size(), "tensors of one size are compared");
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(norm > 0.0 ? difference / norm : difference);
}

double relative_l2(std::span<const double> expected, std::span<const float> found) {
  return relative_l2(expected, Values(found.begin(), found.end()));
}

}  // namespace syncopate::reference
