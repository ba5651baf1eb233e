#include "deploy/launch/role_states.h"

#include <algorithm>
#include <csignal>

#include "worker/run/exit_code.h"

namespace syncopate {

bool ended_as_asked(const LaunchedRole& role) {
  if (role.signal() != 0) return role.signal() == SIGTERM;
  return role.exit_code() == kExitFailed;
}

bool have_workers_left(const std::vector<LaunchedRole>& roles) {
  return std::any_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
    return role.is_worker() && !role.has_ended();
  });
}

bool have_workers_ended_well(const std::vector<LaunchedRole>& roles) {
  bool has_workers = false;
  for (const LaunchedRole& role : roles) {
    if (!role.is_worker()) continue;
    if (!role.has_ended() || role.exit_code() != kExitDone) return false;
    has_workers = true;
  }
  return has_workers;
}

bool has_a_worker_ended_well(const std::vector<LaunchedRole>& roles) {
  return std::any_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
    return role.is_worker() && role.has_come() && role.has_ended() && role.exit_code() == kExitDone;
  });
}

bool are_servers_gone(const std::vector<LaunchedRole>& roles) {
  bool has_servers = false;
  for (const LaunchedRole& role : roles) {
    if (!role.is_server()) continue;
    if (!role.has_ended()) return false;
    has_servers = true;
  }
  return has_servers;
}

bool have_servers_ended_well(const std::vector<LaunchedRole>& roles) {
  return are_servers_gone(roles) &&
         std::all_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
           return !role.is_server() || role.exit_code() == kExitDone;
         });
}

bool do_only_late_ones_run(const std::vector<LaunchedRole>& roles) {
  return std::all_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
    return !role.is_running() || role.comes_late();
  });
}

}  // namespace syncopate
