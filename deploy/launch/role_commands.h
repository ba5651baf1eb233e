// The commands that start the roles of a job on this machine: one process for each role, or mpirun,
// which starts the workers. Roles learn their place from SYNCOPATE_* variables
// (strategies/cluster/resolvers/).
#pragma once

#include <string>
#include <vector>

#include "deploy/launch/join.h"
#include "deploy/launch/role_process.h"

namespace syncopate {

struct LocalRoles {
  std::vector<std::string> arguments;  // of every role; [0]: the path of the program
  int workers = 1;
  int servers = 0;
  Environment::Variables environment;  // of every role; what we set ourselves is replaced
  bool restarts = false;  // a role that failed may be started again while the others go on
  // Workers get a part of the CPUs each, where they go round: left to the scheduler, two that run
  // in step are now and then put on one.
  bool bind_workers = true;
  std::vector<Join> joins = {};  // workers, of a job with servers, that come later
};

// The variables that tell a role who it is: nobody else may set them.
bool is_set_by_launch(std::string_view variable) noexcept;

// 128 random bits in hexadecimal: two incarnations of a job never take each other's tasks for
// theirs. Throws FileError.
std::string make_nonce();

// A socket on 127.0.0.1 at a port that the system chooses, listening. Throws FileError.
struct RendezvousSocket {
  FileDescriptor socket;
  std::string endpoint;  // "127.0.0.1:40123"
};
RendezvousSocket open_rendezvous();

// Fresh each time: another socket, another nonce. The role at which all meet is first, server 0 or,
// without servers, worker 0. It inherits the socket, so that nobody can take the port before it
// listens. Whoever may start that role again keeps the command, and with it the socket: calls wait
// there meanwhile. Else it alone holds the socket, and calls are refused at once should it die.
// Throws FileError.
std::vector<RoleCommand> make_local_roles(const LocalRoles& roles);

struct MpirunJob {
  std::vector<std::string> arguments;  // of every worker; [0]: the path of the program
  int workers = 1;
  Environment::Variables environment;
  std::vector<std::string> exported;  // names in `environment` that workers on other nodes need too
};

// Fresh each time: another port, another nonce. Each worker learns its rank from Open MPI, and
// where to meet from us (strategies/cluster/resolvers/resolve_rank_variables.cc). Throws UnavailableError
// when there is no mpirun in the PATH of `environment`.
RoleCommand make_mpirun(const MpirunJob& job);

}  // namespace syncopate
