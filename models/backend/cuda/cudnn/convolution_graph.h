// One pass of a convolution as cuDNN's graph of operations: what its engines are asked to compute.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/backend/cuda/cudnn/descriptor.h"
#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// A tensor's name for whoever runs the graph, and where it lies.
struct NamedArray {
  std::int64_t name;
  void* data;
};
// Those of the pass's graph.
std::vector<NamedArray> named_arrays(ConvPass pass, const ConvArrays& arrays);

// With all that it refers to. One thread only; throws DeviceError.
class ConvolutionGraph {
 public:
  // handle: of the device that it is for; null where that is not here.
  ConvolutionGraph(ConvPass pass, const ConvShape& shape, cudnnHandle_t handle);

  const Descriptor& descriptor() const noexcept { return graph_; }

 private:
  void add_convolution(ConvPass pass);
  void add_sums(std::int64_t channels);

  Descriptor x_, w_, y_;
  Descriptor window_;
  std::optional<Descriptor> sums_, squares_;
  std::vector<Descriptor> operations_;
  Descriptor graph_;
};

}  // namespace syncopate::cuda
