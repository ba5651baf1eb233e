// The workers of a job under Open MPI's mpirun, which is then the one process that launch starts.
#pragma once

#include <string>
#include <vector>

#include "deploy/launch/role_process.h"

namespace syncopate {

struct MpirunJob {
  std::vector<std::string> arguments;  // of every worker; [0]: the path of the program
  int workers = 1;
  Environment::Variables environment;
  std::vector<std::string> exported;  // names in `environment` that workers on other nodes need too
};

// Fresh each time: another port, another nonce. Each worker learns its rank from Open MPI, and
// where to meet from us (strategies/cluster/resolvers/resolve_rank_variables.cc). Throws
// UnavailableError when there is no mpirun in the PATH of `environment`.
RoleCommand make_mpirun(const MpirunJob& job);

}  // namespace syncopate
