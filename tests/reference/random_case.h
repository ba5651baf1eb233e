// Values and samples for a graph, drawn from a seed, and the measure by which results are compared.
// Every value is exact in f32, so that a backend starts from the same numbers as the interpreter.
#pragma once

#include <cstdint>
#include <span>

#include "models/graph/graph.h"
#include "tests/reference/interpreter.h"

namespace syncopate::reference {

// Unlike a network's first values, nothing is zero or one: biases, scales and running statistics
// would hide mistakes otherwise.
Variables random_variables(const Graph& graph, std::uint64_t seed);
Samples random_samples(const Graph& graph, std::int64_t count, std::uint64_t seed);
// The first `count` of them.
Samples first_samples(const Samples& samples, std::int64_t count);

// |found - expected| / |expected| by Euclidean norms over the whole tensor; |found| where expected
// is zero. Not element by element: a sum of terms that cancel has no relative accuracy of its own.
double relative_l2(std::span<const double> expected, std::span<const double> found);
double relative_l2(std::span<const double> expected, std::span<const float> found);

}  // namespace syncopate::reference
