// Working copies of convolution weights in the blocked formats that oneDNN computes with. Shared by
// the lanes of a model, refreshed when the arena's version is newer. A parameter may lie in several
// buckets: its copies belong to the last of these that is waited for. A forward pass asks for
// buckets in descending order, so that is the lowest.
#pragma once

#include <oneapi/dnnl/dnnl_types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/graph/graph.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

struct OneDnn;  // onednn.h

class PackedWeights {
 public:
  // All must outlive this object.
  PackedWeights(const OneDnn& onednn, const Graph& graph, const ParameterArena& arena);
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;
  ~PackedWeights();

  // The copy of parameter `index` (a convolution weight) in `format`; the same memory for the same
  // request. Throws DeviceError.
  float* request(int index, const dnnl_memory_desc_t& format);

  // Makes current the stale copies that belong to `bucket` and fall to `lane`; every lane calls it,
  // then all wait for each other. The buckets from this one on hold the values to compute with.
  // Throws DeviceError.
  void refresh(BucketId bucket, int lane, int lanes);
  // No copy that belongs to this bucket is older than any of its parameter's buckets.
  bool current(BucketId bucket) const;
  // After all lanes have refreshed it.
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
