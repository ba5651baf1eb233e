#include "strategies/collective/arguments.h"

#include <string>

#include "models/base/errors.h"

namespace syncopate {

void check_all_reduce(const Tensor& tensor) {
  const bool summable = tensor.dtype() == DType::kF32 || tensor.dtype() == DType::kBf16;
  if (summable && tensor.device().kind == DeviceKind::kCpu) return;
  throw ShapeError("all_reduce: the tensor is " + std::string(name(tensor.dtype())) + " on " +
                   to_string(tensor.device()) + "; expected f32 or bf16 on the host");
}

void check_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int size) {
  const std::size_t expected = mine.size() * static_cast<std::size_t>(size);
  if (all.size() == expected && mine.size() <= Collective::kMostGatheredBytes) return;
  throw ShapeError("all_gather: " + std::to_string(mine.size()) + " bytes of each of " +
                   std::to_string(size) + " ranks into " + std::to_string(all.size()) +
                   "; expected " + std::to_string(expected) + ", and at most " +
                   std::to_string(Collective::kMostGatheredBytes) + " per rank");
}

void check_broadcast(int root, int size) {
  if (root >= 0 && root < size) return;
  throw ShapeError("broadcast: from rank " + std::to_string(root) + "; expected 0 to " +
                   std::to_string(size - 1));
}

}  // namespace syncopate
