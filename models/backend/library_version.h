// A library that computes, as it was built against and as it was found when the program started.
#pragma once

#include <string>

namespace syncopate {

struct LibraryVersion {
  std::string name;
  std::string built;
  std::string loaded;
};

}  // namespace syncopate
