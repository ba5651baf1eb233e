// Lists the libraries that this program uses for computation and input, with the versions at build
// time and at run time. `syncopate info` prints them, and doctor reports differences between two
// machines.
#pragma once

#include <vector>

#include "models/backend/library_version.h"

namespace syncopate {

std::vector<LibraryVersion> library_versions();

}  // namespace syncopate
