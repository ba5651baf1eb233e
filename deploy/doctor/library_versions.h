// The libraries this program computes and reads with, as built and as loaded: for `syncopate info`
// and for reports of a difference between two machines.
#pragma once

#include <vector>

#include "models/backend/library_version.h"

namespace syncopate {

std::vector<LibraryVersion> library_versions();

}  // namespace syncopate
