// What callers may ask of a collective: the checks that those with a communication thread share.
#pragma once

#include <cstddef>
#include <span>

#include "strategies/collective/collective.h"

namespace syncopate {

// Each throws ShapeError saying what was expected.
void check_all_reduce(const Tensor& tensor);
void check_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int size);
void check_broadcast(int root, int size);

}  // namespace syncopate
