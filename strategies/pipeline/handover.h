// Hands the tensors of micro-batches from one stage of a pipeline to a neighbouring stage: outputs
// to the next stage, gradients to the previous stage. pipeline_backend.cc connects stages that are
// threads of one process, counted_handover.h stages in different tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// Returns how many micro-batches are in flight in a stage, between their forward and their backward
// pass. Each of these micro-batches needs its own memory for the output that the stage sends to the
// next stage, and for the gradient that comes back.
constexpr int micro_batches_in_flight(int stage, int stages, int micro_batches) noexcept {
  return std::min(stages - stage, micro_batches);
}

// The tensors for one direction between two neighbours. Micro-batch m of a step uses tensors[m %
// tensors.size()]. A tensor is used again only after the backward pass of the micro-batch that used
// it before has ended.
struct HandoverTensors {
  std::vector<Tensor> tensors;  // one tensor for each micro-batch in flight
  int micro_batches = 1;        // number of micro-batches in a step

  const Tensor& of(int micro_batch) const {
    return tensors[static_cast<std::size_t>(micro_batch) % tensors.size()];
  }
};

// One direction between two neighbours. The sender fills the tensors of a step in order and calls
// send(); the receiver calls receive(). One thread on each side.
class Handover {
 public:
  virtual ~Handover() = default;

  // Returns the tensor of a micro-batch with `samples` samples. The receiver may read the tensor
  // after receive() has returned, until the micro-batch's backward pass has ended.
  virtual Tensor memory(int micro_batch, std::int64_t samples) const = 0;
  // Starts a step. Both sides call begin_step(), while neither side sends or receives.
  virtual void begin_step() = 0;
  // Hands over the tensor of `micro_batch`, which must have been computed before the call. Calls
  // are in the order of micro-batches. Throws PeerError.
  virtual void send(int micro_batch, std::int64_t samples) = 0;
  // Waits until the tensor of `micro_batch` has arrived. Returns false if a stage of this process
  // has failed. Throws PeerError if a task has failed, or did not send in time.
  virtual bool receive(int micro_batch, std::int64_t samples) = 0;
  // Ends every receive() of this process for this step, because a stage has failed.
  virtual void give_up() = 0;
};

// The hand-overs of a stage. The first stage has no previous stage and the last stage no next
// stage; their hand-overs to missing neighbours are null.
struct StageLinks {
  std::shared_ptr<Handover> inputs;            // from the previous stage
  std::shared_ptr<Handover> input_gradients;   // to the previous stage
  std::shared_ptr<Handover> outputs;           // to the next stage
  std::shared_ptr<Handover> output_gradients;  // from the next stage

  std::vector<Handover*> all() const {
    std::vector<Handover*> present;
    for (const auto* link : {&inputs, &input_gradients, &outputs, &output_gradients}) {
      if (*link != nullptr) present.push_back(link->get());
    }
    return present;
  }
};

// Returns the shape of a tensor with `samples` samples, each of shape `of_sample`.
inline Shape shape_of_samples(Shape of_sample, std::int64_t samples) {
  of_sample.insert(of_sample.begin(), samples);
  return of_sample;
}

// Returns `count` tensors of this shape in host memory.
inline std::vector<Tensor> make_host_tensors(const Shape& shape, int count) {
  std::vector<Tensor> tensors;
  tensors.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) tensors.push_back(make_host_tensor(shape, DType::kF32));
  return tensors;
}

}  // namespace syncopate
