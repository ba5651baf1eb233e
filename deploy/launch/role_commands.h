// Builds the commands that start the roles of a job on this machine: one process for each role, or
// mpirun, which starts the workers. A role learns its place in the job from SYNCOPATE_* variables
// (strategies/cluster/resolvers/).
#pragma once

#include <string>
#include <vector>

#include "deploy/launch/launch_rules.h"
#include "deploy/launch/role_process.h"

namespace syncopate {

struct LocalRoles {
  // The arguments of every worker of the job; [0] is the path of the program.
  std::vector<std::string> arguments;
  // The arguments of every server; empty: `arguments`.
  std::vector<std::string> server_arguments = {};
  int workers = 1;
  int servers = 0;
  // The environment of every role. Variables that launch sets itself are replaced.
  Environment::Variables environment;
  bool restarts = false;  // true if a failed role may be started again while the others go on
  // True if each worker is bound to its own part of the CPUs. Workers are not bound if there are
  // too few CPUs. Without binding, the scheduler sometimes puts two synchronous workers on one CPU.
  bool bind_workers = true;
  std::vector<Join> joins = {};  // the late workers, only in a job with servers
};

// True for a variable that tells a role its place in the job. Only launch may set such variables.
bool is_set_by_launch(std::string_view variable) noexcept;

// A socket that listens on 127.0.0.1, or on ::1 if this machine has no IPv4, at a port that the
// system chooses. open_rendezvous() throws UsageError if the socket cannot be created.
struct RendezvousSocket {
  FileDescriptor socket;
  std::string endpoint;  // an address such as "127.0.0.1:40123" or "[::1]:40123"
};
RendezvousSocket open_rendezvous();

// Returns the commands of all roles, with a new socket and a new nonce at each call. The first
// command starts the role that hosts the rendezvous: server 0, or worker 0 in a job without
// servers. That role inherits the listening socket, so that no other program can take the port. If
// the role may be started again, the launcher keeps the socket open with the command, and
// connections wait in the socket's queue until the role is back. Otherwise only the role has the
// socket, and connections are refused as soon as the role ends. Throws UsageError or FileError if
// the socket or the nonce cannot be created.
std::vector<RoleCommand> make_local_roles(const LocalRoles& roles);

struct MpirunJob {
  // The arguments of every worker under mpirun; [0] is the path of the program.
  std::vector<std::string> arguments;
  int workers = 1;
  Environment::Variables environment;
  // The names of variables in `environment` that workers on other nodes need too.
  std::vector<std::string> exported;
};

// Returns the mpirun command, with a new port and a new nonce at each call. Each worker reads its
// rank from Open MPI's variables and the rendezvous address from SYNCOPATE_* variables
// (strategies/cluster/resolvers/resolve_rank_variables.cc). Throws UnavailableError if mpirun is
// not in the PATH of `environment`.
RoleCommand make_mpirun(const MpirunJob& job);

}  // namespace syncopate
