// CudaModel computes a graph on one GPU. If the strategy keeps the variables on the host, changed
// values are copied to the device bucket by bucket. Gradients are copied to the host bucket by
// bucket while earlier layers still compute. If updates are made on the device, only samples and
// scores are copied. The gradients of each bucket are then summed over the replicas while earlier
// layers still compute their backward pass.
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
  // plan: makes the Operations object for the stream `compute`; the object chooses the algorithms
  // of convolutions and matrix products.
  ReplicaHandles(int device_index, const PlanOperations& plan);

  int device;
  Stream compute;
  Stream copies;  // the stream that copies gradients to the host
  std::unique_ptr<Operations> operations;
};

class CudaModel final : public Model {
 public:
  // Compiles `graph` for the device of `handles`. The objects passed by reference must outlive the
  // model. sums: adds gradients over the replicas on the device; null if there is one replica or if
  // the host sums gradients.
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
  void accumulate() override;
  std::vector<GroupTime> time_groups(const Batch& batch) override;
  Tensor logits() const override;

 private:
  Program& program_for(std::int64_t n);
  // Returns whether the device holds all parameter values when a forward or backward pass begins,
  // so that no bucket of values has to be copied to the device during the pass.
  bool has_values() const;
  // Returns whether the device computes a whole forward or backward pass without the host: the host
  // copies no values to the device and sums no batch-norm statistics during the pass.
  bool runs_without_host() const;
  void prepare(const Batch& batch);
  void refresh_all();
  // Starts the backward pass. is_partial: whether accumulate() calls this function; the gradients
  // then stay on the device. Returns the buckets that the pass completes, in order.
  std::vector<BucketId> start_backward(bool is_partial);
  // Returns the first group of a segment: the backward passes of the groups from this group to
  // `end` - 1 are started together.
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
  std::vector<std::unique_ptr<Program>> programs_;    // by batch size; the full batch is first
  std::vector<std::unique_ptr<BatchUpload>> inputs_;  // in the order of Batch::inputs
  std::optional<BatchUpload> targets_;
  std::optional<BatchUpload> keys_;    // exists if the model trains a network with dropout
  std::shared_ptr<Buffer> sums_;       // a LossSums on the device
  std::shared_ptr<Buffer> host_sums_;  // the copy of sums_ on the host
  StreamEvent forward_ends_;
  // computed_[b] is recorded when the gradients of bucket b are computed.
  std::vector<StreamEvent> computed_;
  // arrived_[b] is recorded when the gradients of bucket b are on the host.
  std::vector<StreamEvent> arrived_;
  // The program of the last forward pass, one of programs_.
  Program* program_ = nullptr;
  Step step_;
};

}  // namespace syncopate::cuda
