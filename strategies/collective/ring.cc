// The project's own all-reduce between processes. Where all tasks share a host their gradient
// blocks lie in one segment of memory; else a ring over TCP (tcp_ring.cc).
#include <utility>

#include "models/base/errors.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/shared_memory.h"
#include "strategies/collective/shared_segment.h"

namespace syncopate {

std::vector<std::unique_ptr<Collective>> make_ring_collectives(const CollectiveOptions& options) {
  if (options.transport == Transport::kTcp) return make_tcp_ring_collectives(options);
  if (options.membership == nullptr || options.membership->members().size() == 1) {
    return make_local_collectives(options);
  }
  const std::vector<Member>& members = options.membership->members();
  const Member& me = members[static_cast<std::size_t>(options.membership->index())];
  const int num_ranks = members.back().first_replica + members.back().num_replicas;
  auto segment = share_segment(*options.membership, WorkBoard::size_bytes(num_ranks),
                               options.block_elements, options.patience);
  if (segment == nullptr && options.transport == Transport::kShm) {
    throw UsageError(
        "--transport shm: the tasks cannot map one segment of memory, they are on several hosts or "
        "in containers with networks of their own; choose auto or tcp");
  }
  if (segment == nullptr) return make_tcp_ring_collectives(options);

  auto shared = std::make_shared<SharedRanks>();
  shared->board = std::make_unique<WorkBoard>(segment->memory->data(), num_ranks);
  shared->memory = std::move(segment->memory);
  shared->blocks = std::move(segment->blocks);
  std::vector<std::unique_ptr<Collective>> ranks;
  ranks.reserve(static_cast<std::size_t>(me.num_replicas));
  for (int r = 0; r < me.num_replicas; ++r) {
    ranks.push_back(make_shared_memory_collective(shared, me.first_replica + r, options.patience));
  }
  return ranks;
}

}  // namespace syncopate
