#include "strategies/cluster/prepare_rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"

namespace syncopate {
namespace {

bool is_known(const std::string& host) {
  try {
    // A host counts as known when no name server answers, since connecting retries the look-up.
    look_up({host, 1}, 0);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// Compares host names without their domains: "n1" and "n1.example.org" are the same host.
bool is_same_host(const std::string& left, const std::string& right) {
  return left.substr(0, left.find('.')) == right.substr(0, right.find('.'));
}

// The local address that the kernel would use for a connection to the endpoint; "" if it has no
// route. Connecting a datagram socket sends no packet.
std::string address_towards(const Endpoint& endpoint) {
  const Addresses found = look_up(endpoint, 0);
  for (const addrinfo* to = found.list.get(); to != nullptr; to = to->ai_next) {
    const FileDescriptor socket(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket && connect(socket.get(), to->ai_addr, to->ai_addrlen) == 0) {
      return local_address(socket.get());
    }
  }
  return "";
}

// Opens the port of the rendezvous and keeps the listening socket in the spec.
void open_port(ClusterSpec& spec, const NetworkNames& names) {
  const Endpoint& endpoint = *spec.rendezvous.endpoint;
  Endpoint at = listening_endpoint(endpoint.host, endpoint.port);
  // Tasks that do not know the host's name call the fallback address.
  const std::string& fallback = spec.rendezvous.fallback_host;
  if (!fallback.empty() && fallback != at.host && names.is_our_own(fallback)) at.host = "";
  try {
    spec.rendezvous.descriptor = Listener(at).release().release();
  } catch (const UsageError& error) {
    throw UsageError(fmt::format(
        "the rendezvous of this job, port {}, follows from {}'s variables and cannot be "
        "opened ({}); give all tasks --rendezvous {}:PORT with a free one",
        endpoint.port, spec.source, error.what(), endpoint.host));
  }
}

// Replaces a host name that cannot be looked up by the fallback address, if that address is known
// to be the listening task's.
void use_fallback_host(ClusterSpec& spec, const NetworkNames& names) {
  Rendezvous& rendezvous = spec.rendezvous;
  std::string& host = rendezvous.endpoint->host;
  // Several Slurm nodes can share a machine; their names are then not the machine's host name.
  const bool shares_machine = !spec.node.empty() && !is_same_host(spec.node, names.host_name);
  const std::string& fallback = rendezvous.fallback_host;
  const bool is_right =
      !fallback.empty() && ((rendezvous.is_fallback_certain && !is_loopback(fallback)) ||
                            (shares_machine && names.is_our_own(fallback)));
  if (!is_right) {
    throw UsageError(
        fmt::format("the host '{}', where {} runs the first task, is unknown on this machine; give "
                    "all tasks --rendezvous HOST with a name or an address of that machine",
                    host, spec.source));
  }
  host = fallback;
}

}  // namespace

NetworkNames names_of_this_machine() { return {is_known, is_own_address, own_host_name()}; }

void prepare_rendezvous(ClusterSpec& spec, const NetworkNames& names) {
  if (!spec.rendezvous.is_derived || !spec.rendezvous.endpoint) return;
  // Without servers, rank 0 compares places when the tasks meet. Servers and their workers do not
  // exchange places, so each of those tasks checks its own place here.
  if (spec.hosts_rendezvous() || spec.num_servers > 0) {
    const std::string line =
        contradiction(spec, spec.role, spec.index, {spec.node, spec.local_rank});
    if (!line.empty()) throw UsageError(line);
  }
  if (!names.is_known(spec.rendezvous.endpoint->host)) use_fallback_host(spec, names);
  if (spec.hosts_rendezvous()) open_port(spec, names);
}

std::string own_host_towards(const ClusterSpec& spec) {
  const Endpoint& rendezvous = *spec.rendezvous.endpoint;
  if (spec.hosts_rendezvous()) return rendezvous.host;
  const std::string address = address_towards(rendezvous);
  // If this task would connect from a loopback address, it runs on the machine that hosts the
  // rendezvous, and other hosts reach that machine by the rendezvous' host name.
  return address.empty() || is_loopback(address) ? rendezvous.host : address;
}

}  // namespace syncopate
