#include "tests/end_to_end/support/role_processes.h"

#include <sched.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/end_to_end/support/run_program.h"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

bool is_role(const fs::path& process, const Role& role) {
  const std::string variables = std::string(1, '\0') + read_text(process / "environ");
  const auto has = [&](const std::string& variable) {
    return variables.find(std::string(1, '\0') + variable + '\0') != std::string::npos;
  };
  return has(std::string("SYNCOPATE_ROLE=") + role.kind) &&
         has("SYNCOPATE_INDEX=" + std::to_string(role.index));
}

// Reads the kernel's list of the launcher's children, which takes less than a millisecond. A search
// through all of /proc took so long on a busy machine that a short job ended before its process was
// found.
std::optional<pid_t> look(pid_t launcher, const Role& role) {
  const std::string id = std::to_string(launcher);
  std::istringstream children(read_text(fs::path("/proc") / id / "task" / id / "children"));
  for (pid_t child = 0; children >> child;) {
    if (is_role(fs::path("/proc") / std::to_string(child), role)) return child;
  }
  return std::nullopt;
}

}  // namespace

std::optional<pid_t> process_of(pid_t launcher, const Role& role, std::chrono::seconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < end) {
    if (const auto found = look(launcher, role)) return found;
    sched_yield();
  }
  return std::nullopt;
}

std::optional<pid_t> worker_of(pid_t launcher, int index, std::chrono::seconds timeout) {
  return process_of(launcher, {"worker", index}, timeout);
}

}  // namespace syncopate::test
