// Runs the other side of a comparison as a child process, such as bench/peers/*.py. The child reads
// one command per line from its standard input and answers with one JSON object per line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/file_descriptor.h"

namespace syncopate::bench {

struct PeerOptions {
  std::vector<std::string> command;  // the program, found through PATH, and its arguments
  std::chrono::milliseconds ready_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds answer_timeout = std::chrono::seconds(300);
};

// A peer's answer to one command.
struct PeerAnswer {
  std::vector<double> seconds;
  std::string text;  // the whole answer, a JSON object
};

// Owns one child process. One thread only. The destructor closes the child's input, which asks the
// child to end; kills the child after a timeout; and waits for its end. If this process is killed,
// the child's input is closed as well, so that the child ends.
class Peer {
 public:
  // Starts the program and waits for its "ready" message. Throws UsageError when the program cannot
  // be started or reports that it cannot run. Throws PeerError when the program ends or sends no
  // message in time.
  explicit Peer(PeerOptions options);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Lets the peer run `steps` steps and returns the seconds of each step. Throws PeerError.
  std::vector<double> run(int steps);
  // Sends a command to the peer and returns the answer, which must have `count` numbers in
  // "seconds". Throws PeerError.
  PeerAnswer ask(const std::string& command, int count);

  pid_t pid() const noexcept { return pid_; }
  // Returns the peer's "ready" message as JSON: versions, threads, memory layout.
  const std::string& settings() const noexcept { return settings_; }
  // description() returns a line for the report that describes the peer. warning() returns a line
  // with the peer's warning, or "".
  const std::string& description() const noexcept { return description_; }
  const std::string& warning() const noexcept { return warning_; }

 private:
  void start();
  void stop() noexcept;
  void await_end() noexcept;
  void handshake();
  void send_line(const std::string& line);
  std::string receive_line(std::chrono::milliseconds timeout, const std::string& awaited);
  std::string name() const;  // the peer's command as one line

  PeerOptions options_;
  UniqueHandle<FileDescriptorTraits> socket_;
  pid_t pid_ = -1;
  std::string received_;  // bytes after the last complete line
  std::string settings_;
  std::string description_;
  std::string warning_;
};

// Splits a command at blanks; quotes have no special meaning.
std::vector<std::string> split_command(const std::string& text);

// Returns the path of a script of bench/peers, such as "torch_step.py": next to an installed
// program, or in the source tree. The file may be missing; starting the script then reports the
// error.
std::filesystem::path peer_script(std::string_view file);

// Returns the library bench/peers/reno_shim.cc, which a peer with TCP sockets preloads. program:
// the path of syncopate-bench. Throws UnavailableError when the library is not built.
std::filesystem::path reno_shim(const std::filesystem::path& program);

}  // namespace syncopate::bench
