// Plans convolutions that have different padding at the top and the bottom, or at the left and the
// right. On an H200, engines of cuDNN 9.19 compute a wrong weight gradient for some of these
// convolutions, although cuDNN lists the engines for the shape. Therefore the library gets only
// convolutions with equal padding on opposite sides, and a kernel adds the remaining zeros to the
// map.
#pragma once

#include <memory>

#include "models/backend/cuda/group.h"

namespace syncopate::cuda {

// Plans a convolution for the group's stream. Returns and throws as Operations::convolution() does.
std::unique_ptr<Convolution> plan_convolution(const GroupContext& context, ConvPass pass,
                                              const ConvShape& shape);

}  // namespace syncopate::cuda
