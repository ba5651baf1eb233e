#include "tests/end_to_end/strangers/strangers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <utility>

#include "models/base/deadline.h"
#include "ps/net/connection.h"
#include "ps/wire/zmq_socket.h"
#include "tests/end_to_end/support/listening_sockets.h"
#include "tests/end_to_end/support/run_program.h"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;
namespace wire = ps::wire;
using namespace std::string_view_literals;
using std::chrono::milliseconds;

constexpr auto kZmtpGreeting = "\xFF\0\0\0\0\0\0\0\1\x7F\3\0NULL"sv;
constexpr std::size_t kGreetingBytes = 64;
constexpr int kSlowPerPort = 4;
constexpr int kRepeats = 3;             // of each forged message
constexpr std::size_t kMostKept = 100;  // connections that stay open after they have sent
constexpr int kIdleAgain = 20;          // closed idle connections that call again in a round

// Returns the greeting and the handshake of ZMTP 3.0 of a caller with this routing id. Source:
// rfc.zeromq.org/spec/23, NULL mechanism.
std::string handshake(std::string_view routing_id) {
  std::string bytes(kZmtpGreeting);
  bytes.resize(kGreetingBytes, '\0');
  std::string ready("\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0"sv);
  ready += static_cast<char>(routing_id.size());
  ready += routing_id;
  return bytes + '\4' + static_cast<char>(ready.size()) + ready;
}

// Returns a frame of ZMTP with its flags and a length in eight bytes.
std::string frame(char flags, std::uint64_t announced, std::string_view content) {
  std::string bytes(1, flags);
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(announced >> shift);
  return bytes.append(content);
}

// Waits for the handshake of the other side: ZeroMQ takes messages only after it. Gives up soon, as
// the other side may not be ZeroMQ.
void await_handshake(const FileDescriptor& socket) {
  const Deadline end = Deadline::after(milliseconds(200));
  std::array<char, kGreetingBytes> bytes{};
  for (std::size_t received = 0; received <= kGreetingBytes && !end.passed();) {
    pollfd waiting{socket.get(), POLLIN, 0};
    if (poll(&waiting, 1, end.remaining_milliseconds()) <= 0) return;
    const ssize_t count = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) return;
    received += static_cast<std::size_t>(count);
  }
}

// Returns a connection to the port of this machine; empty if there is none.
FileDescriptor call(std::uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!socket) return {};
  const int result =
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result != 0 && errno != EINPROGRESS) return {};
  return socket;
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::istringstream words(read_text(fs::path("/proc") / id / "task" / id / "children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; words >> child;) children.push_back(child);
  return children;
}

// Returns the value behind `name` in a text like that of /proc/PID/status.
std::int64_t number_behind(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size());
}

std::string nonce_of(pid_t process) {
  const std::string text = read_text(fs::path("/proc") / std::to_string(process) / "environ");
  constexpr auto kName = "SYNCOPATE_NONCE="sv;
  const std::size_t at = text.find(kName);
  return at == std::string::npos ? "" : std::string(text.c_str() + at + kName.size());
}

// All connections of the strangers are sockets of this process.
void raise_file_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Returns whether the other side has closed an idle connection.
bool is_closed(const FileDescriptor& socket) {
  std::array<char, kGreetingBytes> bytes{};
  ssize_t count = 1;
  while (count > 0) count = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return count == 0 || errno != EAGAIN;
}

struct ForgedMessage {
  const char* kind;
  wire::MessageT message;
};

