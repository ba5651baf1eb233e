#include "tests/end_to_end/role_processes.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/end_to_end/run_program.h"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

bool is_child(const fs::path& process, pid_t parent) {
  // The line has the form "pid (name) state ppid ...". The name may contain any character and ends
  // with the last parenthesis of the line.
  const std::string stat = read_text(process / "stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream rest(stat.substr(name_end + 1));
  char state = 0;
  pid_t found = 0;
  rest >> state >> found;
  return found == parent;
}

bool is_role(const fs::path& process, const Role& role) {
  const std::string variables = std::string(1, '\0') + read_text(process / "environ");
  const auto has = [&](const std::string& variable) {
    return variables.find(std::string(1, '\0') + variable + '\0') != std::string::npos;
  };
  return has(std::string("SYNCOPATE_ROLE=") + role.kind) &&
         has("SYNCOPATE_INDEX=" + std::to_string(role.index));
}

std::optional<pid_t> look(pid_t launcher, const Role& role) {
  std::error_code gone;  // processes start and end during the search
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    if (is_child(entry.path(), launcher) && is_role(entry.path(), role)) return std::stoi(name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<pid_t> process_of(pid_t launcher, const Role& role, std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    if (const auto found = look(launcher, role)) return found;
    sched_yield();
  }
  return std::nullopt;
}

std::optional<pid_t> worker_of(pid_t launcher, int index, std::chrono::seconds patience) {
  return process_of(launcher, {"worker", index}, patience);
}

}  // namespace syncopate::test
