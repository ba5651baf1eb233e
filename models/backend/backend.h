// The arithmetic of one device. There is one Backend per replica; the models it compiles share its
// threads or its stream.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/device_collective.h"
#include "models/backend/model.h"
#include "models/base/enum_names.h"
#include "models/base/isa.h"
#include "models/graph/graph.h"
#include "models/optim/optimizer.h"

namespace syncopate {

struct CompileOptions {
  Mode mode = Mode::kTrain;
  std::int64_t batch_size = 1;
  // False: no operations are fused. Tests compare fused groups with this.
  bool fuse = true;
  // False: convolutions use the direct algorithm only, whatever the algorithm table says.
  bool winograd = true;
  // Sums the statistics of batch norm over replicas; must outlive the model. Null: batch norm uses
  // the statistics of this replica only.
  StatisticsReducer* statistics = nullptr;
  // True: gradients may stay on the device, where only Backend::update() reads them, instead of
  // being copied to the arena.
  bool updates_on_device = false;
  // If updates_on_device is set, sums the gradients of each bucket over all replicas on the
  // devices. The module that compiles the graph makes the collective. Null: there is one replica.
  DeviceCollective* device_collective = nullptr;
};

// The state of fp16 loss scaling (LossScaling, below) between two steps, which checkpoints contain.
struct LossScaleState {
  float scale = 1.0F;
  std::int64_t good_steps = 0;     // steps without overflow since the loss scale last changed
  std::int64_t skipped_steps = 0;  // updates skipped because fp16 overflowed, since training began
  bool operator==(const LossScaleState&) const = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device device() const noexcept = 0;
  // Names what a model's results depend on besides its inputs: device, instruction set, threads and
  // library versions, such as "cpu, x86-64-v4, 2 lanes, oneDNN 2.6.3".
  virtual std::string description() const = 0;

  // Compiles the graph for this device. The models of one replica share arena and state. Backend,
  // graph, arena and state must outlive the model.
  // Throws ShapeError, UnavailableError (no kernel for an operation), OutOfMemoryError.
  virtual std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena,
                                         StateBlock& state, const CompileOptions& options) = 0;

  // Updates elements [range.begin, range.end) of the arena, which may start or end inside a
  // parameter. slots[i] is [arena total] f32, one for each slot of the optimizer. The caller
  // increments the version numbers of the updated buckets.
  virtual void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
                      std::span<const Tensor> slots, Bucket range) = 0;
  // Scales all gradients of the step so that their L2 norm is at most max_norm. Called before the
  // step's updates, with the gradients that update() uses.
  virtual void clip_gradients(ParameterArena& arena, double max_norm);
  // Copies values and optimizer slots from the device to the host, if updates are made on the
  // device. Called before the host reads values or slots; `slots` are those passed to update().
  virtual void to_host(ParameterArena& /*arena*/, std::span<const Tensor> /*slots*/) {}
  // Returns the fp16 loss scaling state of the models that use `arena`, after all started steps
  // have ended. When losses are not scaled, returns nullopt, and set_loss_scale() has no effect.
  virtual std::optional<LossScaleState> loss_scale(const ParameterArena& /*arena*/) { return {}; }
  virtual void set_loss_scale(const ParameterArena& /*arena*/, const LossScaleState& /*state*/) {}
};

// The type of activations and of gradients between layers. Parameters are f32 in every precision.
// Source of mixed precision: Micikevicius et al. 2018.
enum class Precision : std::uint8_t { kF32, kBf16, kF16 };
constexpr auto named_values(Precision /*type*/) {
  return std::array{Named{"f32", Precision::kF32}, Named{"bf16", Precision::kBf16},
                    Named{"fp16", Precision::kF16}};
}

// Dynamic loss scaling for fp16: losses are multiplied by a scale before the backward pass. The
// scale is halved after an overflow and doubled after growth_interval steps without one.
// Source: GradScaler of PyTorch.
struct LossScaling {
  float first = 65536.0F;      // the scale of the loss at the first step
  int growth_interval = 2000;  // steps without an infinite gradient until the loss scale is doubled
};

struct BackendOptions {
  Device device;
  Precision precision = Precision::kF32;
  // True: runs give equal bits: no algorithm depends on timing, TF32 is off, nothing is measured.
  bool deterministic = false;
  // On CUDA devices: steps with identical work are replayed as one CUDA graph.
  bool captures_steps = true;
  int lanes = 1;             // CPU only: the number of threads of a replica
  LossScaling loss_scaling;  // CUDA only, for fp16
  // CUDA only: the file that stores the fastest engine for each operation. Empty, or with
  // `deterministic`: engines are not measured.
  std::filesystem::path plan_file;
};

// Makes the backend of a device. Throws UnavailableError for a device or precision that this build
// or machine lacks.
std::unique_ptr<Backend> make_backend(const BackendOptions& options);

// Makes a CPU backend. `lanes` threads share the batch of the replica; `isa` selects kernels and
// layouts. Throws UsageError unless 1 <= lanes <= 1024 and the system starts `lanes` threads, and
// UnavailableError when this machine does not support `isa`.
std::unique_ptr<Backend> make_cpu_backend(int lanes, Isa isa = detect_isa());

// A library that computes, such as oneDNN.
struct LibraryVersion {
  std::string name;
  std::string built;   // the version at compile time
  std::string loaded;  // the version loaded at run time
};
// Returns the versions of the libraries of the CPU backend.
std::vector<LibraryVersion> cpu_library_versions();

// Throws ShapeError when the samples of a batch do not have the network's shape and type, when the
// batch has more than `most` samples, when a label is not a class, when the loss divisor is below
// 1, or when a network with dropout trains on a batch without keys. The batch must be in host
// memory.
void check_batch(const Graph& graph, const Batch& batch, std::int64_t most, Mode mode);

}  // namespace syncopate
