// A model is a graph compiled for one device and one batch size. It runs the forward and the
// backward pass. The strategy decides what is done with the gradients
// (strategies/variable_store.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/graph/fused_groups.h"
#include "models/graph/graph.h"
#include "models/tensor/parameter_arena.h"
#include "models/tensor/tensor.h"

namespace syncopate {

// A batch: the samples of one replica in one step.
struct Batch {
  // One tensor per input of the graph, in the order of Graph::inputs(): [N, H, W, C] or [N, F],
  // with the dtype of the input node.
  std::vector<Tensor> inputs;
  // The targets that the graph's loss expects: classes, i32 [N]; label maps, i32 [N, H, W]; or
  // numbers, f32 [N, K].
  Tensor target;
  std::int64_t num_samples = 0;  // N; may be 0
  // The sum of the sample losses is divided by this number. In synchronous training, it is the
  // number of samples of all replicas in the step.
  std::int64_t loss_divisor = 0;
  // The number of samples that could not be read. Training replaces them by other samples; an
  // evaluation leaves them out.
  std::int64_t num_bad = 0;
  // [N] i64: a random key per sample, a function of (seed, epoch, sample). Dropout derives its
  // random numbers from the keys. A default-constructed tensor if no dropout is trained.
  Tensor keys;

  // Returns a view of the samples [begin, end).
  Batch rows(std::int64_t begin, std::int64_t end) const;
};

// The results of a forward pass. All are sums over samples, so the scores of batches, replicas and
// tasks can be added.
struct Scores {
  double loss = 0.0;  // sum of the sample losses / loss_divisor
  std::int64_t num_samples = 0;
  std::int64_t num_bad = 0;  // Batch::num_bad
  // metrics[i] is the sum over the samples of metric i of the loss: metrics(LossKind) in graph.h.
  std::array<double, kMostMetrics> metrics{};

  Scores& operator+=(const Scores& other) noexcept;
};

enum class Mode : std::uint8_t { kTrain, kEvaluate };

// A function called before the forward pass first uses the values of a bucket.
using ValuesHook = std::function<void(BucketId)>;
// A function called once per bucket, last layers first, as soon as the bucket's gradients are
// complete. If the host sums gradients, they are then in the arena's gradient block.
using GradientHook = std::function<void(BucketId)>;

// Sums the statistics of batch norm over replicas. A strategy with several replicas implements this
// interface on a separate communicator. The CPU backend passes sums over the lanes of the replica,
// which it adds in lane order.
class StatisticsReducer {
 public:
  virtual ~StatisticsReducer() = default;
  // Sums `values` over all replicas, in place and in rank order. Every replica calls sum() at the
  // same points of a step. Throws PeerError.
  virtual void sum(std::span<double> values) = 0;
};

// The time of one fused group (models/graph/fused_groups.h) in a step, for profiles.
struct GroupTime {
  FusedGroup group;
  double forward_seconds = 0.0;
  double backward_seconds = 0.0;
};

class Trace;  // defined in models/base/trace.h

// A compiled model. Used by one thread. A call may use other threads internally.
class Model {
 public:
  virtual ~Model() = default;

  virtual std::int64_t batch_size() const noexcept = 0;
  // Starts the forward pass of a batch of 0 to batch_size() samples. The device may still compute
  // when this function returns, so the batch must stay valid until scores() has returned. Throws
  // ShapeError.
  virtual void start_forward(const Batch& batch, const ValuesHook& before_use) = 0;
  // Returns the results of the last forward pass. Does not wait for a later backward pass.
  virtual Scores scores() = 0;
  Scores forward(const Batch& batch, const ValuesHook& before_use) {
    start_forward(batch, before_use);
    return scores();
  }
  // Runs the backward pass of the last forward pass. Overwrites all gradients of the arena with the
  // gradients of this pass's loss, plus the gradients kept by accumulate(). The model must have
  // been compiled for Mode::kTrain.
  virtual void backward(const GradientHook& on_ready) = 0;
  // Runs the backward pass of a micro-batch that is not the last one of its step. The gradients are
  // kept, and the next backward() adds them to the gradients that it computes. No bucket of the
  // arena becomes complete here.
  virtual void accumulate() = 0;
  // If the model computes on several threads at a time, it records its passes in the trace from now
  // on, in rows of its own, and returns true. Otherwise returns false; the caller then records the
  // passes.
  virtual bool record_passes(Trace& /*trace*/) { return false; }
  // Profiles a training step of this batch: runs it group by group, without an update, and returns
  // the device's time of each group, in the order of the forward pass. Returns an empty vector if
  // the device has no clock of its own. Gradients and running statistics change as in a step.
  virtual std::vector<GroupTime> time_groups(const Batch& /*batch*/) { return {}; }
  // Returns the logits of the last forward pass, for predictions: f32 on the host, of shape
  // Graph::logits_shape() for each sample.
  virtual Tensor logits() const = 0;
  // Copies the logits of the last forward pass to `into`, without an allocation.
  virtual void copy_logits(std::span<float> into) const;
  // Returns the gradient of the loss with respect to the differentiated input
  // (InputOp::is_differentiated), f32 [N, H, W, C] or [N, F] on the host. Called after a backward
  // pass; the tensor is valid until the next backward pass. Throws UnavailableError if the device
  // does not compute this gradient.
  virtual Tensor input_gradient() const;
};

}  // namespace syncopate
