// Implements the functions of graph.h for the initial values of parameters and for the conversion
// between their order in memory and their order in files.
#include <cmath>
#include <functional>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/graph/graph.h"

namespace syncopate {
namespace {

// Calls visit(index in memory, index in the file) for every element of a parameter.
void for_each_index(const Parameter& parameter,
                    const std::function<void(std::int64_t, std::int64_t)>& visit) {
  const auto [k_count, c_count, r_count, s_count] = parameter.file_axes;
  if (k_count == 0) {
    for (std::int64_t i = 0; i < num_elements(parameter.shape); ++i) visit(i, i);
    return;
  }
  std::int64_t memory_index = 0;  // in the order K, R, S, C
  for (std::int64_t k = 0; k < k_count; ++k) {
    for (std::int64_t r = 0; r < r_count; ++r) {
      for (std::int64_t s = 0; s < s_count; ++s) {
        for (std::int64_t c = 0; c < c_count; ++c) {
          visit(memory_index++, ((k * c_count + c) * r_count + r) * s_count + s);
        }
      }
    }
  }
}

// Returns the limit a of a parameter's initial values, which are uniformly distributed on [-a, a].
// The variance is a * a / 3.
float uniform_limit(const Parameter& parameter) {
  const double fans = parameter.init == Init::kHeUniform
                          ? static_cast<double>(parameter.fan_in)
                          : static_cast<double>(parameter.fan_in + parameter.fan_out);
  return static_cast<float>(std::sqrt(6.0 / fans));
}

}  // namespace

void fill_initial_value(const Parameter& parameter, std::uint64_t seed, const Tensor& value) {
  const std::span<float> values = value.f32();
  check(value.shape() == parameter.shape, "the value has the parameter's shape");
  if (parameter.init == Init::kZeros || parameter.init == Init::kOnes) {
    std::fill(values.begin(), values.end(), parameter.init == Init::kOnes ? 1.0F : 0.0F);
    return;
  }
  const RandomStream random(seed, hash_name(parameter.name));
  const float limit = uniform_limit(parameter);
  for_each_index(parameter, [&](std::int64_t memory_index, std::int64_t file_index) {
    const float uniform = random.uniform(static_cast<std::uint64_t>(file_index));
    values[static_cast<std::size_t>(memory_index)] = (2.0F * uniform - 1.0F) * limit;
  });
}

void fill_initial_values(const Graph& graph, std::uint64_t seed, ParameterArena& arena) {
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    fill_initial_value(graph.parameters[i], seed, arena.value(i));
  }
  arena.bump_all_versions();
}

void fill_initial_state(const Graph& graph, StateBlock& state) {
  for (std::size_t i = 0; i < graph.state.size(); ++i) {
    const Tensor window = state.value(i);
    const std::span<float> values = window.f32();
    std::fill(values.begin(), values.end(), graph.state[i].initial);
  }
}

void memory_to_file_order(const Parameter& parameter, std::span<const float> memory,
                          std::span<float> file) {
  for_each_index(parameter, [&](std::int64_t memory_index, std::int64_t file_index) {
    file[static_cast<std::size_t>(file_index)] = memory[static_cast<std::size_t>(memory_index)];
  });
}

void file_to_memory_order(const Parameter& parameter, std::span<const float> file,
                          std::span<float> memory) {
  for_each_index(parameter, [&](std::int64_t memory_index, std::int64_t file_index) {
    memory[static_cast<std::size_t>(memory_index)] = file[static_cast<std::size_t>(file_index)];
  });
}

}  // namespace syncopate
