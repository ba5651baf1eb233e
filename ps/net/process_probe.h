// What the kernel tells about the process of a peer on this machine. A silent process that waits
// for a CPU looks over the network like one that is stopped; /proc distinguishes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace syncopate {

enum class ProcessState : std::uint8_t {
  kUnknown,  // the process is on another machine or in another namespace, or /proc cannot be read
  kEnded,    // no thread of the process is left
  kEnding,   // has ended, and its connection is still open: it may hold unread messages
  kStopped,  // a signal or a debugger has stopped the process
  kAlive,
  kBlocked,  // alive, and a thread waits for memory or for a disk
  kStarved,  // alive, and a thread that was ready to run got no CPU since the previous look
  // A thread of the process that looks was ready to run and got no CPU since the previous look.
  kUnobserved,
};

// Returns the name of a process of this machine, usually the caller's own. A ProcessProbe of
// another task finds the process by it. The name has the boot id, the namespaces of process ids and
// of the network, the process id and its start time. Empty where /proc does not show the process.
// The network namespace is part of the name because a link between two namespaces can break while
// both processes are alive.
std::string process_name(std::int64_t pid);

// Looks at one process. One thread only. Source: proc(5), files stat and schedstat of each thread.
class ProcessProbe {
 public:
  // `name` is the process_name() of the process; other tasks may send any text. The files of the
  // process are below `proc`.
  explicit ProcessProbe(const std::string& name, const std::string& proc = "/proc");

  // Returns the state of the process. kStarved refers to the time since the previous look, which
  // therefore should be at least a quarter of a second ago.
  ProcessState look();

 private:
  std::string folder_;  // of the process below `proc`; empty if the process is not on this machine
  std::string start_time_;  // tells the process from a later one with the same id
  std::map<std::string, std::string> waiting_;  // CPU time by id of each thread that waited
};

}  // namespace syncopate
