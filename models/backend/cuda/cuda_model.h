// A graph on one GPU. Where strategies keep variables on the host, values go down bucket by bucket
// when they have changed, and gradients come up bucket by bucket while earlier layers still
// compute; where updates are made on the device, nothing travels but samples and scores, and
// gradients are summed bucket by bucket beside earlier layers' backward.
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
  // All references outlive the model. sums: of the gradients; null: nobody else has any.
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
  // All are there when a pass begins: nobody brings them bucket by bucket.
  bool has_values() const;
  // Nobody has to be asked in the middle of a pass, neither for values nor for statistics.
  bool asks_nobody() const;
  void prepare(const Batch& batch);
  void refresh_all();
  // Groups [that, end) are one piece of the backward pass.
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
  std::vector<std::unique_ptr<Program>> programs_;  // the full batch first
  std::optional<BatchUpload> samples_;
  std::optional<BatchUpload> labels_;
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
