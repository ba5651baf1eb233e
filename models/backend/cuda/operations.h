// Operations are what NVIDIA's libraries compute: each is planned once for a shape and may then run
// any number of times. They are behind an interface, so that programs can be tested without a GPU
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

// PlanLimits restricts which algorithms the planning of an operation may choose from.
struct PlanLimits {
  bool deterministic = false;  // excludes results that depend on timing
  bool rounds_inputs = true;   // lets f32 be rounded to TF32 for the tensor cores
  bool measures = true;        // times algorithms, if it is not known which one is the fastest
  std::int64_t most_workspace_bytes = std::int64_t{256} << 20;
};

// ConvPass is a pass of a convolution: cross-correlation of NHWC maps with KRSC weights, all of one
// type, with f32 sums; the weights of several groups have channels / groups channels.
// kForwardWithSums also computes sums for a batch norm, which would otherwise read the whole
// output.
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

// ConvArrays holds the arrays of a convolution pass. kForward: x, w -> y; kForwardWithSums: x, w ->
// y, sums, squares; kInputGradient: y, w -> x; kWeightGradient: x, y -> w, where y is the gradient
// of the output.
struct ConvArrays {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  // The addresses of each output channel's sum and sum of squares over all pixels of all samples.
  float* sums = nullptr;
  float* squares = nullptr;
  void* workspace = nullptr;
};

// An epilogue is an extra operation of a product: adding a bias to every row before rounding, or
// summing the rows of op(a), which gives the bias's gradient if a is the gradient of an output, [k,
// m] and transposed. cuBLASLt's ReLU is left out: it turns NaN into 0, so that training would
// continue unnoticed.
enum class Epilogue : std::uint8_t { kNone, kBias, kRowSums };
std::string_view name(Epilogue epilogue) noexcept;

// ProductShape describes the product c [m, n] = op(a) op(b) of row-major matrices. op transposes if
// requested: a is then [k, m], b is [n, k]. Sums are f32.
struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  Precision type = Precision::kF32;         // the type of a and b
  Precision result_type = Precision::kF32;  // the type of c
  Epilogue epilogue = Epilogue::kNone;
  // How many products are computed, of matrices that lie one behind the other; 1 with an epilogue.
  std::int64_t batch = 1;
};
std::string to_string(const ProductShape& shape);

// A Convolution is planned once and used by one thread only. It runs on the stream of the
// Operations that planned it; memory is on the device, 16-byte aligned, and must stay valid until
// the stream has executed the work. Throws DeviceError.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual std::size_t workspace_bytes() const noexcept = 0;
  virtual void run(const ConvArrays& arrays) = 0;
};
// ProductArrays holds the matrices of a product and the vector of its epilogue, which has c's type
// and is null if there is no epilogue.
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

// An Operations object plans the convolutions and matrix products of one stream. It is used by one
// thread only and must outlive what it planned.
class Operations {
 public:
  virtual ~Operations() = default;
  // Returns the versions of cuDNN and cuBLAS as text, such as "cuDNN 9.19.0".
  virtual std::string description() const = 0;
  // convolution() and product() throw UnavailableError if no library has the operation; cuBLASLt
  // lacks some epilogues for some products. convolution() returns null for kForwardWithSums if no
  // engine supports it or if a separate kernel computes the sums faster.
  virtual std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                                   const PlanLimits& limits) = 0;
  virtual std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) = 0;
};

using PlanOperations = std::function<std::unique_ptr<Operations>(cudaStream_t)>;
// Makes Operations by cuDNN and cuBLASLt on the calling thread's device. plan_file: the file that
// keeps the engines that were measured as fastest (BackendOptions::plan_file).
std::unique_ptr<Operations> make_nvidia_operations(cudaStream_t stream,
                                                   const std::filesystem::path& plan_file = {});

}  // namespace syncopate::cuda
