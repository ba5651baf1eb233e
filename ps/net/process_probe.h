// Reads from the kernel the state of a peer's process on this machine. Over the network, a process
// that waits for a CPU cannot be told from a stopped process; /proc distinguishes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace syncopate {

enum class ProcessState : std::uint8_t {
  kUnknown,  // the process is on another machine or in another namespace, or /proc cannot be read
  kEnded,    // no thread of the process is left
  kEnding,   // the process has ended; its connection is still open and may hold unread messages
  kStopped,  // a signal or a debugger has stopped the process
  kAlive,
  kBlocked,  // alive, and a thread waits for memory or for a disk
  kStarved,  // alive, and a thread that was ready to run has had no CPU since the previous look()
  // A thread of the observing process was ready to run and has had no CPU since the previous
  // look().
  kUnobserved,
};

// Returns a text that identifies a process of this machine, usually the calling process, for a
// ProcessProbe in another task. The name has the boot id, the namespaces of process ids and of the
// network, the process id, and the start time of the process. Returns "" if /proc does not show the
// process. The network namespace is part of the name because a link between two namespaces can
// break while both processes are alive.
std::string process_name(std::int64_t pid);

// Checks the state of one process. One thread only. Source: proc(5), files stat and schedstat of
// each thread.
class ProcessProbe {
 public:
  // Finds the process with the process_name() `name`. Any text is allowed as `name`, because it
  // comes from another task. `proc` is the folder with the files of processes.
  explicit ProcessProbe(const std::string& name, const std::string& proc = "/proc");

  // Returns the state of the process. kStarved refers to the time since the previous call, which
  // should be at least a quarter of a second.
  ProcessState look();

 private:
  // Folder of the process below `proc`; empty if the process is not on this machine.
  std::string folder_;
  std::string start_time_;  // distinguishes the process from a later process with the same id
  // The CPU time of each thread that was ready to run at the last look(), by thread id.
  std::map<std::string, std::string> waiting_;
};

}  // namespace syncopate
