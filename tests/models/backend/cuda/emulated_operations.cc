#include "tests/models/backend/cuda/emulated_operations.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

#include "models/backend/cuda/precision.h"
#include "models/base/errors.h"
#include "tests/models/backend/cuda/emulated_stream.h"

namespace syncopate::cuda {
namespace {

// Each emulated operation requests a workspace of this size and overwrites it, so that a program
// that does not provide the workspace fails.
constexpr std::size_t kWorkspaceBytes = 300;
constexpr std::size_t kRowsOfTile = 64;  // is the number of rows per block

void use_workspace(void* workspace) {
  std::fill_n(static_cast<std::byte*>(workspace), kWorkspaceBytes, std::byte{0xA5});
}

template <typename T>
class LoopConvolution final : public Convolution {
 public:
  LoopConvolution(ConvPass pass, const ConvShape& shape, EmulatedSums sums, cudaStream_t stream)
      : pass_(pass), shape_(shape), sums_(sums), stream_(stream) {}
  std::size_t workspace_bytes() const noexcept override { return kWorkspaceBytes; }

  void run(const ConvArrays& arrays) override {
    do_or_record(stream_, [=, this] { compute(arrays); });
  }

 private:
  bool is_forward() const {
    return pass_ == ConvPass::kForward || pass_ == ConvPass::kForwardWithSums;
  }

