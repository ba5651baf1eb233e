// The operations that NVIDIA's libraries compute for us, each planned once for a shape and then run
// as often as wanted. An interface, so that programs can be proven where no GPU is
// (tests/models/backend/cuda).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "models/backend/backend.h"

namespace syncopate::cuda {

// What planning may choose from.
struct PlanLimits {
  bool deterministic = false;  // nothing whose result depends on timing
  bool rounds_inputs = true;   // f32 may be rounded to TF32 for the tensor cores
  std::int64_t most_workspace_bytes = std::int64_t{256} << 20;
};

// Cross-correlation of NHWC maps with KRSC weights, all of one type; sums are f32.
// kForwardWithSums: forward, and what a batch norm behind it would read the whole output for.
enum class ConvPass : std::uint8_t { kForward, kForwardWithSums, kInputGradient, kWeightGradient };
std::string_view name(ConvPass pass) noexcept;

struct ConvShape {
  std::int64_t n = 1;
  std::int64_t height = 1, width = 1, channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t kernel_h = 3, kernel_w = 3;
  std::int64_t stride = 1, pad = 1;
  Precision type = Precision::kF32;  // of x, w and y

  std::int64_t out_height() const { return (height + 2 * pad - kernel_h) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * pad - kernel_w) / stride + 1; }
};
std::string to_string(const ConvShape& shape);
// With how many channels cuDNN convolves samples best: in 16 bits it would pad the few that images
// have by itself, each time, or have no kernel made for them.
constexpr std::int64_t padded_channels(std::int64_t channels, Precision type) {
  if (type == Precision::kF16 && channels < 4) return 4;
  if (type == Precision::kBf16 && channels < 8) return 8;
  return channels;
}

// kForward: x, w -> y; kForwardWithSums: x, w -> y, sums, squares; kInputGradient: y, w -> x;
// kWeightGradient: x, y -> w, where y is the gradient of the output.
struct ConvArrays {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  // Of each output channel over all pixels of all samples: the sum, and the sum of squares.
  float* sums = nullptr;
  float* squares = nullptr;
  void* workspace = nullptr;
};

// What a product does besides: adds a bias to every row before it is rounded, or writes the sums of
// op(a)'s rows: where a is the gradient of an output, [k, m] and transposed, that of its bias. No
// ReLU: cuBLASLt's makes a NaN 0, behind which a network trains on without a word.
enum class Epilogue : std::uint8_t { kNone, kBias, kRowSums };
std::string_view name(Epilogue epilogue) noexcept;

// c [m, n] = op(a) op(b), row by row; op transposes where asked for: a is then [k, m], b [n, k].
// Sums are f32.
struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  Precision type = Precision::kF32;         // of a and b
  Precision result_type = Precision::kF32;  // of c
  Epilogue epilogue = Epilogue::kNone;
};
std::string to_string(const ProductShape& shape);

// One thread only. What is run starts work on the stream of whoever planned it; memory is on the
// device, 16-byte aligned, and lasts until the stream has passed. Throws DeviceError.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual std::size_t workspace_bytes() const noexcept = 0;
  virtual void run(const ConvArrays& arrays) = 0;
};
// Where a product finds its matrices, and the vector of its epilogue, of c's type; null: it has
// none.
struct ProductArrays {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // [n]
  void* row_sums = nullptr;    // [m]
  void* workspace = nullptr;
};
class Product {
 public:
  virtual ~Product() = default;
  virtual std::size_t workspace_bytes() const noexcept = 0;
  virtual void run(const ProductArrays& arrays) = 0;
};

// Plans for one stream. One thread only; outlives what it planned.
class Operations {
 public:
  virtual ~Operations() = default;
  virtual std::string description() const = 0;  // "cuDNN 9.19.0"
  // Both throw UnavailableError where no library has it; not every product has every epilogue. Null
  // for a forward convolution whose sums are not to be had, or faster by a kernel of their own.
  virtual std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                                   const PlanLimits& limits) = 0;
  virtual std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) = 0;
};

using PlanOperations = std::function<std::unique_ptr<Operations>(cudaStream_t)>;
// By cuDNN and cuBLASLt, on the calling thread's device. plan_file: where it is kept which engines
// were measured to be the fastest (BackendOptions::plan_file).
std::unique_ptr<Operations> make_nvidia_operations(cudaStream_t stream,
                                                   const std::filesystem::path& plan_file = {});

}  // namespace syncopate::cuda
