// Implements `syncopate-bench step --retune FILE`, which measures direct and Winograd convolution
// for every convolution shape of the given networks and writes the rows of
// models/backend/cpu/algorithm_table.cc. Training reads this table and never measures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/backend/cpu/algorithm_table.h"
#include "models/graph/graph.h"

namespace syncopate::bench {

// Returns the distinct convolutions that can have a row in the table, which are those with kernel
// 3x3, stride 1, padding 1 and square maps. Their batch size ConvProblem::n is 0.
std::vector<ConvProblem> tunable_convolutions(const std::vector<Graph>& graphs);

// Returns the rows of the table in algorithm_table.cc as C++ text, below a heading line. A row is
// such as "{32, 32, 16, kWinograd, kDirect, kWinograd},". A shape is left out if direct convolution
// is the fastest in every pass.
std::string format_rows(const std::vector<AlgorithmRow>& rows);

// Measures the convolutions of the graphs, prints the measurements and replaces `file` atomically.
// Throws FileError, and UnavailableError on a machine without AVX-512.
void retune(const std::vector<Graph>& graphs, const std::filesystem::path& file);

}  // namespace syncopate::bench
