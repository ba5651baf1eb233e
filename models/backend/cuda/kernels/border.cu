// Adds zeros around maps and removes borders, for convolutions with different padding on their
// sides.
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// A thread writes kWidth channels of one pixel of y.
template <int kWidth, typename T>
__global__ void __launch_bounds__(kThreads)
    with_border_kernel(BorderShape shape, const T* x, T* y, std::int64_t packs) {
  const int packs_per_pixel = shape.channels / kWidth;
  for_indices_of_thread(packs, [&](std::int64_t i) {
    const std::int64_t pixel = i / packs_per_pixel;
    const std::int64_t line = pixel / shape.y_width;  // counts rows of all samples
    const std::int64_t sample = line / shape.y_height;
    const int h = static_cast<int>(line - sample * shape.y_height) - shape.top;
    const int w = static_cast<int>(pixel - line * shape.y_width) - shape.left;
    Floats<kWidth> values{};
    if (h >= 0 && h < shape.height && w >= 0 && w < shape.width) {
      const std::int64_t source = (sample * shape.height + h) * shape.width + w;
      const auto pack = static_cast<int>(i - pixel * packs_per_pixel);
      values = load<kWidth>(x + source * shape.channels + pack * kWidth);
    }
    store(y + i * kWidth, values);
  });
}

}  // namespace

template <typename T>
void with_border(const BorderShape& shape, const T* x, T* y, cudaStream_t stream) {
  const std::int64_t elements = shape.n * shape.y_height * shape.y_width * shape.channels;
  if (elements == 0) return;
  with_width<T>(rows_in_vectors<T>(shape.channels, x, y), [&](auto width) {
    const std::int64_t packs = elements / width.value;
    launch({"with_border", blocks_for(packs), kThreads, stream}, with_border_kernel<width.value, T>,
           shape, x, y, packs);
  });
}

template void with_border(const BorderShape&, const float*, float*, cudaStream_t);
template void with_border(const BorderShape&, const __nv_bfloat16*, __nv_bfloat16*, cudaStream_t);
template void with_border(const BorderShape&, const __half*, __half*, cudaStream_t);

}  // namespace syncopate::cuda
