// The update rules of the optimizers. Each element is updated independently of the others, so the
// bits are equal whether the whole arena or slices of it are updated, on a device or in a shard.
// The caller owns all memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/optim/kernels/optimizer_kernels.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

struct OptimizerOptions {
  std::string name = "sgd";  // the name of a row of optimizers()
  // The following constants are doubles, because 1 - beta2, computed from 0.999 in f32, has a
  // relative error of 5e-5.
  double momentum = 0.9;  // for momentum: in [0, 1)
  bool nesterov = false;  // for momentum: Nesterov's form
  double beta1 = 0.9;     // for adam and adamw: in [0, 1)
  double beta2 = 0.999;   // for adam and adamw: in [0, 1)
  double epsilon = 1e-8;  // for adam and adamw: positive
  // The factor of weight decay, not negative. weight_decay * value is added to the gradient. With
  // adamw, learning rate * weight_decay * value is subtracted from the value instead.
  double weight_decay = 0.0;
  // The largest decay of an exponential moving average of the values, in (0, 1); 0: no average. The
  // average is kept in the slot kAverageSlot. The decay at update n is at most (1 + n) / (10 + n),
  // because otherwise the random initial values would influence the average for a long time.
  // Source: Polyak and Juditsky 1992; ExponentialMovingAverage of TensorFlow with num_updates.
  double average_decay = 0.0;
};

inline constexpr std::string_view kAverageSlot = "ema";

// The inputs of an optimizer's update that change from step to step.
struct UpdateStep {
  float learning_rate = 0.0F;
  std::int64_t step = 1;  // number of the update, starting at 1; Adam's bias correction uses it
  // Factor of the momentum in this update. Only outer rules use it (outer_rule.h).
  double momentum_scale = 1.0;
  // For a gradient of values that have been updated since: `step` of an update that would have used
  // it at once; 0: unknown. Only the rules of ps/shard/stale_gradients.h use it.
  std::int64_t read = 0;
  // The rest is for strategies; no update rule uses it.
  double epochs = 0.0;      // passes over the data before the step, with a fraction
  bool is_last = false;     // whether the run ends with this update
  bool ends_round = false;  // whether a round ends with this update, although it has steps left
};

// An optimizer's update rule. Immutable, thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual const OptimizerOptions& options() const noexcept = 0;
  // Returns the names of the optimizer's slots, which checkpoints also use: {"momentum"} or
  // {"exp_avg", "exp_avg_sq"}.
  virtual std::span<const std::string_view> slot_names() const noexcept = 0;
  // Makes one update of values and slots from the gradients. All spans are [n] f32, and slots[i]
  // belongs to slot_names()[i]. decays: whether weight decay applies to these elements. Throws
  // ShapeError when lengths differ.
  virtual void update(const UpdateStep& step, std::span<float> values,
                      std::span<const float> gradients, std::span<const std::span<float>> slots,
                      bool decays) const = 0;
  // Returns the constants of the update rule at `step`, for a device that applies the rule with
  // kernels of its own.
  virtual UpdateConstants constants(const UpdateStep& step, bool decays) const = 0;
};

struct OptimizerRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&);
  double default_learning_rate = 0.01;
  bool has_momentum = false;  // whether `momentum` and `nesterov` of the options have an effect
  bool has_moments = false;   // whether `beta1`, `beta2` and `epsilon` have an effect, as in Adam
};
// Returns the table of optimizers that --optimizer can name.
std::span<const OptimizerRow> optimizers() noexcept;
// Returns the row with the name options.name. Throws UsageError for an unknown name, with a list of
// the known names.
const OptimizerRow& optimizer_row(const OptimizerOptions& options);

// Makes an optimizer. Throws UsageError for an unknown name or a constant out of range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);
// Returns an optimizer that updates like `inner` and, if options().average_decay is positive, also
// keeps the moving average of the values.
std::unique_ptr<Optimizer> with_average(std::unique_ptr<Optimizer> inner);

// Throws ShapeError unless all arrays have equal size and there is one slot for each of
// slot_names().
void check_update_lengths(const Optimizer& optimizer, std::span<float> values,
                          std::span<const float> gradients,
                          std::span<const std::span<float>> slots);

// Updates arena elements [range.begin, range.end), such as the part that belongs to one lane, or a
// part of a shard. Updates one parameter at a time, because weight decay applies to some parameters
// only. Padding is not changed. If ranges cover the arena exactly once, updating them in any order
// gives the bits of one update of the whole arena. All spans are [range.end - range.begin] f32 and
// start at arena element range.begin. Thread-safe for ranges that do not overlap. Throws ShapeError
// when lengths differ.
void update_range(const Optimizer& optimizer, const UpdateStep& step, const ArenaLayout& layout,
                  Bucket range, std::span<float> values, std::span<const float> gradients,
                  std::span<const std::span<float>> slots);

// The largest number of slots that an optimizer has.
inline constexpr std::size_t kMaxSlots = 4;

}  // namespace syncopate
