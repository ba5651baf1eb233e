// `syncopate launch`: the roles of a job as processes on this machine.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "deploy/commands.h"
#include "deploy/launch/launcher.h"
#include "deploy/launch/local_roles.h"
#include "deploy/launch/mpirun.h"

namespace syncopate {
namespace {

// This very program: a path, since mpirun starts it too.
std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

// A later incarnation goes on where the one before got to.
std::vector<std::string> role_arguments(const LaunchOptions& options, int incarnation) {
  std::vector<std::string> arguments = options.role_arguments;
  const bool resumes = std::find(arguments.begin(), arguments.end(), "--resume") != arguments.end();
  if (incarnation > 0 && !resumes) arguments.emplace_back("--resume");
  arguments.insert(arguments.begin(), own_program());
  return arguments;
}

std::vector<RoleCommand> plan_roles(const LaunchOptions& options, int incarnation) {
  std::vector<std::string> arguments = role_arguments(options, incarnation);
  if (!options.with_mpirun) {
    return make_local_roles({.arguments = std::move(arguments),
                             .workers = options.workers,
                             .servers = options.servers,
                             .environment = options.environment,
                             .bind_workers = options.bind_workers});
  }
  std::vector<RoleCommand> commands;
  commands.push_back(make_mpirun({.arguments = std::move(arguments),
                                  .workers = options.workers,
                                  .environment = options.environment,
                                  .exported = options.added_variables}));
  return commands;
}

}  // namespace

int run_launch(const LaunchOptions& options, std::ostream& out) {
  const auto plan = [&](int incarnation) { return plan_roles(options, incarnation); };
  return launch(plan, options.rules,
                {.out = [&](std::string_view lines) { out << lines << std::flush; },
                 .err = [](std::string_view lines) { std::cerr << lines << std::flush; }});
}

}  // namespace syncopate
