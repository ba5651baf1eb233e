// Draws random variables and samples of a graph from a seed, and provides the measure that compares
// results. Every number is exact in f32, so a backend and the interpreter start from equal numbers.
#pragma once

#include <cstdint>
#include <span>

#include "models/graph/graph.h"
#include "tests/reference/interpreter.h"

namespace syncopate::reference {

// Draws variables: unlike the initial values of a network, biases, scales and running statistics
// are not zero or one, which could hide mistakes.
Variables random_variables(const Graph& graph, std::uint64_t seed);
Samples random_samples(const Graph& graph, std::int64_t count, std::uint64_t seed);
// Returns the first `count` of the samples.
Samples first_samples(const Samples& samples, std::int64_t count);

// Returns |found - expected| / |expected| with Euclidean norms of the whole tensor, or |found| if
// `expected` is zero. Single elements are not compared, because a sum whose terms cancel has a
// large relative error.
double relative_l2(std::span<const double> expected, std::span<const double> found);
double relative_l2(std::span<const double> expected, std::span<const float> found);

}  // namespace syncopate::reference
