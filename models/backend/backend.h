// The interface to the arithmetic of one device: a Backend compiles graphs to Models, and updates
// parameters. There is one Backend per replica. The models that a Backend compiles share its
// threads or its CUDA stream.
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
  // Whether operations are fused into groups. Tests set false to compare the results with and
  // without fusion.
  bool fuse = true;
  // False: convolutions use the direct algorithm only, whatever the table of algorithms
  // (cpu/algorithm_table.h) says.
  bool winograd = true;
  // Sums the statistics of batch norm over the replicas, and must outlive the model. Null: batch
  // norm uses the statistics of this replica only.
  StatisticsReducer* statistics = nullptr;
  // True: gradients may stay on the device, where only Backend::update() reads them, instead of
  // being copied to the arena.
  bool updates_on_device = false;
  // Sums the gradients of each bucket over all replicas on their devices; used only with
  // updates_on_device. Made by the CUDA module (join_on_one_gpu(), join_by_nccl()). Null: there is
  // one replica.
  DeviceCollective* device_collective = nullptr;
};

// The state of fp16 loss scaling (LossScaling, below) between two steps. Checkpoints contain this
// state.
struct LossScaleState {
  float scale = 1.0F;
  std::int64_t good_steps = 0;     // steps without overflow since the loss scale last changed
  std::int64_t skipped_steps = 0;  // updates skipped since training began because fp16 overflowed
  bool operator==(const LossScaleState&) const = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device device() const noexcept = 0;
  // Returns a text that names what the results of a model depend on besides its inputs: the device,
  // the instruction set, the number of threads and library versions. Example: "cpu, x86-64-v4, 2
  // lanes, oneDNN 2.6.3".
  virtual std::string description() const = 0;

  // Compiles the graph for this device. The models of one replica share arena and state. Backend,
  // graph, arena and state must outlive the model.
  // Throws ShapeError, UnavailableError (no kernel for an operation), OutOfMemoryError.
  virtual std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena,
                                         StateBlock& state, const CompileOptions& options) = 0;

  // Applies the optimizer's update to elements [range.begin, range.end) of the arena, with the
  // arena's gradients. The range may start or end inside a parameter. slots[i] is slot i of the
  // optimizer, f32 [number of elements of the arena]. The caller increments the version numbers of
  // the updated buckets.
  virtual void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
                      std::span<const Tensor> slots, Bucket range) = 0;
  // Scales all gradients of the step so that their L2 norm is at most max_norm. Called before the
  // step's calls of update(), which use the scaled gradients.
  virtual void clip_gradients(ParameterArena& arena, double max_norm);
  // Copies values and optimizer slots from the device to the host, if updates are made on the
  // device. Called before the host reads values or slots. slots: the tensors that are passed to
  // update().
  virtual void to_host(ParameterArena& /*arena*/, std::span<const Tensor> /*slots*/) {}
  // Waits for all started steps, then returns the fp16 loss scaling state of the models that use
  // `arena`. If losses are not scaled, returns nullopt, and set_loss_scale() has no effect.
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
// scale is halved after an overflow and doubled after growth_interval steps without an overflow.
// Source: GradScaler of PyTorch.
struct LossScaling {
  float first = 65536.0F;      // the scale of the loss at the first step
  int growth_interval = 2000;  // steps without an infinite gradient until the loss scale is doubled
};

struct BackendOptions {
  Device device;
  Precision precision = Precision::kF32;
  // True: repeated runs give equal bits. No algorithm depends on timing, TF32 is off, and no
  // algorithm is chosen by a measurement.
  bool deterministic = false;
  // On CUDA devices: steps with identical work are replayed as one CUDA graph.
  bool captures_steps = true;
  int lanes = 1;             // CPU only: the number of threads of a replica
  LossScaling loss_scaling;  // CUDA only, for fp16
  // CUDA only: the file that stores the fastest measured engine (cuDNN or cuBLAS algorithm) of each
  // operation. Engines are not measured if the path is empty or `deterministic` is set.
  std::filesystem::path plan_file;
};

// Makes the backend of a device. Throws UnavailableError for a device or precision that this build
// or machine lacks.
std::unique_ptr<Backend> make_backend(const BackendOptions& options);

// Makes a CPU backend. `lanes` threads share the batch of the replica; `isa` selects kernels and
// layouts. Throws UsageError unless 1 <= lanes <= 1024, or if the system does not start that many
// threads. Throws UnavailableError when this machine does not support `isa`.
std::unique_ptr<Backend> make_cpu_backend(int lanes, Isa isa = detect_isa());

// A library that a backend uses, such as oneDNN.
struct LibraryVersion {
  std::string name;
  std::string built;   // the version at compile time
  std::string loaded;  // the version loaded at run time
};
// Returns the versions of the libraries of the CPU backend.
std::vector<LibraryVersion> cpu_library_versions();

// Checks that a batch, which must be in host memory, fits the network. Throws ShapeError in these
// cases: the samples do not have the network's shape and type; there are more than `most` samples;
// a label is not a class; the loss divisor is below 1; a network with dropout trains on a batch
// without keys.
void check_batch(const Graph& graph, const Batch& batch, std::int64_t most, Mode mode);

}  // namespace syncopate
