// Checks and completes a rendezvous address that a resolver derived from a scheduler's node names
// and job numbers. Resolvers do not use the network; this file looks up names and opens the port.
#pragma once

#include <functional>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// The look-ups that prepare_rendezvous() makes; tests replace them.
struct NetworkNames {
  std::function<bool(const std::string& host)> is_known;       // whether the name can be looked up
  std::function<bool(const std::string& address)> is_our_own;  // an address of this machine
  std::string host_name;                                       // the name of this machine
};
NetworkNames names_of_this_machine();

// Prepares the rendezvous; does nothing unless spec.rendezvous.is_derived. The task that hosts the
// rendezvous opens its port at the address of the host's name, or at every interface where that is
// not certain (listening_endpoint()), and keeps the socket in spec.rendezvous.descriptor. Every
// task replaces a host name that it cannot look up by the fallback address. Throws UsageError when
// the port is taken, when the host is unknown, or when this task does not run where its source
// places it.
void prepare_rendezvous(ClusterSpec& spec, const NetworkNames& names = names_of_this_machine());

// Returns the host name or address that tasks on other hosts use to reach a socket of this task.
// For the task that hosts the rendezvous it is the rendezvous' host, for others the local
// address of a connection to it. Throws UsageError for an unknown host.
std::string own_host_towards(const ClusterSpec& spec);

}  // namespace syncopate
