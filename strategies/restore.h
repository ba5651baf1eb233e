// From one snapshot into another, whole or not at all.
#pragma once

#include "strategies/strategy.h"

namespace syncopate {

// Throws ShapeError unless `saved` has the blocks of `live`.
void check_snapshot(const Snapshot& saved, const Snapshot& live);
// After check_snapshot.
void copy_snapshot(const Snapshot& saved, const Snapshot& live);

}  // namespace syncopate
