#include "models/backend/cpu/algorithm_table.h"

namespace syncopate {
namespace {

constexpr auto kWinograd = ConvAlgorithm::kWinograd;
[[maybe_unused]] constexpr auto kDirect = ConvAlgorithm::kDirect;

constexpr AlgorithmRow kRows[] = {
#include "models/backend/cpu/algorithm_rows.inc"
};

}  // namespace

std::span<const AlgorithmRow> algorithm_table() noexcept { return kRows; }

ConvAlgorithm choose_algorithm(const ConvProblem& problem, ConvPass pass) noexcept {
  const bool listed_kind = problem.kernel_h == 3 && problem.kernel_w == 3 && problem.stride == 1 &&
                           problem.pad == 1 && problem.h == problem.w;
  if (!listed_kind) return ConvAlgorithm::kDirect;
  for (const AlgorithmRow& row : kRows) {
    if (row.c != problem.c || row.k != problem.k || row.h != problem.h) continue;
    switch (pass) {
      case ConvPass::kForward:
        return row.forward;
      case ConvPass::kBackwardData:
        return row.backward_data;
      case ConvPass::kBackwardWeights:
        return row.backward_weights;
    }
  }
  return ConvAlgorithm::kDirect;
}

}  // namespace syncopate
