#include "models/backend/cuda/operations.h"

#include <fmt/format.h>

namespace syncopate::cuda {

std::string_view name(ConvPass pass) noexcept {
  switch (pass) {
    case ConvPass::kForward:
      return "forward";
    case ConvPass::kForwardWithSums:
      return "forward with sums";
    case ConvPass::kInputGradient:
      return "input gradient";
    case ConvPass::kWeightGradient:
      return "weight gradient";
  }
  return "?";
}

std::string_view name(Epilogue epilogue) noexcept {
  switch (epilogue) {
    case Epilogue::kNone:
      return "none";
    case Epilogue::kBias:
      return "bias";
    case Epilogue::kRowSums:
      return "row sums";
  }
  return "?";
}

std::string to_string(const ConvShape& shape) {
  const Padding& pad = shape.pad;
  return fmt::format(
      "{}x{}x{}x{} by {}x{}x{}, stride {}, pad {}, {}{}", shape.n, shape.height, shape.width,
      shape.channels, shape.out_channels, shape.kernel_h, shape.kernel_w, shape.stride,
      pad.is_one_number() ? fmt::format("{}", pad.top)
                          : fmt::format("{} {} {} {}", pad.top, pad.left, pad.bottom, pad.right),
      name(shape.type), shape.groups == 1 ? "" : fmt::format(", {} groups", shape.groups));
}

std::string to_string(const ProductShape& shape) {
  return fmt::format(
      "[{}, {}] by [{}, {}], {}{}{}", shape.m, shape.k, shape.k, shape.n, name(shape.type),
      shape.epilogue == Epilogue::kNone ? "" : fmt::format(", with {}", name(shape.epilogue)),
      shape.batch == 1 ? "" : fmt::format(", {} times", shape.batch));
}

}  // namespace syncopate::cuda
