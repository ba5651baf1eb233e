// Applies an optimizer to a range of the arena, such as the part of a lane or a piece of a shard.
// Ranges that cover the arena once, in any order, give the bits of one update of the whole arena.
#pragma once

#include <cstddef>
#include <span>

#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

// Updates arena elements [range.begin, range.end), one parameter at a time, because weight decay
// applies to some parameters only; padding is not changed. All spans are
// [range.end - range.begin] f32 and start at arena element range.begin. Thread-safe for ranges that
// do not overlap. Throws ShapeError when lengths differ.
void update_range(const Optimizer& optimizer, const UpdateStep& step, const ArenaLayout& layout,
                  Bucket range, std::span<float> values, std::span<const float> gradients,
                  std::span<const std::span<float>> slots);

// The largest number of slots that an optimizer has.
inline constexpr std::size_t kMaxSlots = 4;

}  // namespace syncopate
