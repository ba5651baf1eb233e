// The collective of ranks whose gradient blocks lie in memory that all of them map: threads of one
// process, or processes of one host. Each adds pieces straight from the others' blocks and stores
// the sums to all of them; nothing is copied in between.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "strategies/collective/collective.h"
#include "strategies/collective/work_board.h"

namespace syncopate {

// What the ranks share, as this process sees it.
struct SharedRanks {
  std::shared_ptr<Buffer> memory;  // holds the board; and the blocks, or they hold their own
  std::unique_ptr<WorkBoard> board;
  std::vector<Tensor> blocks;  // [elements] f32 of every rank, by rank
};

std::unique_ptr<Collective> make_shared_memory_collective(std::shared_ptr<SharedRanks> ranks,
                                                          int rank,
                                                          std::chrono::nanoseconds patience);

}  // namespace syncopate