// Returns messages that a stranger can make, with a nonce and a token that it guesses.
std::vector<ForgedMessage> forged_messages(std::uint64_t token) {
  std::vector<ForgedMessage> messages;
  const auto add = [&](auto body) {
    const wire::MessageT message = wire::make_message(body);
    const bool is_greeting =
        message.body.type == wire::Body::Hello || message.body.type == wire::Body::DataHello;
    messages.push_back(
        {is_greeting ? "forged nonce" : "forged token", wire::make_message(std::move(body))});
    messages.back().message.session = token;
  };
  wire::HelloT hello;
  hello.world_size = 2;
  hello.num_servers = 2;
  for (const int role : {0, 1}) {
    hello.role = static_cast<std::uint8_t>(role);
    hello.index = 1;
    hello.server = std::make_unique<wire::ServerAddressT>();
    hello.server->endpoint = "127.0.0.1:9";
    add(wire::HelloT(hello));
  }
  wire::DataHelloT data_hello;
  data_hello.incarnation = 99;
  add(data_hello);
  wire::PushT push;
  push.sequence = 1000000;
  push.shard_incarnation = 1;
  push.ends_step = true;
  push.wants_values = true;
  push.in_segment = true;
  add(push);
  wire::PullT pull;
  pull.buckets = {0, 1, 2};
  add(pull);
  wire::WriteT write;
  write.version = 1;
  add(write);
  add(wire::ReadSnapshotT{});
  add(wire::ProbeT{});
  add(wire::LeaseRequestT{});
  add(wire::StopRequestT{});
  wire::FailingT failing;
  failing.reason = "a stranger says so";
  add(failing);
  add(wire::LeavingT{});
  add(wire::FinishedT{});
  wire::WorkerLeftT left;
  left.incarnation = 99;
  add(left);
  return messages;
}

}  // namespace

Strangers::Strangers(std::vector<pid_t> processes, const StrangerOptions& options)
    : processes_(std::move(processes)),
      options_(options),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Strangers::~Strangers() { stop(); }

void Strangers::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Strangers::run(const std::stop_token& stop) {
  raise_file_limit();
  while (!stop.stop_requested()) {
    look();
    for (const std::uint16_t port : open_ports_) {
      send_noise(port);
      send_once(port, "half greeting", kZmtpGreeting.substr(0, 11));
      send_once(port, "half greeting", handshake("w0.1.1").substr(0, 80));
      send_once(port, "half greeting", "SYNC\1\0"sv);
      send_greeted(port, "huge length", "", frame('\2', std::uint64_t{1} << 62U, "x"));
      send_greeted(port, "huge length", "", frame('\3', std::uint64_t{1} << 26U, "x"));
      send_once(port, "huge length", "SYNC\1\0\1\0\xFF\xFF\xFF\xFF"sv);
      send_greeted(port, "forged name", "w0.1.1", frame('\2', 5, "Hello"));
      send_once(port, "forged nonce", encode_frame({1, R"({"nonce": "guessed", "index": 1})"}));
      send_once(port, "forged nonce", encode_frame({1, std::string(5000, '[')}));
      send_endlessly(port);
      send_forged(port);
      open_idle(port);
      continue_slow();
    }
    const bool had_all = !open_ports_.empty() && server_ports_.size() >= options_.servers;
    if (had_all && !std::exchange(had_round_, true)) first_round_.release();
    poll(nullptr, 0, 20);
  }
}

void Strangers::look() {
  open_ports_.clear();
  std::vector<pid_t> all = processes_;
  for (const pid_t process : processes_) {
    const std::vector<pid_t> children = children_of(process);
    all.insert(all.end(), children.begin(), children.end());
  }
  for (const pid_t process : all) {
    for (const ListeningSocket& socket : listening_sockets(process)) {
      open_ports_.insert(socket.port);
      ports_.insert(socket.port);
    }
    if (const std::string nonce = nonce_of(process); !nonce.empty()) nonces_.insert(nonce);
    const std::string status = read_text(fs::path("/proc") / std::to_string(process) / "status");
    peak_memory_bytes_ = std::max(peak_memory_bytes_, 1024 * number_behind(status, "VmHWM:"));
  }
}

void Strangers::send_and_keep(FileDescriptor socket, const std::string& kind,
                              std::string_view bytes) {
  if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) <= 0) return;
  ++attempts_[kind];
  kept_.push_back(std::move(socket));
  if (kept_.size() > kMostKept) kept_.pop_front();
}

void Strangers::send_once(std::uint16_t port, const std::string& kind, std::string_view bytes) {
  if (FileDescriptor socket = call(port)) send_and_keep(std::move(socket), kind, bytes);
}

// Returns a connection with the greeting and handshake of ZeroMQ; empty if there is none.
FileDescriptor Strangers::call_with_handshake(std::uint16_t port, std::string_view routing_id) {
  FileDescriptor socket = call(port);
  const std::string greeting = handshake(routing_id);
  if (!socket ||
      ::send(socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return {};
  }
  await_handshake(socket);
  return socket;
}

void Strangers::send_greeted(std::uint16_t port, const std::string& kind,
                             std::string_view routing_id, std::string_view bytes) {
  if (FileDescriptor socket = call_with_handshake(port, routing_id)) {
    send_and_keep(std::move(socket), kind, bytes);
  }
}

void Strangers::send_noise(std::uint16_t port) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    bytes += static_cast<char>(random_ >> 56U);
  }
  send_once(port, "random bytes", bytes);
}

