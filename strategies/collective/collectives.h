// The table behind --collective, and how the ranks of one task are made.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ps/net/link.h"
#include "strategies/cluster/membership.h"
#include "strategies/collective/collective.h"

namespace syncopate {

// What ring sums through: shared memory where all tasks are on one host, else TCP; or one of them.
enum class Transport : std::uint8_t { kAuto, kTcp, kShm };

struct CollectiveOptions {
  std::string name = "auto";  // a row of collectives(), or auto
  int num_local_ranks = 1;
  std::int64_t block_elements = 0;  // of each rank's gradient block
  // How long a wait may last while everybody is alive: a chief that writes a checkpoint is waited
  // for.
  std::chrono::seconds patience{600};
  // Null: this task is alone. Outlives the collectives.
  Membership* membership = nullptr;
  Transport transport = Transport::kAuto;
  Link link;  // of the task, where it rings over TCP
};

struct CollectiveRow {
  std::string_view name;
  std::string_view help;
  // One per local rank, in order. Throws UsageError, UnavailableError, PeerError.
  std::vector<std::unique_ptr<Collective>> (*make)(const CollectiveOptions&);
};
std::span<const CollectiveRow> collectives() noexcept;

// auto: `local` for a task that is alone, else `ring`; so is nccl, which sums beside them
// (strategies/join_replicas.h).
// Throws UsageError for an unknown name, UnavailableError for one that this build lacks: with what
// to install.
std::vector<std::unique_ptr<Collective>> make_collectives(const CollectiveOptions& options);

// strategies/collective/local.cc
std::vector<std::unique_ptr<Collective>> make_local_collectives(const CollectiveOptions& options);
// strategies/collective/ring.cc: shared memory where all tasks share a host, else TCP
std::vector<std::unique_ptr<Collective>> make_ring_collectives(const CollectiveOptions& options);
// strategies/collective/tcp_ring.cc
std::vector<std::unique_ptr<Collective>> make_tcp_ring_collectives(
    const CollectiveOptions& options);
// strategies/collective/mpi.cc or mpi_absent.cc
std::vector<std::unique_ptr<Collective>> make_mpi_collectives(const CollectiveOptions& options);

}  // namespace syncopate