  void compute(const ConvArrays& arrays) const {
    use_workspace(arrays.workspace);
    T* const xs = static_cast<T*>(arrays.x);
    T* const ws = static_cast<T*>(arrays.w);
    T* const ys = static_cast<T*>(arrays.y);
    T* const result = is_forward() ? ys : pass_ == ConvPass::kInputGradient ? xs : ws;
    std::vector<double> sums(static_cast<std::size_t>(result_elements()), 0.0);
    for_each_product([&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
      const auto value = [](T element) { return static_cast<double>(static_cast<float>(element)); };
      if (is_forward()) {
        sums[static_cast<std::size_t>(yi)] += value(xs[xi]) * value(ws[wi]);
      } else if (pass_ == ConvPass::kInputGradient) {
        sums[static_cast<std::size_t>(xi)] += value(ys[yi]) * value(ws[wi]);
      } else {
        sums[static_cast<std::size_t>(wi)] += value(xs[xi]) * value(ys[yi]);
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) result[i] = T(static_cast<float>(sums[i]));
    if (pass_ == ConvPass::kForwardWithSums) sum_output(sums, ys, arrays);
  }

  // Sums the output of a convolution per channel in f32, tile by tile.
  void sum_output(const std::vector<double>& unrounded, const T* stored,
                  const ConvArrays& arrays) const {
    const auto channels = static_cast<std::size_t>(shape_.out_channels);
    const std::size_t rows = unrounded.size() / channels;
    for (std::size_t c = 0; c < channels; ++c) {
      float sum = 0.0F;
      float squares = 0.0F;
      for (std::size_t first = 0; first < rows; first += kRowsOfTile) {
        float tile_sum = 0.0F;
        float tile_squares = 0.0F;
        for (std::size_t row = first; row < std::min(rows, first + kRowsOfTile); ++row) {
          const std::size_t i = row * channels + c;
          const float value = sums_ == EmulatedSums::kOfStored ? static_cast<float>(stored[i])
                                                               : static_cast<float>(unrounded[i]);
          tile_sum += value;
          tile_squares += value * value;
        }
        sum += tile_sum;
        squares += tile_squares;
      }
      arrays.sums[c] = sum;
      arrays.squares[c] = squares;
    }
  }

  std::int64_t result_elements() const {
    if (is_forward()) {
      return shape_.n * shape_.out_height() * shape_.out_width() * shape_.out_channels;
    }
    if (pass_ == ConvPass::kInputGradient) {
      return shape_.n * shape_.height * shape_.width * shape_.channels;
    }
    return shape_.weight_elements();
  }

  // Visits all elements of x, w and y that a forward pass multiplies or adds to.
  template <typename Visit>
  void for_each_product(const Visit& visit) const {
    const ConvShape& s = shape_;
    for (std::int64_t n = 0; n < s.n; ++n) {
      for (std::int64_t p = 0; p < s.out_height(); ++p) {
        for (std::int64_t q = 0; q < s.out_width(); ++q) {
          for (std::int64_t k = 0; k < s.out_channels; ++k) {
            const std::int64_t yi =
                ((n * s.out_height() + p) * s.out_width() + q) * s.out_channels + k;
            for (std::int64_t r = 0; r < s.kernel_h; ++r) {
              const std::int64_t h = p * s.stride + r - s.pad.top;
              if (h < 0 || h >= s.height) continue;
              for (std::int64_t t = 0; t < s.kernel_w; ++t) {
                const std::int64_t v = q * s.stride + t - s.pad.left;
                if (v < 0 || v >= s.width) continue;
                const std::int64_t channels = s.channels / s.groups;
                const std::int64_t first = k / (s.out_channels / s.groups) * channels;
                for (std::int64_t c = 0; c < channels; ++c) {
                  visit(((n * s.height + h) * s.width + v) * s.channels + first + c,
                        ((k * s.kernel_h + r) * s.kernel_w + t) * channels + c, yi);
                }
              }
            }
          }
        }
      }
    }
  }

  const ConvPass pass_;
  const ConvShape shape_;
  const EmulatedSums sums_;
  const cudaStream_t stream_;
};

template <typename T, typename Result>
class LoopProduct final : public Product {
 public:
  LoopProduct(const ProductShape& shape, cudaStream_t stream) : shape_(shape), stream_(stream) {}
  std::size_t workspace_bytes() const noexcept override { return kWorkspaceBytes; }

  void run(const ProductArrays& arrays) override {
    do_or_record(stream_, [=, this] { compute(arrays); });
  }

 private:
  template <typename Element>
  static double element(const void* block, std::int64_t index) {
    return static_cast<double>(static_cast<float>(static_cast<const Element*>(block)[index]));
  }
  double first(const void* a, std::int64_t i, std::int64_t l) const {
    return element<T>(a, shape_.transpose_a ? l * shape_.m + i : i * shape_.k + l);
  }
  double second(const void* b, std::int64_t l, std::int64_t j) const {
    return element<T>(b, shape_.transpose_b ? j * shape_.k + l : l * shape_.n + j);
  }
  static Result rounded(double value) { return Result(static_cast<float>(value)); }

  void compute(const ProductArrays& arrays) const {
    use_workspace(arrays.workspace);
    for (std::int64_t i = 0; i < shape_.batch; ++i) {
      ProductArrays one = arrays;
      one.a = static_cast<const T*>(arrays.a) + i * shape_.m * shape_.k;
      one.b = static_cast<const T*>(arrays.b) + i * shape_.k * shape_.n;
      one.c = static_cast<Result*>(arrays.c) + i * shape_.m * shape_.n;
      compute_one(one);
    }
  }

  void compute_one(const ProductArrays& arrays) const {
    const bool adds = shape_.epilogue == Epilogue::kBias;
    auto* const row_sums =
        static_cast<Result*>(shape_.epilogue == Epilogue::kRowSums ? arrays.row_sums : nullptr);
    for (std::int64_t i = 0; i < shape_.m; ++i) {
      double row_sum = 0.0;
      for (std::int64_t l = 0; l < shape_.k; ++l) row_sum += first(arrays.a, i, l);
      if (row_sums != nullptr) row_sums[i] = rounded(row_sum);
      for (std::int64_t j = 0; j < shape_.n; ++j) {
        double sum = adds ? element<Result>(arrays.bias, j) : 0.0;
        for (std::int64_t l = 0; l < shape_.k; ++l) {
          sum += first(arrays.a, i, l) * second(arrays.b, l, j);
        }
        static_cast<Result*>(arrays.c)[i * shape_.n + j] = rounded(sum);
      }
    }
  }

  const ProductShape shape_;
  const cudaStream_t stream_;
};

class LoopOperations final : public Operations {
 public:
  LoopOperations(cudaStream_t stream, EmulatedSums sums) : stream_(stream), sums_(sums) {}
  std::string description() const override { return "loops"; }
  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& /*limits*/) override {
    if (pass == ConvPass::kForwardWithSums && !can_sum(shape)) return nullptr;
    return with_type(shape.type, [&]<typename T>() -> std::unique_ptr<Convolution> {
      return std::make_unique<LoopConvolution<T>>(pass, shape, sums_, stream_);
    });
  }
  std::unique_ptr<Product> product(const ProductShape& shape,
                                   const PlanLimits& /*limits*/) override {
    return with_type(shape.type, [&]<typename T>() {
      return with_type(shape.result_type, [&]<typename Result>() -> std::unique_ptr<Product> {
        return std::make_unique<LoopProduct<T, Result>>(shape, stream_);
      });
    });
  }

 private:
  bool can_sum(const ConvShape& shape) const {
    return sums_ != EmulatedSums::kNone && shape.type == Precision::kF16 &&
           shape.channels % 8 == 0 && shape.out_channels % 8 == 0;
  }

  const cudaStream_t stream_;
  const EmulatedSums sums_;
};

}  // namespace

std::unique_ptr<Operations> make_emulated_operations(cudaStream_t stream, EmulatedSums sums) {
  return std::make_unique<LoopOperations>(stream, sums);
}

}  // namespace syncopate::cuda
