#include "bench/compare/kill_schedule.h"

#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace syncopate::bench {
namespace {

std::string text_of(const std::string& file) {
  const std::ifstream in(file, std::ios::binary);
  // Not by iterators: they throw when the file ends with its process.
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// launch tells its tasks in their environment who they are.
bool is_worker(pid_t process, int index) {
  const std::string zero(1, '\0');
  const std::string variables = zero + text_of("/proc/" + std::to_string(process) + "/environ");
  const auto has = [&](const std::string& variable) {
    return variables.find(zero + variable + zero) != std::string::npos;
  };
  return has("SYNCOPATE_ROLE=worker") && has("SYNCOPATE_INDEX=" + std::to_string(index));
}

std::optional<pid_t> find_worker(pid_t launcher, int index) {
  const std::string parent = std::to_string(launcher);
  std::ifstream children("/proc/" + parent + "/task/" + parent + "/children");
  for (pid_t child = 0; children >> child;) {
    if (is_worker(child, index)) return child;
  }
  return std::nullopt;
}

}  // namespace

void KillSchedule::act(double seconds_trained) {
  std::erase_if(kills_, [&](const Kill& kill) {
    if (kill.at_seconds > seconds_trained) return false;
    const auto worker = find_worker(launcher_, kill.worker);
    if (!worker || ::kill(*worker, SIGKILL) != 0) return false;
    killed_roles_.insert("worker " + std::to_string(kill.worker));
    return true;
  });
}

}  // namespace syncopate::bench
