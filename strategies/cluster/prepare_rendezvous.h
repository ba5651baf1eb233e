// The last step before tasks meet at a rendezvous that was worked out from a scheduler's names and
// numbers: the resolver that did so saw no network, and this does.
#pragma once

#include <functional>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// What is asked of the network and of this machine.
struct NetworkNames {
  std::function<bool(const std::string& host)> is_known;       // somebody knows its address
  std::function<bool(const std::string& address)> is_our_own;  // of this machine
  std::string host_name;                                       // of this machine
};
NetworkNames names_of_this_machine();

// Does nothing to a rendezvous that somebody chose. Else the task that is met opens its port, at
// every interface, so that the name by which others call it does not matter, and the spec holds the
// open socket from then on; the others get a host they can look up. Throws UsageError: the port is
// taken; nobody knows the host; this task does not run where its source puts it.
void prepare_rendezvous(ClusterSpec& spec, const NetworkNames& names = names_of_this_machine());

// Under what address tasks on other hosts reach a socket of this one: as the rendezvous for the
// task that is met; for others the address from which they would call it. Throws UsageError for an
// unknown host.
std::string own_host_towards(const ClusterSpec& spec);

}  // namespace syncopate
