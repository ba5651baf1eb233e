// Copies of convolution weights in the blocked formats of oneDNN. The lanes of a model share the
// copies and refresh a copy when the arena has newer values. If a parameter lies in several
// buckets, its copies belong to the bucket with the lowest number, because a forward pass waits for
// buckets in descending order.
#pragma once

#include <oneapi/dnnl/dnnl_types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cpu/joined_groups.h"
#include "models/graph/graph.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

struct OneDnn;  // defined in onednn.h

class PackedWeights {
 public:
  // Makes a PackedWeights without copies; request() adds copies. onednn, graph and arena must
  // outlive the PackedWeights.
  PackedWeights(const OneDnn& onednn, const Graph& graph, const ParameterArena& arena);
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;
  ~PackedWeights();

  // Returns the memory of the copy of parameter `index`, a convolution weight, in `format`. Calls
  // with equal `index` and `format` return the same memory. joined: how groups of the convolution
  // are joined. plain: the format of the weight in the arena or, if groups are joined, of the
  // joined weight. Throws DeviceError.
  float* request(int index, const JoinedGroups& joined, const dnnl_memory_desc_t& plain,
                 const dnnl_memory_desc_t& format);

  // Refreshes this lane's part of the outdated copies that belong to `bucket`. Every lane calls
  // refresh() and then waits for the other lanes. The arena must hold the current values of this
  // bucket and of all buckets with higher numbers. Throws DeviceError.
  void refresh(BucketId bucket, int lane, int lanes);
  // Returns whether all copies that belong to this bucket are current.
  bool current(BucketId bucket) const;
  // Marks the copies that belong to this bucket as current. Called after all lanes have refreshed
  // them.
  void mark_current(BucketId bucket);

 private:
  struct Copy;

  bool current(const Copy& copy) const;

  const OneDnn& onednn_;
  const Graph& graph_;
  const ParameterArena& arena_;
  std::vector<std::unique_ptr<Copy>> copies_;
};

}  // namespace syncopate
