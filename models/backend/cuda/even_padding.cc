#include "models/backend/cuda/even_padding.h"

#include <algorithm>
#include <utility>

namespace syncopate::cuda {
namespace {

template <typename T>
class BorderedConvolution final : public Convolution {
 public:
  // bordered: the shape that `inner` convolves. Its map has the zeros already.
  BorderedConvolution(ConvPass pass, const ConvShape& shape, const ConvShape& bordered,
                      std::unique_ptr<Convolution> inner, cudaStream_t stream)
      : pass_(pass),
        shape_(shape),
        bordered_(bordered),
        inner_(std::move(inner)),
        stream_(stream) {}

  // The map with its zeros, then the workspace of the convolution.
  std::size_t workspace_bytes() const noexcept override {
    return aligned(map_bytes()) + inner_->workspace_bytes();
  }

  void run(const ConvArrays& arrays) override {
    T* const map = static_cast<T*>(arrays.workspace);
    ConvArrays inner = arrays;
    inner.x = map;
    inner.workspace = behind(map, map_bytes());
    const int top = shape_.pad.top - bordered_.pad.top;
    const int left = shape_.pad.left - bordered_.pad.left;
    if (pass_ != ConvPass::kInputGradient) {
      with_border(border(shape_, bordered_, top, left), static_cast<const T*>(arrays.x), map,
                  stream_);
      inner_->run(inner);
    } else {
      inner_->run(inner);
      with_border(border(bordered_, shape_, -top, -left), static_cast<const T*>(map),
                  static_cast<T*>(arrays.x), stream_);
    }
  }

 private:
  std::size_t map_bytes() const noexcept {
    return static_cast<std::size_t>(bordered_.n * bordered_.height * bordered_.width *
                                    bordered_.channels) *
           sizeof(T);
  }
  static BorderShape border(const ConvShape& x, const ConvShape& y, int top, int left) {
    return {.n = x.n,
            .height = static_cast<int>(x.height),
            .width = static_cast<int>(x.width),
            .channels = static_cast<int>(x.channels),
            .y_height = static_cast<int>(y.height),
            .y_width = static_cast<int>(y.width),
            .top = top,
            .left = left};
  }

  const ConvPass pass_;
  const ConvShape shape_;
  const ConvShape bordered_;
  const std::unique_ptr<Convolution> inner_;
  const cudaStream_t stream_;
};

}  // namespace

std::unique_ptr<Convolution> plan_convolution(const GroupContext& context, ConvPass pass,
                                              const ConvShape& shape) {
  const PlanLimits limits = limits_of(context);
  const Padding& pad = shape.pad;
  const int rows = std::min(pad.top, pad.bottom);
  const int columns = std::min(pad.left, pad.right);
  ConvShape bordered = shape;
  bordered.pad = {rows, columns, rows, columns};
  if (bordered.pad == pad) return context.operations->convolution(pass, shape, limits);
  bordered.height += pad.rows() - bordered.pad.rows();
  bordered.width += pad.columns() - bordered.pad.columns();
  auto inner = context.operations->convolution(pass, bordered, limits);
  if (inner == nullptr) return nullptr;  // no convolution that also sums is available
  return with_type(context.precision, [&]<typename T>() -> std::unique_ptr<Convolution> {
    return std::make_unique<BorderedConvolution<T>>(pass, shape, bordered, std::move(inner),
                                                    context.stream);
  });
}

}  // namespace syncopate::cuda
