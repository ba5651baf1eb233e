// Working copies of convolution weights in the blocked formats that oneDNN computes with. Shared by
// the lanes of a model, refreshed when the arena's version is newer.
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

  // Makes current the copies of one bucket that fall to `lane`; every lane calls it, then all wait
  // for each other. Throws DeviceError.
  void refresh(BucketId bucket, int lane, int lanes);
  // No copy of this bucket is stale.
  bool current(BucketId bucket) const;
  // After all lanes have refreshed it.
  void mark_current(BucketId bucket);

 private:
  struct Copy;

  const OneDnn& onednn_;
  const Graph& graph_;
  const ParameterArena& arena_;
  std::vector<std::unique_ptr<Copy>> copies_;
  std::vector<std::uint64_t> versions_;  // of each bucket
};

}  // namespace syncopate
