// Convolutions with different padding on their sides. On an H200, engines of cuDNN 9.19 compute a
// wrong weight gradient for some of them, although cuDNN lists the engines for the shape. So a
// library only convolves with even padding, and the zeros of the other sides are added to the map
// beforehand.
#pragma once

#include <memory>

#include "models/backend/cuda/group.h"

namespace syncopate::cuda {

// Plans a convolution for the group's stream, as Operations::convolution() does. Throws as it does.
std::unique_ptr<Convolution> plan_convolution(const GroupContext& context, ConvPass pass,
                                              const ConvShape& shape);

}  // namespace syncopate::cuda
