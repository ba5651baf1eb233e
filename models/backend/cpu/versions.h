// Which libraries the CPU backend was built against and which ones it found when the program
// started.
#pragma once

#include <string>
#include <vector>

namespace syncopate {

struct LibraryVersion {
  std::string name;
  std::string built;
  std::string loaded;
};

std::vector<LibraryVersion> cpu_library_versions();

}  // namespace syncopate
