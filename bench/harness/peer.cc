#include "bench/harness/peer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/base/errors.h"
#include "models/base/own_program.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// Limits how long a program may take to end after its input was closed. A program that has started
// other processes ends those first.
constexpr std::chrono::seconds kEndTimeout(2);

// How a program starts. Signals that this process ignores have their default effect in the program.
struct SpawnOptions {
  SpawnOptions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int ignored : {SIGPIPE, SIGXFSZ}) sigaddset(&defaults, ignored);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

// Parses a peer's answer, an object that has a text "event". Throws PeerError for anything else.
json parse_answer(const std::string& line, const std::string& peer) {
  json answer = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("event") || !answer["event"].is_string()) {
    throw PeerError("peer '" + peer +
                    "': expected a JSON object with \"event\", got: " + line.substr(0, 200));
  }
  return answer;
}

}  // namespace

Peer::Peer(PeerOptions options) : options_(std::move(options)) {
  check(!options_.command.empty(), "a peer needs a program");
  start();
  try {
    handshake();
  } catch (...) {
    stop();  // the destructor does not run when the constructor throws
    throw;
  }
}

Peer::~Peer() { stop(); }

void Peer::stop() noexcept {
  if (pid_ < 0) return;
  await_end();
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void Peer::await_end() noexcept {
  ::shutdown(socket_.get(), SHUT_WR);
  const Clock::time_point deadline = Clock::now() + kEndTimeout;
  for (;;) {  // discards output until the child closes its socket
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) <= 0) return;
    char bytes[4096];
    if (::recv(socket_.get(), bytes, sizeof(bytes), 0) <= 0) return;
  }
}

std::string Peer::name() const { return fmt::format("{}", fmt::join(options_.command, " ")); }

void Peer::start() {
  int ends[2];
  // A socket pair instead of pipes makes a write to a child that has ended fail with an error; a
  // write to a pipe would raise SIGPIPE.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw FileError(describe_errno("socketpair for", name(), errno));
  }
  socket_.reset(ends[0]);
  const UniqueHandle<FileDescriptorTraits> theirs(ends[1]);
  SpawnOptions spawn;
  posix_spawn_file_actions_adddup2(&spawn.actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, theirs.get(), STDOUT_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : options_.command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(&pid_, arguments[0], &spawn.actions, &spawn.attributes,
                                   arguments.data(), environ);
  if (error != 0) {
    pid_ = -1;
    throw UsageError("peer '" + name() + "': cannot start " + options_.command.front() + ": " +
                     std::strerror(error) + "; name another program with --peer or leave it out");
  }
}

void Peer::handshake() {
  const json answer = parse_answer(receive_line(options_.ready_timeout, "it to be ready"), name());
  if (answer["event"] == "error") {
    throw UsageError("peer '" + name() +
                     "': " + answer.value("message", "failed without a reason"));
  }
  if (answer["event"] != "ready") {
    throw PeerError("peer '" + name() + "': expected \"ready\", got: " + answer.dump());
  }
  settings_ = answer.dump();
  warning_ = answer.value("warning", "");
  description_ = answer.value("description", name());
}

std::vector<double> Peer::run(int steps) {
  return ask("run " + std::to_string(steps), steps).seconds;
}

PeerAnswer Peer::ask(const std::string& command, int count) {
  send_line(command);
  const std::string steps = std::to_string(count) + " steps";
  const json answer = parse_answer(receive_line(options_.answer_timeout, steps), name());
  const auto seconds = answer.find("seconds");
  if (answer["event"] != "steps" || seconds == answer.end() || !seconds->is_array() ||
      seconds->size() != static_cast<std::size_t>(count)) {
    throw PeerError("peer '" + name() + "': expected the seconds of " + steps +
                    ", got: " + answer.dump().substr(0, 200));
  }
  PeerAnswer result{{}, answer.dump()};
  for (const json& value : *seconds) {
    if (!value.is_number() || value.get<double>() <= 0.0) {
      throw PeerError("peer '" + name() + "': " + value.dump() + " is no time of a step");
    }
    result.seconds.push_back(value.get<double>());
  }
  return result;
}

void Peer::send_line(const std::string& line) {
  const std::string bytes = line + "\n";
  std::size_t sent = 0;
  // The commands are short lines, so the socket's buffer takes them without blocking.
  while (sent < bytes.size()) {
    const ssize_t count =
        ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) {
      throw PeerError(describe_errno("peer: send '" + line + "' to", name(), errno));
    }
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
}

std::string Peer::receive_line(std::chrono::milliseconds timeout, const std::string& awaited) {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    const std::size_t end = received_.find('\n');
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&readable, 1, static_cast<int>(left.count()));
    if (ready == 0) {
      throw PeerError(fmt::format("peer '{}': waited {:g} s for {}", name(),
                                  static_cast<double>(timeout.count()) / 1000.0, awaited));
    }
    char bytes[4096];
    const ssize_t count = ready < 0 ? -1 : ::recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw PeerError("peer '" + name() + "': ended while we waited for " + awaited +
                      "; its own message is above");
    }
    received_.append(bytes, static_cast<std::size_t>(count));
  }
}

std::vector<std::string> split_command(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> result;
  for (std::string word; words >> word;) result.push_back(word);
  return result;
}

namespace fs = std::filesystem;

fs::path peer_script(std::string_view file) {
  const fs::path prefix = own_program().parent_path().parent_path();
  const fs::path installed = prefix / "share/syncopate/bench/peers" / file;
  return fs::exists(installed) ? installed : fs::path(SYNCOPATE_BENCH_DIR) / "peers" / file;
}

fs::path reno_shim(const fs::path& program) {
  fs::path shim = program.parent_path() / "peers" / "libreno_shim.so";
  if (fs::exists(shim)) return shim;
  throw UnavailableError(fmt::format(
      "the peer needs {}, which is not there; build the target reno_shim", shim.string()));
}

}  // namespace syncopate::bench
