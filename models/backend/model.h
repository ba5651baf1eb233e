// A graph compiled for one device and one batch size: forward, backward, and nothing else. What
// becomes of the gradients is the strategy's business (strategies/variable_store.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "models/tensor/parameter_arena.h"
#include "models/tensor/tensor.h"

namespace syncopate {

// One replica's share of a step.
struct Batch {
  Tensor x;      // [N, H, W, C] or [N, F]; u8 or f32 as the graph's input says
  Tensor label;  // [N] i32, each in [0, classes)
  std::int64_t loss_divisor =
      0;  // what the summed sample losses are divided by: the step's global count

  std::int64_t size() const noexcept { return label.num_elements(); }
};

// What a forward pass found.
struct Scores {
  double loss = 0.0;             // sum of the sample losses / loss_divisor
  std::int64_t num_correct = 0;  // samples whose largest logit is the label's
  std::int64_t num_samples = 0;
};

enum class Mode : std::uint8_t { kTrain, kEvaluate };

// A point in a device's stream. On the CPU every event has passed when it is handed out.
struct Event {
  void* native = nullptr;
};

// Called before a bucket's values are first used in a step.
using ValuesHook = std::function<void(BucketId)>;
// Called once per bucket, last layers first, as soon as `ready` marks the end of what writes it.
using GradientHook = std::function<void(BucketId, const Event& ready)>;

// One thread only (lanes inside are the model's own affair).
class Model {
 public:
  virtual ~Model() = default;

  virtual std::int64_t batch_size() const noexcept = 0;
  // Batches of up to batch_size() samples, none included; the batch lasts until scores(). A device
  // may go on computing when this returns. Throws ShapeError.
  virtual void start_forward(const Batch& batch, const ValuesHook& before_use) = 0;
  // What the last forward pass found; waits for it, not for a backward that was started since.
  virtual Scores scores() = 0;
  Scores forward(const Batch& batch, const ValuesHook& before_use) {
    start_forward(batch, before_use);
    return scores();
  }
  // Overwrites every gradient of the arena with the sum over the batch of the last forward, divided
  // by its loss_divisor. Only in a model compiled for Mode::kTrain.
  virtual void backward(const GradientHook& on_ready) = 0;
  // The logits of the last forward, [N, classes] f32 on the host. For tests and predictions.
  virtual Tensor logits() const = 0;
};

}  // namespace syncopate
