// The other side of a comparison: a program that runs the same work and is told when. It reads one
// command per line on its standard input and answers with one JSON object per line
// (bench/peers/*.py).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"

namespace syncopate::bench {

struct PeerOptions {
  std::vector<std::string> command;  // program and arguments; found through PATH
  std::chrono::milliseconds ready_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds answer_timeout = std::chrono::seconds(300);
};

// What it said to a command.
struct PeerAnswer {
  std::vector<double> seconds;
  std::string text;  // the whole answer, a JSON object
};

// One thread only. On destruction the child reads the end of its input, as it does should we be
// killed ourselves; when it does not end then, it is killed. It is reaped in either case.
class Peer {
 public:
  // Starts the program and waits until it is ready.
  // Throws UsageError when it cannot be started or says why it cannot run, PeerError when it dies
  // or is silent.
  explicit Peer(PeerOptions options);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Seconds of each of `steps` steps. Throws PeerError.
  std::vector<double> run(int steps);
  // Another command, which asks for `count` times. Throws PeerError.
  PeerAnswer ask(const std::string& command, int count);

  pid_t pid() const noexcept { return pid_; }
  // What it said of itself, as JSON: versions, threads, layout.
  const std::string& settings() const noexcept { return settings_; }
  // One line for people. Empty warning: none.
  const std::string& description() const noexcept { return description_; }
  const std::string& warning() const noexcept { return warning_; }

 private:
  void start();
  void stop() noexcept;
  void await_end() noexcept;
  void handshake();
  void send_line(const std::string& line);
  std::string receive_line(std::chrono::milliseconds timeout, const std::string& awaited);
  std::string name() const;  // the command as one line

  PeerOptions options_;
  UniqueHandle<FileDescriptorTraits> socket_;
  pid_t pid_ = -1;
  std::string received_;  // beyond the last complete line
  std::string settings_;
  std::string description_;
  std::string warning_;
};

// Splits at blanks; there is no quoting.
std::vector<std::string> split_command(const std::string& text);

}  // namespace syncopate::bench
