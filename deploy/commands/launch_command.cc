// `syncopate launch`: runs the roles of a job as processes on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "deploy/commands/commands.h"
#include "deploy/launch/launched_job.h"
#include "deploy/launch/mpi_leftovers.h"
#include "deploy/launch/role_commands.h"
#include "models/base/open_files.h"
#include "models/base/own_program.h"
#include "models/base/resource_limits.h"
#include "ps/server/order_record.h"
#include "strategies/cluster/cluster_spec.h"
#include "worker/run/exit_codes.h"
#include "worker/run/run_folder.h"

namespace syncopate {
namespace {

// Returns the command of a role. When all roles are started again, they resume from the last
// checkpoint. A role that is started again alone gets no extra flag, because it joins a running
// job.
std::vector<std::string> role_command(const std::filesystem::path& program,
                                      std::vector<std::string> arguments, int restarts) {
  const bool resumes = std::find(arguments.begin(), arguments.end(), "--resume") != arguments.end();
  if (restarts > 0 && !resumes) arguments.emplace_back("--resume");
  arguments.insert(arguments.begin(), program);
  return arguments;
}

bool may_restart_alone(const LaunchRules& rules) {
  return rules.most_restarts > 0 && (rules.workers.restarts_alone || rules.servers.restarts_alone);
}

std::vector<RoleCommand> plan_roles(const LaunchOptions& options, int restarts) {
  const bool has_program = !options.program.empty();
  std::vector<std::string> arguments =
      role_command(has_program ? options.program : own_program(), options.role_arguments, restarts);
  std::vector<std::string> server_arguments;
  if (has_program) {
    server_arguments = role_command(own_program(), options.server_arguments, restarts);
  }
  if (!options.with_mpirun) {
    return make_local_roles({.arguments = std::move(arguments),
                             .server_arguments = std::move(server_arguments),
                             .workers = options.workers,
                             .servers = options.servers,
                             .environment = options.environment,
                             .restarts = may_restart_alone(options.rules),
                             .bind_workers = options.bind_workers,
                             .joins = options.joins});
  }
  std::vector<RoleCommand> commands;
  commands.push_back(make_mpirun({.arguments = std::move(arguments),
                                  .workers = options.workers,
                                  .environment = options.environment,
                                  .exported = options.added_variables}));
  return commands;
}

std::string counted(int count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string roles_of(const LaunchOptions& options) {
  const std::string workers = counted(places_of(options.workers, options.joins), "worker");
  return options.servers == 0 ? workers : workers + " and " + counted(options.servers, "server");
}

// Returns how many files the role with the most open files has open: the launcher, server 0 or a
// worker.
std::int64_t most_open_files(const LaunchOptions& options) {
  // The launcher's own files, and for each role two pipes and a descriptor of the process.
  constexpr std::int64_t kOwnFiles = 16;
  constexpr std::int64_t kFilesPerRole = 3;
  const int places = places_of(options.workers, options.joins);
  const ClusterSpec worker{.world_size = places, .num_servers = options.servers};
  const std::int64_t roles = options.with_mpirun ? 1 : places + options.servers;
  const std::int64_t most = std::max(kOwnFiles + kFilesPerRole * roles, needed_open_files(worker));
  if (options.servers == 0) return most;
  ClusterSpec server = worker;
  server.role = Role::kServer;
  return std::max(most, needed_open_files(server));
}

// Reports that the servers share the workers' CPUs. `train` reports threads that share CPUs.
void warn_of_shared_cpus(const LaunchOptions& options) {
  const CpuLimits cpus = cpu_limits();
  if (options.servers == 0 || options.workers + options.servers <= cpus.usable()) return;
  std::cerr << fmt::format("launch: {} share {}: the servers slow the workers down\n",
                           roles_of(options), describe(cpus))
            << std::flush;
}

}  // namespace

int run_launch(const LaunchOptions& options, std::ostream& out) {
  require_open_files(most_open_files(options), "a launch of " + roles_of(options));
  // A folder or file that cannot be written is reported once here, before any role starts. The
  // command doctor reports such an error as a finding of its own.
  const bool trains = options.trains();
  if (trains && !options.checkpoint_dir.empty()) make_checkpoint_folder(options.checkpoint_dir);
  if (trains && !options.record.empty()) {
    try_record(ps::order_record_path(options.record.string(), 0, 1));
  }
  warn_of_shared_cpus(options);
  if (!options.note.empty()) std::cerr << "launch: " + options.note + "\n" << std::flush;
  if (options.with_mpirun) {
    MpiFolders folders{.host = own_host_name()};
    const auto temporary = options.environment.find("TMPDIR");
    if (temporary != options.environment.end()) folders.sessions = temporary->second;
    for (const std::string& folder : remove_mpi_leftovers(folders, geteuid())) {
      std::cerr << fmt::format("launch: removed {} and its shared memory: its mpirun was killed\n",
                               folder)
                << std::flush;
    }
  }
  const auto plan = [&](int restarts) { return plan_roles(options, restarts); };
  OutputQueue results(STDOUT_FILENO);
  OutputQueue notes(STDERR_FILENO);
  const int exit_code = launch(plan, options.rules,
                               {.out = [&](std::string_view lines) { results.add(lines); },
                                .err = [&](std::string_view lines) { notes.add(lines); },
                                .out_queue = &results,
                                .err_queue = &notes});
  // A job that was stopped tells with its exit code that it can be resumed.
  if (exit_code == kExitDone && (results.has_failed() || results.is_blocked())) {
    out.setstate(std::ios::failbit);
  }
  return exit_code;
}

}  // namespace syncopate
