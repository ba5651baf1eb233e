// Which libraries the CPU backend was built against and which ones it found when the program
// started.
#pragma once

#include <vector>

#include "models/backend/library_version.h"

namespace syncopate {

std::vector<LibraryVersion> cpu_library_versions();

}  // namespace syncopate
