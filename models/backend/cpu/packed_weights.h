// Copies of convolution weights in the blocked formats of oneDNN. The lanes of a model share them
// and refresh a copy when the arena has a newer version. A parameter may lie in several buckets;
// the copies of the parameter then belong to the lowest of these buckets, because a forward pass
// waits for buckets in descending order.
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
  // onednn, graph and arena must outlive the PackedWeights.
  PackedWeights(const OneDnn& onednn, const Graph& graph, const ParameterArena& arena);
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;
  ~PackedWeights();

  // Returns the copy of parameter `index` (a convolution weight) in `format`. Equal requests return
  // the same memory. plain: the format of the weight after its groups are joined. Throws
  // DeviceError.
  float* request(int index, const JoinedGroups& joined, const dnnl_memory_desc_t& plain,
                 const dnnl_memory_desc_t& format);

  // Refreshes this lane's part of the outdated weight copies that belong to `bucket`. Every lane
  // calls it and then waits for the other lanes. The arena must hold the current values of this
  // bucket and of all buckets with higher numbers. Throws DeviceError.
  void refresh(BucketId bucket, int lane, int lanes);
  // Returns whether no weight copy that belongs to this bucket is outdated.
  bool current(BucketId bucket) const;
  // Marks the bucket's weight copies as refreshed. Called after all lanes have refreshed them.
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
