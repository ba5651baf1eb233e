// The table behind --collective, and the functions that make the ranks of one task.
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

namespace syncopate {

// The transport of --collective ring. kAuto is shared memory if all tasks run on one host, else
// TCP.
enum class Transport : std::uint8_t { kAuto, kTcp, kShm };
constexpr auto named_values(Transport /*type*/) {
  return std::array{Named{"auto", Transport::kAuto}, Named{"tcp", Transport::kTcp},
                    Named{"shm", Transport::kShm}};
}

struct CollectiveOptions {
  std::string name = "auto";  // a row of collectives(), or auto
  int num_local_ranks = 1;
  std::int64_t block_elements = 0;  // number of elements of each rank's gradient block
  // The longest wait for ranks that are alive. It includes the time that the chief takes to write a
  // checkpoint.
  std::chrono::seconds timeout{600};
  // The membership; null for a task without other tasks. Must outlive the collectives.
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

// Makes the collectives of the named row. "auto" is `local` for a task without other tasks, else
// `ring`; "nccl" makes the same as "auto", since NCCL sums gradients beside the collective
// (strategies/join_replicas.h). Throws UsageError for an unknown name, and UnavailableError with
// what to install for a collective that this build lacks.
std::vector<std::unique_ptr<Collective>> make_collectives(const CollectiveOptions& options);

// In shared_memory.cc: collectives of replicas that are threads of one process.
std::vector<std::unique_ptr<Collective>> make_local_collectives(const CollectiveOptions& options);
// In shared_memory.cc: the tasks map a segment that contains all gradient blocks. Empty on every
// task when they cannot map one. There must be several tasks.
std::vector<std::unique_ptr<Collective>> make_shared_memory_collectives(
    const CollectiveOptions& options);
// In ring_collective.cc: a ring all-reduce over TCP.
std::vector<std::unique_ptr<Collective>> make_tcp_ring_collectives(
    const CollectiveOptions& options);
// In mpi.cc, or mpi_absent.cc: collectives that call MPI.
std::vector<std::unique_ptr<Collective>> make_mpi_collectives(const CollectiveOptions& options);

}  // namespace syncopate
