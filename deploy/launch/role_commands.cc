#include "deploy/launch/role_commands.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "models/base/secret.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {
namespace {

constexpr std::array<std::string_view, 12> kOurs = {
    "SYNCOPATE_ROLE",       "SYNCOPATE_INDEX",      "SYNCOPATE_WORKERS",       "SYNCOPATE_SERVERS",
    "SYNCOPATE_NONCE",      "SYNCOPATE_RENDEZVOUS", "SYNCOPATE_RENDEZVOUS_FD", "SYNCOPATE_BOUND",
    "SYNCOPATE_LOCAL_SIZE", "SYNCOPATE_RESTARTS",   "SYNCOPATE_LATE",          "SYNCOPATE_MET_FD"};

// Joins the numbers with commas to a text such as "2,4".
std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  return text;
}

// Returns the delay of a late worker's start in milliseconds, at least 1, since a delay of 0 means
// a start together with the other roles.
std::chrono::milliseconds start_delay(double seconds) {
  return std::chrono::milliseconds(std::max(1L, std::lround(1000.0 * seconds)));
}

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

bool is_set_by_launch(std::string_view variable) noexcept {
  return std::find(kOurs.begin(), kOurs.end(), variable) != kOurs.end();
}

RendezvousSocket open_rendezvous() {
  const std::string host = loopback_address();
  Listener listener(Endpoint{host, 0});
  const std::uint16_t port = listener.port();
  return {listener.release(), to_string(Endpoint{host, port})};
}

std::vector<RoleCommand> make_local_roles(const LocalRoles& roles) {
  RendezvousSocket rendezvous = open_rendezvous();
  Environment::Variables shared = roles.environment;
  for (const std::string_view variable : kOurs) shared.erase(std::string(variable));
  const int places = places_of(roles.workers, roles.joins);
  const std::vector<int> late = late_workers(roles.workers, roles.joins);
  shared["SYNCOPATE_WORKERS"] = std::to_string(places);
  if (!late.empty()) shared["SYNCOPATE_LATE"] = listed(late);
  shared["SYNCOPATE_SERVERS"] = std::to_string(roles.servers);
  shared["SYNCOPATE_RENDEZVOUS"] = rendezvous.endpoint;
  shared["SYNCOPATE_NONCE"] = random_nonce();
  shared["SYNCOPATE_RESTARTS"] = roles.restarts ? "1" : "0";
  shared["SYNCOPATE_LOCAL_SIZE"] = std::to_string(places);

  const std::vector<int> cpus = usable_cpus();
  std::vector<RoleCommand> commands;
  const auto add = [&](Role role, int count) {
    const bool has_own = role == Role::kServer && !roles.server_arguments.empty();
    for (int index = 0; index < count; ++index) {
      const bool is_late = role == Role::kWorker && std::ranges::binary_search(late, index);
      const auto join = std::ranges::find(roles.joins, index, &Join::worker);
      // Skips a worker without a join time, which is never started.
      if (is_late && join == roles.joins.end()) continue;
      RoleCommand command{.name = fmt::format("{} {}", name(role), index),
                          .role = role,
                          .arguments = has_own ? roles.server_arguments : roles.arguments,
                          .environment = shared};
      if (is_late) command.start_after = start_delay(join->at_seconds);
      command.environment["SYNCOPATE_ROLE"] = name(role);
      command.environment["SYNCOPATE_INDEX"] = std::to_string(index);
      if (role == Role::kWorker && roles.bind_workers) {
        command.cpus = cpu_share(cpus, index, count);
        const bool is_bound = cpus.size() >= static_cast<std::size_t>(count);
        command.environment["SYNCOPATE_BOUND"] = is_bound ? "1" : "0";
      }
      commands.push_back(std::move(command));
    }
  };
  add(Role::kServer, roles.servers);
  add(Role::kWorker, places);
  RoleCommand& first = commands.front();
  first.environment["SYNCOPATE_RENDEZVOUS_FD"] = std::to_string(rendezvous.socket.get());
  first.inherited = std::move(rendezvous.socket);
  return commands;
}

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
  // The variables that an outer launch set for this process do not apply to the processes started
  // here.
  std::erase_if(environment, [](const auto& entry) { return is_set_by_launch(entry.first); });
  // A descriptor cannot be passed through mpirun, because its daemons start the workers. Therefore
  // the port is chosen and released here, and another program could take it before worker 0
  // listens. In that case worker 0 reports the taken port, and a second launch chooses another one.
  environment["SYNCOPATE_RENDEZVOUS"] = open_rendezvous().endpoint;
  environment["SYNCOPATE_NONCE"] = random_nonce();
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
  // mpirun passes SIGUSR1 on to the workers; on SIGINT and SIGTERM it kills the workers. Source:
  // mpirun(1), Signal Propagation.
  command.stop_signal = SIGUSR1;
  return command;
}

}  // namespace syncopate
