// The ranks of a task that is alone: threads of this process.
#include <utility>

#include "models/base/errors.h"

#include "strategies/collective/collectives.h"
#include "strategies/collective/shared_memory.h"

namespace syncopate {

std::vector<std::unique_ptr<Collective>> make_local_collectives(const CollectiveOptions& options) {
  if (options.membership != nullptr && options.membership->members().size() > 1) {
    throw UsageError(
        "--collective local joins the replicas of one task, and this job has several; choose ring "
        "or mpi");
  }
  const int n = options.num_local_ranks;
  auto shared = std::make_shared<SharedRanks>();
  shared->memory = make_host_buffer(WorkBoard::size_bytes(n));
  shared->board = std::make_unique<WorkBoard>(shared->memory->data(), n);
  shared->blocks.reserve(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    shared->blocks.push_back(make_host_tensor({options.block_elements}, DType::kF32));
  }
  std::vector<std::unique_ptr<Collective>> ranks;
  ranks.reserve(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    ranks.push_back(make_shared_memory_collective(shared, r, options.patience));
  }
  return ranks;
}

}  // namespace syncopate
