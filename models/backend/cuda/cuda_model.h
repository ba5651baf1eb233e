// CudaModel computes a graph on one GPU. If strategies keep the variables on the host, changed
// values are copied down bucket by bucket, and gradients are copied up bucket by bucket while
// earlier layers still compute. If updates are made on the device, only samples and scores are
// copied, and the gradients of each bucket are summed over the replicas beside the backward pass of
// earlier layers.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/cuda/batch_upload.h"
#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/program.h"
#include "models/graph/program_plan.h"

namespace syncopate::cuda {

// Streams and operations that the models of one replica share. Used by one thread only.
struct ReplicaHandles {
  // `plan` makes the operations that compute on the stream.
  ReplicaHandles(int device_index, const PlanOperations& plan);

  int device;
  Stream compute;
  Stream copies;  // the stream that copies gradients to the host
  std::unique_ptr<Operations> operations;
};

class CudaModel final : public Model {
 public:
  // All objects given by reference outlive the model. `sums` adds the gradients over the replicas;
  // null if there is one replica.
  CudaModel(ReplicaHandles& handles, const BackendOptions& backend, const Graph& graph,
            const ParameterArena& arena, std::shared_ptr<DeviceVariables> variables,
            BucketSums* sums, const CompileOptions& options);
  CudaModel(const CudaModel&) = delete;
  CudaModel& operator=(const CudaModel&) = delete;
  ~CudaModel() override;

  std::int64_t batch_size() const noexcept override { return options_.batch_size; }
  void start_forward(const Batch& batch, const ValuesHook& before_use) override;
  Scores scores() override;
  void backward(const GradientHook& on_ready) override;
  Tensor logits() const override;

 private:
  Program& program_for(std::int64_t n);
  // Returns whether all values are on the device when a pass begins, so that no bucket has to be
  // fetched during the pass.
  bool has_values() const;
  // Returns whether a pass runs without any exchange of values or statistics in its middle.
  bool asks_nobody() const;
  void prepare(const Batch& batch);
  void refresh_all();
  // Returns the first group of the segment that ends before group `end`. The groups of a segment of
  // the backward pass are started together.
  std::size_t begin_of_segment(std::size_t end) const;
  void start_download(BucketId bucket);
  void wait_for(const StreamEvent& event);

  ReplicaHandles& handles_;
  const BackendOptions backend_;
  const Graph& graph_;
  const CompileOptions options_;
  const std::vector<FusedGroup> groups_;
  const BucketSchedule schedule_;
  const std::shared_ptr<DeviceVariables> variables_;
  BucketSums* const bucket_sums_;
  std::vector<std::unique_ptr<Program>> programs_;  // the program of the full batch comes first
  std::optional<BatchUpload> samples_;
  std::optional<BatchUpload> labels_;
  std::shared_ptr<Buffer> sums_;       // holds LossSums on the device
  std::shared_ptr<Buffer> host_sums_;  // receives on the host the copy of sums_
  StreamEvent forward_ends_;
  std::vector<StreamEvent> computed_;  // by bucket: recorded when its gradient is computed
  std::vector<StreamEvent> arrived_;   // by bucket: recorded when its gradient is on the host
  // The program of the last forward pass, for one number of samples.
  Program* program_ = nullptr;
  Step step_;
};

}  // namespace syncopate::cuda
