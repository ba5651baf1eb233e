#include "worker/run/job_membership.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "models/base/deadline.h"
#include "models/base/secret.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/handshake.h"
#include "worker/run/run_sizes.h"

namespace syncopate {
namespace {

// Rank 0 opens a port and draws a nonce, and MPI broadcasts both, because mpirun gives ranks but no
// endpoint. Returns the listener of rank 0.
Listener choose_rendezvous(MpiSession& mpi, ClusterSpec& cluster) {
  const bool one_host = cluster.local_size == cluster.world_size;
  const std::string host = one_host ? loopback_address() : own_host_name();
  Listener listener(listening_endpoint(host, 0));
  const std::string text =
      mpi.broadcast(to_string(Endpoint{host, listener.port()}) + " " + random_nonce());
  const std::size_t space = text.find(' ');
  cluster.rendezvous.endpoint = parse_endpoint(text.substr(0, space), "MPI's broadcast");
  cluster.nonce = text.substr(std::min(space, text.size() - 1) + 1);
  return listener;
}

// Whether the error begins with the name of another task: that task reported it through shared
// memory.
bool repeats_failure(const Membership& membership, const std::string& reason) {
  return std::ranges::any_of(membership.members(), [&](const Member& member) {
    return member.index != membership.index() &&
           reason.starts_with(describe(member.index, member.host, member.pid));
  });
}

// Returns the error that this task saw, without the advice (the text after "; ") that the error
// message of the failed task, `verdict`, also has.
std::string noticed_here(const std::string& seen, const std::string& verdict) {
  const std::size_t advice = seen.find("; ");
  const bool is_repeated = advice != std::string::npos && verdict.ends_with(seen.substr(advice));
  return " (noticed here as: " + seen.substr(0, is_repeated ? advice : std::string::npos) + ")";
}

}  // namespace

bool meets_through_mpi(const TrainOptions& options) {
  return options.cluster.world_size > 1 && !options.cluster.rendezvous.endpoint &&
         options.cluster.source == "Open MPI";
}

ClusterSpec with_rendezvous(const TrainOptions& options, MpiSession* mpi) {
  ClusterSpec cluster = options.cluster;
  if (meets_through_mpi(options)) {
    Listener listener = choose_rendezvous(*mpi, cluster);
    if (cluster.is_chief()) cluster.rendezvous.descriptor = listener.release().release();
  }
  return cluster;
}

std::unique_ptr<Membership> meet(const TrainOptions& options, MpiSession* mpi) {
  if (options.cluster.world_size == 1 || has_servers(options)) return nullptr;
  const ClusterSpec cluster = with_rendezvous(options, mpi);
  std::unique_ptr<Membership> membership =
      join_cluster(cluster, {.num_replicas = options.strategy.replicas,
                             .agreements = agreements_of(options),
                             .rendezvous_timeout = options.rendezvous_timeout,
                             .peer_timeout = options.peer_timeout});
  report_meeting(cluster);
  return membership;
}

std::chrono::milliseconds served_peer_timeout(std::chrono::milliseconds given,
                                              const ClusterSpec& cluster) {
  constexpr std::chrono::seconds kOnOneMachine(5);
  constexpr std::chrono::seconds kElsewhere(15);
  if (given.count() > 0) return given;
  const std::string host = cluster.rendezvous.endpoint ? cluster.rendezvous.endpoint->host : "";
  const bool is_one_machine =
      cluster.source == "launch" || host == "127.0.0.1" || host == "::1" || host == "localhost";
  return is_one_machine ? kOnOneMachine : kElsewhere;
}

void end_job(Membership& membership, const std::exception& error, bool peer_began) {
  constexpr std::chrono::seconds kVerdictMayTake(1);
  constexpr std::chrono::milliseconds kVerdictPollInterval(5);
  const std::string seen = error.what();
  // If this task's error only repeats another task's error, this task waits twice as long for the
  // other task's report, so that it does not report first.
  const Deadline deadline =
      Deadline::after(repeats_failure(membership, seen) ? 2 * kVerdictMayTake : kVerdictMayTake);
  while (peer_began && !membership.failure() && !deadline.passed()) {
    std::this_thread::sleep_for(kVerdictPollInterval);
  }
  const std::optional<std::string> verdict = membership.failure();
  if (!verdict || !peer_began) {
    membership.fail(seen);
    throw;
  }
  if (verdict->ends_with(seen)) throw PeerError(*verdict);
  throw PeerError(*verdict + noticed_here(seen, *verdict));
}

}  // namespace syncopate
