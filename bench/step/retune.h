// Implements `syncopate-bench step --retune FILE`: measures direct against Winograd convolution for
// every shape of the given networks and writes the rows of models/backend/cpu/algorithm_table.cc.
// Training reads the table and never measures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/backend/cpu/algorithm_table.h"
#include "models/graph/graph.h"

namespace syncopate::bench {

// Returns the distinct convolutions that can have a row in the table: kernel 3x3, stride 1, padding
// 1, square maps. Their batch size n is 0.
std::vector<ConvProblem> tunable_convolutions(const std::vector<Graph>& graphs);

// Returns the rows of the table as C++ text below a heading line, such as "{32, 32, 16, kWinograd,
// kDirect, kWinograd},". A shape is left out if direct convolution wins in every pass.
std::string format_rows(const std::vector<AlgorithmRow>& rows);

// Prints the measurements of convolutions and replaces FILE by a rename. Throws FileError, and
// UnavailableError on a machine without AVX-512.
void retune(const std::vector<Graph>& graphs, const std::filesystem::path& file);

}  // namespace syncopate::bench
