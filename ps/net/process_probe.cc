#include "ps/net/process_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "models/base/file_descriptor.h"
#include "ps/net/endpoint.h"

namespace syncopate {
namespace {

// Whether this error of a file of /proc means that the process or thread does not exist. Any other
// one, such as EMFILE, tells nothing about it.
bool means_ended(int error) { return error == ENOENT || error == ESRCH; }

struct ProcText {
  std::string text;
  int error = 0;  // a value of errno
};

// Reads a file of /proc. Its text must be shorter than 4 KiB: one read(2) returns all of it.
ProcText read_proc_file(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {"", errno};
  std::array<char, 4096> text{};
  ssize_t bytes = 0;
  do {
    bytes = read(file.get(), text.data(), text.size());
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return {"", errno};
  return {std::string(text.data(), static_cast<std::size_t>(bytes)), 0};
}

// The state and the start time in a stat file of /proc: fields 3 and 22.
struct ProcessStat {
  char state = 0;  // 0: the file could not be read
  std::string start_time;
  int error = 0;  // a value of errno
};

ProcessStat read_process_stat(const std::string& path) {
  const auto [line, error] = read_proc_file(path);
  if (error != 0) return {.error = error};
  // The name of the program in field 2 is in parentheses, and may contain any character.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {.error = EIO};
  std::istringstream fields(line.substr(name_end + 1));
  ProcessStat found;
  fields >> found.state;
  constexpr int kFieldsToStartTime = 19;
  for (int i = 0; i < kFieldsToStartTime; ++i) fields >> found.start_time;
  return found;
}

// Returns how many nanoseconds a thread has run, as text: field 1 of schedstat.
std::string read_run_time(const std::string& thread_folder) {
  const std::string text = read_proc_file(thread_folder + "/schedstat").text;
  return text.substr(0, text.find(' '));
}

// Returns what a process must share with this one so that /proc shows it, and loopback or shared
// memory connects them.
std::string own_machine() {
  std::error_code error;
  const std::string processes = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  const std::string network = std::filesystem::read_symlink("/proc/self/ns/net", error);
  const std::string boot = own_boot_id();
  if (boot.empty() || processes.empty() || network.empty()) return "";
  return boot + " " + processes + " " + network;
}

}  // namespace

std::string process_name(std::int64_t pid) {
  const std::string machine = own_machine();
  const ProcessStat stat = read_process_stat("/proc/" + std::to_string(pid) + "/stat");
  if (machine.empty() || stat.state == 0) return "";
  return machine + " " + std::to_string(pid) + " " + stat.start_time;
}

ProcessProbe::ProcessProbe(const std::string& name, const std::string& proc) {
  const std::string machine = own_machine();
  if (machine.empty() || name.rfind(machine + " ", 0) != 0) return;
  std::istringstream rest(name.substr(machine.size()));
  std::int64_t pid = 0;
  if (rest >> pid >> start_time_) folder_ = proc + "/" + std::to_string(pid);
}

ProcessState ProcessProbe::look() {
  if (folder_.empty()) return ProcessState::kUnknown;
  const auto before = std::exchange(waiting_, {});
  const ProcessStat process = read_process_stat(folder_ + "/stat");
  if (process.state == 0 && !means_ended(process.error)) return ProcessState::kUnknown;
  if (process.start_time != start_time_) return ProcessState::kEnded;
  std::error_code error;
  bool is_alive = false;
  bool is_blocked = false;
  bool is_starved = false;
  for (std::filesystem::directory_iterator thread(folder_ + "/task", error), end;
       !error && thread != end; thread.increment(error)) {
    const std::string id = thread->path().filename();
    const ProcessStat stat = read_process_stat(thread->path().string() + "/stat");
    switch (stat.state) {
      case 0:
        if (!means_ended(stat.error)) return ProcessState::kUnknown;
        break;
      case 'X':
      case 'Z':
        break;
      case 'T':
      case 't':
        return ProcessState::kStopped;
      case 'R': {
        is_alive = true;
        const std::string run_time = read_run_time(thread->path());
        const auto known = before.find(id);
        is_starved |= !run_time.empty() && known != before.end() && known->second == run_time;
        waiting_.emplace(id, run_time);
        break;
      }
      case 'D':
        is_alive = is_blocked = true;
        break;
      default:
        is_alive = true;
    }
  }
  if (error && !means_ended(error.value())) return ProcessState::kUnknown;
  if (!is_alive) return ProcessState::kEnded;
  if (is_starved) return ProcessState::kStarved;
  return is_blocked ? ProcessState::kBlocked : ProcessState::kAlive;
}

}  // namespace syncopate