// Sends frames of one message without an end, as fast as the other side takes them.
void Strangers::send_endlessly(std::uint16_t port) {
  const FileDescriptor socket = call_with_handshake(port, "");
  if (!socket) return;
  const std::string bytes = frame('\3', std::uint64_t{1} << 20U, std::string(1U << 20U, 'x'));
  const Deadline end = Deadline::after(milliseconds(500));
  std::int64_t sent = 0;
  for (std::size_t at = 0; !end.passed();) {
    const ssize_t count =
        ::send(socket.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) break;  // the other side has closed the connection
    if (count < 0) {
      pollfd waiting{socket.get(), POLLOUT, 0};
      poll(&waiting, 1, 10);
      continue;
    }
    sent += count;
    at = (at + static_cast<std::size_t>(count)) % bytes.size();
  }
  if (sent > 0) ++attempts_["endless message"];
  longest_message_bytes_ = std::max(longest_message_bytes_, sent);
}

void Strangers::send_forged(std::uint16_t port) {
  wire::Context context;
  const auto socket = wire::Socket::connect(context, {"127.0.0.1", port});
  const auto await = [&](const std::function<bool()>& condition) {
    const Deadline end = Deadline::after(milliseconds(200));
    for (; !condition() && !end.passed(); poll(nullptr, 0, 5)) socket->flush();
  };
  bool is_connected = false;
  await([&] { return is_connected = socket->link_event().has_value(); });
  if (!is_connected) return;  // another protocol than that of servers
  for (const std::uint64_t token : {std::uint64_t{0}, std::uint64_t{1}, random_}) {
    for (const ForgedMessage& forged : forged_messages(token)) {
      for (int i = 0; i < kRepeats; ++i) {
        wire::Envelope sent = wire::envelope("", forged.message);
        sent.frames.push_back(wire::copied_frame(std::vector<std::byte>(4000)));
        if (socket->send(std::move(sent))) ++attempts_[i == 0 ? forged.kind : "repeated message"];
      }
    }
  }
  await([&] {
    while (const auto answer = socket->receive()) look_for_leak(answer->header);
    return false;
  });
  server_ports_.insert(port);
}

void Strangers::look_for_leak(const wire::MessageT& answer) {
  const wire::BodyUnion& body = answer.body;
  if (body.type != wire::Body::Refused) {
    leaks_.emplace_back(wire::name_of(answer));
    return;
  }
  for (const std::string& nonce : nonces_) {
    if (body.AsRefused()->line.find(nonce) == std::string::npos) continue;
    leaks_.push_back(body.AsRefused()->line);
  }
}

// Calls again where the other side has closed the connection, but not all at once.
void Strangers::open_idle(std::uint16_t port) {
  const bool is_new = !idle_.contains(port);
  std::vector<FileDescriptor>& sockets = idle_[port];
  std::erase_if(sockets, [](const FileDescriptor& socket) { return is_closed(socket); });
  const int missing = options_.idle_connections - static_cast<int>(sockets.size());
  for (int i = 0; i < (is_new ? missing : std::min(missing, kIdleAgain)); ++i) {
    if (FileDescriptor socket = call(port)) sockets.push_back(std::move(socket));
  }
  attempts_["idle connections"] =
      std::max(attempts_["idle connections"], static_cast<std::int64_t>(sockets.size()));
  for (int i = 0; is_new && i < kSlowPerPort; ++i) {
    if (FileDescriptor socket = call(port)) slow_.push_back({std::move(socket)});
  }
}

void Strangers::continue_slow() {
  const std::string bytes = handshake("slow") + frame('\2', 1000, std::string(1000, 'x'));
  std::erase_if(slow_, [&](Slow& slow) {
    if (slow.sent == bytes.size()) return true;
    const ssize_t count =
        ::send(slow.socket.get(), bytes.data() + slow.sent, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) return true;
    if (count > 0) {
      ++slow.sent;
      ++attempts_["slow bytes"];
    }
    return false;
  });
}

}  // namespace syncopate::test
