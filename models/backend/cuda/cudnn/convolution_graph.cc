#include "models/backend/cuda/cudnn/convolution_graph.h"

#include <array>

namespace syncopate::cuda {
namespace {

enum : std::int64_t { kX = 'x', kW = 'w', kY = 'y', kSums = 's', kSquares = 'q' };
// The alignment in bytes that cuDNN may rely on. The arena aligns values more strictly, to 256
// bytes.
constexpr std::int64_t kAlignment = 16;

using Four = std::array<std::int64_t, 4>;

cudnnDataType_t type_of(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return CUDNN_DATA_BFLOAT16;
    case Precision::kF16:
      return CUDNN_DATA_HALF;
    case Precision::kF32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

// cuDNN lists a tensor's axes in the order N, C, H, W, whatever their order in memory.
Descriptor tensor(std::int64_t name, const Four& nchw, Precision type) {
  const auto [n, c, h, w] = nchw;
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(type));
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, nchw);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, Four{h * w * c, 1, w * c, c});
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  made.finalize();
  return made;
}

// PassNames holds cuDNN's enumerators for a convolution pass (forward, input or weight gradient):
// the descriptor type of the operation and the names of its attributes.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
constexpr PassNames names_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::kForward:
    case ConvPass::kForwardWithSums:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvPass::kInputGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvPass::kWeightGradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

Descriptor window_of(const ConvShape& shape) {
  using Two = std::array<std::int64_t, 2>;
  Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, Two{1, 1});
  window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Two{shape.stride, shape.stride});
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Two{shape.pad.top, shape.pad.left});
  window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Two{shape.pad.bottom, shape.pad.right});
  window.finalize();
  return window;
}

}  // namespace

std::vector<NamedArray> named_arrays(ConvPass pass, const ConvArrays& arrays) {
  std::vector<NamedArray> named{{kX, arrays.x}, {kW, arrays.w}, {kY, arrays.y}};
  if (pass == ConvPass::kForwardWithSums) {
    named.push_back({kSums, arrays.sums});
    named.push_back({kSquares, arrays.squares});
  }
  return named;
}

ConvolutionGraph::ConvolutionGraph(ConvPass pass, const ConvShape& shape, cudnnHandle_t handle)
    : x_(tensor(kX, {shape.n, shape.channels, shape.height, shape.width}, shape.type)),
      // cuDNN sees the number of groups from the channels of x and w.
      w_(tensor(kW,
                {shape.out_channels, shape.channels / shape.groups, shape.kernel_h, shape.kernel_w},
                shape.type)),
      y_(tensor(kY, {shape.n, shape.out_channels, shape.out_height(), shape.out_width()},
                shape.type)),
      window_(window_of(shape)),
      graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  add_convolution(pass);
  if (pass == ConvPass::kForwardWithSums) add_sums(shape.out_channels);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  if (handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph_.finalize();
}

void ConvolutionGraph::add_convolution(ConvPass pass) {
  const PassNames names = names_of(pass);
  Descriptor& operation = operations_.emplace_back(names.operation);
  operation.set(names.x, x_);
  operation.set(names.w, w_);
  operation.set(names.y, y_);
  operation.set(names.convolution, window_);
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, 0.0F);
  operation.finalize();
}

void ConvolutionGraph::add_sums(std::int64_t channels) {
  sums_ = tensor(kSums, {1, channels, 1, 1}, Precision::kF32);
  squares_ = tensor(kSquares, {1, channels, 1, 1}, Precision::kF32);
  Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y_);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, *sums_);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, *squares_);
  operation.finalize();
}

}  // namespace syncopate::cuda
