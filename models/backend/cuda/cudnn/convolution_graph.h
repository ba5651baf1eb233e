// Describes one pass of a convolution as cuDNN's graph of operations, which engines compute.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/backend/cuda/cudnn/descriptor.h"
#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// The name of a tensor in the graph and the address of its memory, as cuDNN takes them to run the
// graph.
struct NamedArray {
  std::int64_t name;
  void* data;
};
// Returns name and address of each array that cuDNN's graph of a convolution pass reads or writes.
std::vector<NamedArray> named_arrays(ConvPass pass, const ConvArrays& arrays);

// Owns cuDNN's graph and all descriptors it refers to. Used by one thread only. Throws DeviceError.
class ConvolutionGraph {
 public:
  // handle is the cuDNN handle of the device that the graph is planned for; it is null if that
  // device is only described.
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
