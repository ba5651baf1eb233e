// One device's arithmetic. One Backend per replica: what it compiles shares its threads or its
// stream.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/backend/device_collective.h"
#include "models/backend/model.h"
#include "models/backend/statistics_reducer.h"
#include "models/base/isa.h"
#include "models/graph/graph.h"
#include "models/optim/optimizer.h"

namespace syncopate {

struct CompileOptions {
  Mode mode = Mode::kTrain;
  std::int64_t batch_size = 1;
  // Off: every node alone, the plain lowering that fused groups are checked against.
  bool fuse = true;
  // Off: direct convolutions only, whatever the algorithm table says.
  bool winograd = true;
  // Null: batch norm sees this replica only. Must outlive the model.
  StatisticsReducer* statistics = nullptr;
  // Gradients may stay where they are computed, for Backend::update() alone; the arena's own are
  // then not written.
  bool updates_on_device = false;
  // With updates_on_device: sums each bucket's gradients over all replicas before update() reads
  // them. Null: there is one replica. Of the module that compiles.
  DeviceCollective* device_collective = nullptr;
};

// Where the scale of fp16's losses stands between two steps (LossScaling, below): what a resumed
// run goes on with.
struct LossScaleState {
  float scale = 1.0F;
  std::int64_t good_steps = 0;     // since it last changed
  std::int64_t skipped_steps = 0;  // updates not made, since training began
  bool operator==(const LossScaleState&) const = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device device() const noexcept = 0;
  // What results depend on besides the inputs: "cpu, x86-64-v4, 2 lanes, oneDNN 2.6.3".
  virtual std::string description() const = 0;

  // Models of one replica share arena and state. Backend, graph, arena and state must outlive the
  // model.
  // Throws ShapeError, UnavailableError (no kernel for an operation), OutOfMemoryError.
  virtual std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena,
                                         StateBlock& state, const CompileOptions& options) = 0;

  // One update of elements [range.begin, range.end) of the arena, whole parameters or not; the
  // caller bumps the version. slots[i]: [arena total] f32, as many as the optimizer has.
  virtual void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
                      std::span<const Tensor> slots, Bucket range) = 0;
  // Brings values and slots up to date on the host where updates were made on a device: before
  // anybody reads them. Slots as given to update().
  virtual void to_host(ParameterArena& /*arena*/, std::span<const Tensor> /*slots*/) {}
  // Of the losses of the arena's models; waits for the steps that were started. None where they are
  // not scaled, and then there is nothing to set.
  virtual std::optional<LossScaleState> loss_scale(const ParameterArena& /*arena*/) { return {}; }
  virtual void set_loss_scale(const ParameterArena& /*arena*/, const LossScaleState& /*state*/) {}
};

// The type of activations and of gradients between layers; master values are f32. Source of mixed
// precision: Micikevicius et al. 2018.
enum class Precision : std::uint8_t { kF32, kBf16, kF16 };
std::string_view name(Precision precision) noexcept;  // "f32", "bf16", "fp16"

// What fp16 multiplies losses by before it goes back, and when it dares to multiply by twice that.
// Source: PyTorch's GradScaler.
struct LossScaling {
  float first = 65536.0F;
  int growth_interval = 2000;  // steps without an infinite gradient
};

struct BackendOptions {
  Device device;
  Precision precision = Precision::kF32;
  // No algorithm whose result depends on timing, no TF32, no measuring: the same bits twice.
  bool deterministic = false;
  // cuda: a step that is always the same is started as one (CUDA graphs).
  bool captures_steps = true;
  int lanes = 1;             // cpu
  LossScaling loss_scaling;  // cuda, fp16
  // cuda: where it is kept which engine is fastest for what. Empty, as under `deterministic`:
  // nothing is measured.
  std::filesystem::path plan_file;
};

// Throws UnavailableError for a device or precision that this build or machine lacks.
std::unique_ptr<Backend> make_backend(const BackendOptions& options);

// lanes: threads that share a replica's batch; >= 1. Throws UsageError.
// isa: what our own kernels and the layouts are made for; the machine must support it.
std::unique_ptr<Backend> make_cpu_backend(int lanes, Isa isa = detect_isa());

}  // namespace syncopate
