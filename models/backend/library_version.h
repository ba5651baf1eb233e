// Versions of the libraries that compute, such as oneDNN.
#pragma once

#include <string>
#include <vector>

namespace syncopate {

struct LibraryVersion {
  std::string name;
  std::string built;   // the version at compile time
  std::string loaded;  // the version loaded at run time
};

// Returns the versions of the libraries of the CPU backend.
std::vector<LibraryVersion> cpu_library_versions();

}  // namespace syncopate
