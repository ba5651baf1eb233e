#include "strategies/cluster/prepare_rendezvous.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"

namespace syncopate {
namespace {

bool is_known(const std::string& host) {
  try {
    // A name server that does not answer now may do so later: whoever calls tries again.
    look_up({host, 1}, 0);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// One can only listen at an address that one has.
bool is_our_own(const std::string& address) {
  try {
    return Listener(Endpoint{address, 0}).descriptor() >= 0;
  } catch (const UsageError&) {
    return false;
  }
}

// "n1" and "n1.example.org" are one.
bool is_same_host(const std::string& left, const std::string& right) {
  return left.substr(0, left.find('.')) == right.substr(0, right.find('.'));
}

// The kernel's choice for calls to there; no message is sent. "" where there is none.
std::string address_towards(const Endpoint& there) {
  const Addresses found = look_up(there, 0);
  for (const addrinfo* to = found.list.get(); to != nullptr; to = to->ai_next) {
    const FileDescriptor socket(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket && connect(socket.get(), to->ai_addr, to->ai_addrlen) == 0) {
      return local_address(socket.get());
    }
  }
  return "";
}

void open_port(ClusterSpec& spec) {
  try {
    spec.rendezvous_descriptor = Listener(Endpoint{"", spec.rendezvous->port}).release().release();
  } catch (const UsageError& error) {
    throw UsageError("the rendezvous of this job, port " + std::to_string(spec.rendezvous->port) +
                     ", follows from " + spec.source + "'s variables and cannot be opened (" +
                     error.what() + "); give all tasks --rendezvous " + spec.rendezvous->host +
                     ":PORT with a free one");
  }
}

}  // namespace

NetworkNames names_of_this_machine() { return {is_known, is_our_own, own_host_name()}; }

void prepare_rendezvous(ClusterSpec& spec, const NetworkNames& names) {
  if (!spec.is_derived || !spec.rendezvous) return;
  // Others hear it where all meet; servers and their workers do not compare.
  if (spec.is_met() || spec.num_servers > 0) {
    const std::string line =
        contradiction(spec, spec.role, spec.index, {spec.node, spec.local_rank});
    if (!line.empty()) throw UsageError(line);
  }
  std::string& host = spec.rendezvous->host;
  if (!names.is_known(host)) {
    // Several nodes on one machine do not bear its name.
    const bool shares_machine = !spec.node.empty() && !is_same_host(spec.node, names.host_name);
    const std::string& other = spec.other_host;
    const bool is_right = !other.empty() && ((spec.is_other_host_certain && !is_loopback(other)) ||
                                             (shares_machine && names.is_our_own(other)));
    if (!is_right) {
      throw UsageError("nobody knows the host '" + host + "', where " + spec.source +
                       " runs the first task; give all tasks --rendezvous HOST with a name or an "
                       "address of that machine");
    }
    log(LogLevel::kDebug, "nobody knows the host '" + host + "': " + spec.other_host + ", where " +
                              "srun runs, is called instead");
    host = spec.other_host;
  }
  if (spec.is_met()) open_port(spec);
}

std::string own_host_towards(const ClusterSpec& spec) {
  const std::string& there = spec.rendezvous->host;
  if (spec.is_met()) return there;
  const std::string address = address_towards(*spec.rendezvous);
  // On one machine with the task that is met: others reach it by the same name.
  return address.empty() || is_loopback(address) ? there : address;
}

}  // namespace syncopate
