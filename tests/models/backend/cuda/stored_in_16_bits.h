// Makes the interpreter round as a device that stores 16 bits: it computes in double precision and
// rounds stored values. Without rounding, a value beside a kink (of a ReLU, a max-pool) would fall
// to the other side and take its gradient along.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "models/backend/backend.h"
#include "models/graph/fused_groups.h"
#include "tests/reference/interpreter.h"

namespace syncopate::cuda {

inline void round_to(Precision precision, reference::Values& values) {
  std::ranges::transform(values, values.begin(), [precision](double value) {
    const auto single = static_cast<float>(value);
    return static_cast<double>(precision == Precision::kBf16
                                   ? static_cast<float>(__float2bfloat16(single))
                                   : static_cast<float>(__float2half(single)));
  });
}

// Returns a function that rounds products before their bias is added, and the outputs of groups.
// `graph` must outlive the function.
inline reference::Rounding as_stored(const Graph& graph, Precision precision) {
  const auto groups = match_groups(graph, /*fuse=*/true, /*pools_first_layer=*/false);
  return [&graph, precision, groups](int number, reference::Values& values) {
    const auto is_passed_on = [&](const FusedGroup& group) { return group.output == number; };
    const Operation& operation = graph.nodes[static_cast<std::size_t>(number)].operation;
    const bool is_product = std::holds_alternative<Conv2dOp>(operation) ||
                            std::holds_alternative<ConvTranspose2dOp>(operation) ||
                            std::holds_alternative<DenseOp>(operation);
    if (is_product || std::ranges::any_of(groups, is_passed_on)) round_to(precision, values);
  };
}

}  // namespace syncopate::cuda
