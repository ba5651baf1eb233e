// Defines the layers of the code and the rules for includes and directives of a source file. The
// rules are pure functions over a file's path and text, so that they can be tested with mistakes
// made on purpose.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate::architecture {

// Violations lists the broken rules as printable lines, such as "models/base/log.cc:3: includes
// worker/train/metrics.h, which is above it".
using Violations = std::vector<std::string>;

// Returns whether a file under `from` may include one under `to`. Paths begin at the root, as in
// "models/graph/graph.cc". An include points only down in the order tests -> bench -> deploy ->
// worker -> strategies -> ps -> models, and inside models: zoo, backend -> optim, graph -> tensor
// -> base. Folders of one height do not include each other.
bool may_include(std::string_view from, std::string_view to);

// Checks one source file (.h, .cc) against these rules:
// - a quoted include is a path from the root and points down;
// - CLI11, spdlog, fmt and nlohmann-json are included by .cc files only (forward declarations
//   aside);
// - no conditional compilation depends on a library: CMake chooses between mpi.cc and
//   mpi_absent.cc;
// - a header has `#pragma once`, no `using namespace`, and defines no macro but thread annotations.
Violations check_source(std::string_view path, std::string_view text);

// Checks that the root holds only the layers, its three files and dot-files. `ignored` lists the
// names that git ignores.
Violations check_root(const std::vector<std::string>& entries,
                      const std::vector<std::string>& ignored);

}  // namespace syncopate::architecture
