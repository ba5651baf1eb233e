#include "deploy/launch/mpirun.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include "deploy/launch/local_roles.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

std::string find_mpirun(const Environment::Variables& environment) {
  const auto path = environment.find("PATH");
  std::istringstream folders(path == environment.end() ? "/usr/bin:/bin" : path->second);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path program = std::filesystem::path(folder) / "mpirun";
    if (!folder.empty() && access(program.c_str(), X_OK) == 0) return program.string();
  }
  throw UnavailableError(
      "--collective mpi: there is no mpirun in PATH; install the package openmpi-bin, or leave "
      "--collective mpi out");
}

}  // namespace

RoleCommand make_mpirun(const MpirunJob& job) {
  RoleCommand command{.name = "mpirun", .environment = job.environment};
  command.arguments = {find_mpirun(job.environment),
                       "-n",
                       std::to_string(job.workers),
                       "--oversubscribe",
                       "--bind-to",
                       "none",
                       "--tag-output"};
  Environment::Variables& environment = command.environment;
  // What an outer launch told us about ourselves is not about them.
  std::erase_if(environment, [](const auto& entry) { return is_set_by_launch(entry.first); });
  // No descriptor gets through mpirun, whose daemons start the workers: the port is chosen here and
  // let go, and in between another program could take it. Worker 0 then says so, and a second
  // launch finds another one.
  environment["SYNCOPATE_RENDEZVOUS"] = open_rendezvous().endpoint;
  environment["SYNCOPATE_NONCE"] = make_nonce();
  if (geteuid() == 0) {
    environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
  std::vector<std::string> exported = job.exported;
  exported.insert(exported.end(), {"SYNCOPATE_RENDEZVOUS", "SYNCOPATE_NONCE"});
  for (const std::string& variable : exported) {
    command.arguments.insert(command.arguments.end(), {"-x", variable});
  }
  command.arguments.insert(command.arguments.end(), job.arguments.begin(), job.arguments.end());
  // mpirun passes this one on to the workers; on SIGINT and SIGTERM it kills them instead.
  // Source: mpirun(1), Signal Propagation.
  command.stop_signal = SIGUSR1;
  return command;
}

}  // namespace syncopate
