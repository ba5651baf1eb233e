// `syncopate-bench step --retune FILE`: measures direct against Winograd convolution for every
// shape that the given networks have, and writes the rows of models/backend/cpu/algorithm_table.cc.
// Runs read the table and never measure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/backend/cpu/algorithm_table.h"
#include "models/graph/graph.h"

namespace syncopate::bench {

// The distinct convolutions that the table can hold a row for: 3x3, stride 1, padding 1, square
// maps. n is 0.
std::vector<ConvProblem> tunable_convolutions(const std::vector<Graph>& graphs);

// "{32, 32, 16, kWinograd, kDirect, kWinograd},", with a head line; shapes for which direct wins
// throughout are left out.
std::string format_rows(const std::vector<AlgorithmRow>& rows);

// Prints what it measures; writes FILE by rename. Throws FileError, UnavailableError where the
// machine has no AVX-512.
void retune(const std::vector<Graph>& graphs, const std::filesystem::path& file);

}  // namespace syncopate::bench
