// Operations are the convolutions and matrix products that NVIDIA's libraries compute. An operation
// is planned once for a shape and may then run any number of times. The libraries are behind an
// interface, so that programs can be tested without a GPU (tests/models/backend/cuda).
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

// Limits on the algorithms that may be chosen for an operation.
struct PlanLimits {
  bool deterministic = false;  // excludes algorithms with results that depend on timing
  bool rounds_inputs = true;   // allows rounding f32 to TF32 for the tensor cores
  bool measures = true;        // times algorithms if it is not known which is the fastest
  std::int64_t most_workspace_bytes = std::int64_t{256} << 20;
};

// A pass of a convolution. A convolution is the cross-correlation of NHWC maps with KRSC weights.
// Maps and weights have the same type; sums are f32. With groups, the weights have channels /
// groups channels. kForwardWithSums also computes sums for a batch norm, which otherwise would read
// the whole output.
enum class ConvPass : std::uint8_t { kForward, kForwardWithSums, kInputGradient, kWeightGradient };
std::string_view name(ConvPass pass) noexcept;

struct ConvShape {
  std::int64_t n = 1;
  std::int64_t height = 1, width = 1, channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t kernel_h = 3, kernel_w = 3;
  std::int64_t stride = 1;
  Padding pad = 1;
  Precision type = Precision::kF32;  // the type of x, w and y
  std::int64_t groups = 1;

  std::int64_t weight_elements() const {
    return out_channels * kernel_h * kernel_w * (channels / groups);
  }
  std::int64_t out_height() const { return (height + pad.rows() - kernel_h) / stride + 1; }
  std::int64_t out_width() const { return (width + pad.columns() - kernel_w) / stride + 1; }
};
std::string to_string(const ConvShape& shape);

// The arrays of a convolution pass. The arrow means that a pass computes the arrays after it from
// the arrays before it. kForward: x, w -> y. kForwardWithSums: x, w -> y, sums, squares.
// kInputGradient: y, w -> x. kWeightGradient: x, y -> w. In the last two passes, y is the gradient
// of the output, and the result is the gradient of x or w.
struct ConvArrays {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  // For each output channel: the sum and the sum of squares over all pixels of all samples.
  float* sums = nullptr;
  float* squares = nullptr;
  void* workspace = nullptr;
};

// An additional operation that is computed with a product. kBias adds a bias to every row before
// rounding. kRowSums sums each row of op(a); this is the gradient of the bias if a is the gradient
// of an output, [k, m], and transposed. cuBLASLt's ReLU is not used, because it turns NaN into 0,
// so that training would continue after a divergence.
enum class Epilogue : std::uint8_t { kNone, kBias, kRowSums };
std::string_view name(Epilogue epilogue) noexcept;

// The shape of the product c [m, n] = op(a) op(b) of row-major matrices. Without transposition, a
// is [m, k] and b is [k, n]; with transposition, a is [k, m] and b is [n, k]. Sums are f32.
struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  Precision type = Precision::kF32;         // the type of a and b
  Precision result_type = Precision::kF32;  // the type of c
  Epilogue epilogue = Epilogue::kNone;
  // The number of products; the matrices of successive products follow each other in memory. Must
  // be 1 if there is an epilogue.
  std::int64_t batch = 1;
};
std::string to_string(const ProductShape& shape);

// A planned convolution. Used by one thread only. run() starts the work on the stream of the
// Operations that planned it. Arrays are on the device, aligned to 16 bytes, and must stay valid
// until the stream has executed the work. Throws DeviceError.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual std::size_t workspace_bytes() const noexcept = 0;
  virtual void run(const ConvArrays& arrays) = 0;
};
// The matrices of a product and the vector of its epilogue: `bias` for kBias, `row_sums` for
// kRowSums. The vector has the type of c; a vector of another epilogue is null.
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

// Plans the convolutions and matrix products of one stream. Used by one thread only. Must outlive
// the operations that it planned.
class Operations {
 public:
  virtual ~Operations() = default;
  // Returns the version of cuDNN as text, such as "cuDNN 9.19.0".
  virtual std::string description() const = 0;
  // Plan an operation: choose its algorithm and make it ready to run. Throw UnavailableError if no
  // library has the operation; for example, cuBLASLt lacks some epilogues for some products. For
  // kForwardWithSums, convolution() returns null if no engine supports the pass, or if a separate
  // kernel computes the sums faster.
  virtual std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                                   const PlanLimits& limits) = 0;
  virtual std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) = 0;
};

// A function that makes the Operations of a stream.
using PlanOperations = std::function<std::unique_ptr<Operations>(cudaStream_t)>;
// Makes the Operations of cuDNN and cuBLASLt on the calling thread's device. plan_file: see
// BackendOptions::plan_file.
std::unique_ptr<Operations> make_nvidia_operations(cudaStream_t stream,
                                                   const std::filesystem::path& plan_file = {});

}  // namespace syncopate::cuda
