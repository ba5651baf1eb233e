// A graph on one GPU whose variables strategies keep on the host: values go down bucket by bucket
// when they have changed, gradients come up bucket by bucket while earlier layers still compute.
#pragma once

#include <memory>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/bucket_schedule.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/program.h"

namespace syncopate::cuda {

// What the models of one replica share. One thread only.
struct ReplicaHandles {
  // plan: makes what computes on the stream.
  ReplicaHandles(int device_index, const PlanOperations& plan);

  int device;
  Stream compute;
  Stream copies;  // gradients on their way up
  std::unique_ptr<Operations> operations;
};

class CudaModel final : public Model {
 public:
  // All references outlive the model.
  CudaModel(ReplicaHandles& handles, const BackendOptions& backend, const Graph& graph,
            ParameterArena& arena, StateBlock& state, const CompileOptions& options);
  CudaModel(const CudaModel&) = delete;
  CudaModel& operator=(const CudaModel&) = delete;
  ~CudaModel() override;

  std::int64_t batch_size() const noexcept override { return options_.batch_size; }
  Scores forward(const Batch& batch, const ValuesHook& before_use) override;
  void backward(const GradientHook& on_ready) override;
  Tensor logits() const override;

 private:
  Program& program_for(std::int64_t n);
  void upload(const Batch& batch);

  ReplicaHandles& handles_;
  const BackendOptions backend_;
  const Graph& graph_;
  const CompileOptions options_;
  const std::vector<FusedGroup> groups_;
  const BucketSchedule schedule_;
  DeviceVariables variables_;
  std::vector<std::unique_ptr<Program>> programs_;  // the full batch first
  std::shared_ptr<Buffer> samples_;                 // a batch, on the device
  std::shared_ptr<Buffer> labels_;
  std::shared_ptr<Buffer> sums_;       // LossSums, on the device
  std::shared_ptr<Buffer> host_sums_;  // and where they arrive
  StreamEvent forward_ends_;
  std::vector<StreamEvent> computed_;  // by bucket: its gradient, on the device
  std::vector<StreamEvent> arrived_;   // and on the host
  // Of the last forward.
  Program* program_ = nullptr;
  Step step_;
};

}  // namespace syncopate::cuda
