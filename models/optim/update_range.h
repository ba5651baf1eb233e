// The optimizer over any stretch of the arena: a lane's part, a shard's piece. Cut anyhow and run
// in any order, the pieces give the bits of one update over the whole arena.
#pragma once

#include <cstddef>
#include <span>

#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

// Updates arena elements [range.begin, range.end), parameter by parameter, since weight decay
// applies to some and not to others; the padding between them is left alone. All spans
// [range.end - range.begin] f32, their first element is arena element range.begin. Thread-safe on
// ranges that do not overlap. Throws ShapeError when lengths differ.
void update_range(const Optimizer& optimizer, const UpdateStep& step, const ArenaLayout& layout,
                  Bucket range, std::span<float> values, std::span<const float> gradients,
                  std::span<const std::span<float>> slots);

// No optimizer has more.
inline constexpr std::size_t kMaxSlots = 4;

}  // namespace syncopate
