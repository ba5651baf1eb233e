// Describes one pass of a convolution as a graph of operations of cuDNN. cuDNN's engines compute
// such graphs.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/backend/cuda/cudnn/descriptor.h"
#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// The name of a tensor in a graph and the address of its memory. cuDNN needs both to run the graph.
struct NamedArray {
  std::int64_t name;
  void* data;
};
// Returns the name and the address of each array that the graph of this pass reads or writes.
std::vector<NamedArray> named_arrays(ConvPass pass, const ConvArrays& arrays);

// Owns the graph of a convolution pass and all descriptors that it refers to. Used by one thread
// only. Throws DeviceError.
class ConvolutionGraph {
 public:
  // Makes the graph. handle: the cuDNN handle of the device for which the graph is planned; null if
  // this device is only described (PlanTarget).
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
