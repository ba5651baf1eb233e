// The table behind --collective, and the functions that make the collectives of a task's replicas.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/enum_names.h"
#include "ps/net/slow_link.h"
#include "strategies/cluster/membership.h"
#include "strategies/collective/collective.h"
#include "strategies/collective/progress_deadline.h"

namespace syncopate {

// The transport of --collective ring. kAuto uses shared memory if all tasks run on one host, and
// TCP otherwise.
enum class Transport : std::uint8_t { kAuto, kTcp, kShm };
constexpr auto named_values(Transport /*type*/) {
  return std::array{Named{"auto", Transport::kAuto}, Named{"tcp", Transport::kTcp},
                    Named{"shm", Transport::kShm}};
}

struct CollectiveOptions {
  std::string name = "auto";  // a row of collectives(), or auto
  int num_local_ranks = 1;
  std::int64_t block_elements = 0;  // number of elements of each rank's gradient block
  // The longest wait for ranks that are alive. It must be longer than the chief takes to write a
  // checkpoint. The wait of an all-gather goes on while the slowest rank makes progress.
  std::chrono::nanoseconds timeout = std::chrono::seconds(600);
  PeerProgress progress{};  // empty: unknown
  // The membership; null if this is the only task of the job. Must outlive the collectives.
  Membership* membership = nullptr;
  Transport transport = Transport::kAuto;
  Link link;  // the emulated network link of this task, used by the ring over TCP
};

struct CollectiveRow {
  std::string_view name;
  std::string_view help;
  // Makes one collective per local rank. Throws UsageError, UnavailableError, PeerError.
  std::vector<std::unique_ptr<Collective>> (*make)(const CollectiveOptions&);
};
std::span<const CollectiveRow> collectives() noexcept;

// Makes the collectives of the row options.name. "auto" is `local` for a job with one task, and
// `ring` for other jobs. "nccl" makes the same collectives as "auto", because NCCL sums only
// gradients, in addition to a collective on the host (strategies/join_replicas.h). Throws
// UsageError for an unknown name. Throws UnavailableError, which says what to install, for a
// collective that this build lacks.
std::vector<std::unique_ptr<Collective>> make_collectives(const CollectiveOptions& options);

// Makes collectives for replicas that are threads of one process. Defined in shared_memory.cc.
std::vector<std::unique_ptr<Collective>> make_local_collectives(const CollectiveOptions& options);
// Makes collectives between tasks that all map one segment with the gradient blocks of all ranks.
// Returns an empty vector on every task if not all tasks can map the segment. Precondition: the job
// has several tasks. Defined in shared_memory.cc.
std::vector<std::unique_ptr<Collective>> make_shared_memory_collectives(
    const CollectiveOptions& options);
// Makes collectives with a ring all-reduce over TCP. Defined in ring_collective.cc.
std::vector<std::unique_ptr<Collective>> make_tcp_ring_collectives(
    const CollectiveOptions& options);
// Makes collectives that call MPI. Defined in mpi.cc, or in mpi_absent.cc for builds without MPI.
std::vector<std::unique_ptr<Collective>> make_mpi_collectives(const CollectiveOptions& options);

}  // namespace syncopate
