// The floors of the house, and what a source file may say at its top: pure functions over a file's
// path and text, so that the rules themselves can be tested on planted mistakes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate::architecture {

// One broken rule, ready to print: "models/base/log.cc:3: includes worker/train/metrics.h, which is
// above it".
using Violations = std::vector<std::string>;

// May a file under `from` include one under `to`? Paths from the root: "models/graph/graph.cc".
// Floors, an include only points down: tests -> bench -> deploy -> worker -> strategies -> ps ->
// models, and inside models: zoo, backend -> optim, graph -> tensor -> base, where neighbours do
// not know each other.
bool may_include(std::string_view from, std::string_view to);

// Every rule on one source file (.h, .cc):
//  - a quoted include is a path from the root and points down;
//  - CLI11, spdlog, fmt and nlohmann-json are included by .cc files only (forward declarations
//  aside);
//  - no conditional compilation on a library: CMake chooses between mpi.cc and mpi_absent.cc;
//  - a header has `#pragma once`, no `using namespace`, and defines no macro but thread
//  annotations.
Violations check_source(std::string_view path, std::string_view text);

// The root holds the floors, its three files, dot-files, and nothing else. `ignored`: what git
// ignores.
Violations check_root(const std::vector<std::string>& entries,
                      const std::vector<std::string>& ignored);

}  // namespace syncopate::architecture
