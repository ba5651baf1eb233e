#include "models/backend/cuda/operations.h"

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
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  return text(shape.n) + "x" + text(shape.height) + "x" + text(shape.width) + "x" +
         text(shape.channels) + " by " + text(shape.out_channels) + "x" + text(shape.kernel_h) +
         "x" + text(shape.kernel_w) + ", stride " + text(shape.stride) + ", pad " +
         text(shape.pad) + ", " + std::string(name(shape.type));
}

std::string to_string(const ProductShape& shape) {
  return "[" + std::to_string(shape.m) + ", " + std::to_string(shape.k) + "] by [" +
         std::to_string(shape.k) + ", " + std::to_string(shape.n) + "], " +
         std::string(name(shape.type)) +
         (shape.epilogue == Epilogue::kNone ? "" : ", with " + std::string(name(shape.epilogue)));
}

}  // namespace syncopate::cuda
