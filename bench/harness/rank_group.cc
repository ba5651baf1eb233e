#include "bench/harness/rank_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "models/base/errors.h"
#include "models/base/own_program.h"
#include "models/base/resource_limits.h"

namespace syncopate::bench {
namespace {

// Spinning lasts about 10 us. A rank that spins longer would keep a library's own thread, which
// other ranks may wait for, off the processor for a whole tick of the scheduler.
constexpr int kSpinsBeforeYield = 256;
constexpr std::chrono::seconds kRendezvousTimeout(30);

std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

// Returns a socket's address in the abstract namespace, which leaves no file. Source: unix(7).
std::pair<sockaddr_un, socklen_t> abstract_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

FileDescriptor make_socket(const std::string& name) {
  // Makes a socket of the type SEQPACKET, which preserves message boundaries.
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) throw FileError(describe_errno("socket for", name, errno));
  return socket;
}

// Repeats a system call that a signal interrupts.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Blocks until the socket is readable. Throws PeerError at the deadline.
void wait_readable(int descriptor, const Deadline& deadline, const std::string& awaited) {
  pollfd readable{.fd = descriptor, .events = POLLIN, .revents = 0};
  const int ready =
      uninterrupted([&] { return ::poll(&readable, 1, deadline.remaining_milliseconds()); });
  if (ready <= 0) throw PeerError("waited in vain for " + awaited);
}

// Receives a text; an empty one when the other end has closed the socket.
std::string receive_text(int socket) {
  std::string text(RankGroup::kLongestText, '\0');
  const ssize_t count = uninterrupted([&] { return ::recv(socket, text.data(), text.size(), 0); });
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

void send_text(int socket, const std::string& text, int rank) {
  check(!text.empty() && text.size() <= RankGroup::kLongestText, "a text of this length");
  const ssize_t count =
      uninterrupted([&] { return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL); });
  if (count < 0) throw PeerError(describe_errno("send to", rank_name(rank), errno));
}

void start_other_ranks(const std::vector<std::string>& arguments, int size) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  int error = 0;
  for (int rank = 1; rank < size && error == 0; ++rank) {
    std::vector<std::string> words = arguments;
    words.insert(words.begin(), own_program());
    words.insert(words.end(), {"--rank", std::to_string(rank)});
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t pid = 0;
    error = ::posix_spawn(&pid, words.front().c_str(), &actions, nullptr, pointers.data(), environ);
  }
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw FileError(describe_errno("start another rank of", "this program", error));
}

}  // namespace

struct RankGroup::Shared {
  // The two counters have a cache line each, so that waiting ranks do not slow down arriving ones.
  alignas(64) std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> generation;
  std::atomic<bool> failed;
  static std::size_t size_bytes(int ranks) {
    return sizeof(Shared) + static_cast<std::size_t>(ranks) * kRowLength * sizeof(double);
  }
};

RankGroup::RankGroup(int rank, int size, const std::string& name, const Deadline& deadline)
    : rank_(rank), size_(size) {
  check(size > 0 && rank >= 0 && rank < size, "a rank of the group");
  if (rank == 0) {
    meet(name, deadline);
  } else {
    join(name, deadline);
  }
}

RankGroup::~RankGroup() {
  if (shared_ != nullptr) ::munmap(shared_, Shared::size_bytes(size_));
}

void RankGroup::map_shared(int descriptor) {
  void* memory =
      ::mmap(nullptr, Shared::size_bytes(size_), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) throw FileError(describe_errno("mmap for", "the ranks", errno));
  // A new shared segment is filled with zeros, which is a valid initial state of the barrier.
  shared_ = static_cast<Shared*>(memory);
}

void RankGroup::meet(const std::string& name, const Deadline& deadline) {
  memory_.reset(::memfd_create("syncopate-bench-ranks", MFD_CLOEXEC));
  if (memory_.get() < 0 ||
      ::ftruncate(memory_.get(), static_cast<off_t>(Shared::size_bytes(size_))) != 0) {
    throw FileError(describe_errno("memfd_create for", "the ranks", errno));
  }
  map_shared(memory_.get());
  const FileDescriptor listener = make_socket(name);
  const auto [address, length] = abstract_address(name);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), size_) != 0) {
    throw FileError(describe_errno("listen at the group's name", name, errno));
  }
  sockets_.resize(static_cast<std::size_t>(size_) - 1);
  pids_.assign(static_cast<std::size_t>(size_), ::getpid());
  for (int arrived = 1; arrived < size_; ++arrived) {
    wait_readable(listener.get(), deadline,
                  "the ranks of " + name + ": " + std::to_string(arrived) + " of " +
                      std::to_string(size_) + " have come");
    FileDescriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) throw FileError(describe_errno("accept at", name, errno));
    wait_readable(socket.get(), deadline, "a rank of " + name + " to send its number");
    std::istringstream hello(receive_text(socket.get()));
    int rank = 0;
    pid_t pid = 0;
    if (!(hello >> rank >> pid) || rank < 1 || rank >= size_) {
      throw PeerError("the ranks of " + name + ": expected one of 1 to " +
                      std::to_string(size_ - 1) + ", got: " + hello.str());
    }
    sockets_[static_cast<std::size_t>(rank) - 1] = std::move(socket);
    pids_[static_cast<std::size_t>(rank)] = pid;
  }
  share("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory_.get()));
  // The segment's descriptor must stay open until every rank has mapped it.
  for (const FileDescriptor& socket : sockets_) {
    wait_readable(socket.get(), deadline, "a rank of " + name + " to map the shared memory");
    receive_text(socket.get());
  }
}

void RankGroup::join(const std::string& name, const Deadline& deadline) {
  sockets_.push_back(make_socket(name));
  const int socket = sockets_.front().get();
  const auto [address, length] = abstract_address(name);
  while (::connect(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (deadline.passed()) throw PeerError(describe_errno("connect to rank 0 at", name, errno));
    ::poll(nullptr, 0, 1);  // retries after 1 ms: rank 0 may not be listening yet
  }
  send_text(socket, std::to_string(rank_) + " " + std::to_string(::getpid()), 0);
  wait_readable(socket, deadline, "rank 0 of " + name);
  const std::string path = share("");
  memory_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory_.get() < 0) throw FileError(describe_errno("open", path, errno));
  map_shared(memory_.get());
  send_text(socket, "mapped", 0);
}

void RankGroup::send_to_others(const std::string& text) {
  for (int other = 1; other < size_; ++other) {
    send_text(sockets_[static_cast<std::size_t>(other) - 1].get(), text, other);
  }
}

std::optional<std::string> RankGroup::receive_from_first() {
  std::string text = receive_text(sockets_.front().get());
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<std::string> RankGroup::next_command() {
  if (rank_ != 0) return receive_from_first();
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    send_to_others(line);
    return line;
  }
  // The other ranks must see the end of input now: rank 0 may wait for them next.
  for (const FileDescriptor& socket : sockets_) ::shutdown(socket.get(), SHUT_WR);
  return std::nullopt;
}

std::string RankGroup::share(const std::string& text) {
  if (rank_ == 0) {
    send_to_others(text);
    return text;
  }
  std::optional<std::string> received = receive_from_first();
  if (!received) throw PeerError("rank 0 of the group ended; its own message is above");
  return *received;
}

void RankGroup::barrier(const Deadline& deadline) {
  const std::uint32_t generation = shared_->generation.load(std::memory_order_acquire);
  const auto last = static_cast<std::uint32_t>(size_) - 1;
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) == last) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    shared_->generation.fetch_add(1, std::memory_order_release);
    return;
  }
  // With more ranks than cores, a waiting rank yields at once: the awaited rank may need this core.
  const bool crowded = size_ > usable_cpu_count();
  for (std::uint64_t spins = 0; shared_->generation.load(std::memory_order_acquire) == generation;
       ++spins) {
    if (!crowded && spins < kSpinsBeforeYield) {
      __builtin_ia32_pause();
      continue;
    }
    std::this_thread::yield();
    if (shared_->failed.load(std::memory_order_relaxed)) {
      throw PeerError("another rank of the group failed; its own message is above");
    }
    if (deadline.passed()) throw PeerError("not every rank of the group came to a barrier in time");
  }
}

void RankGroup::fail() noexcept {
  if (shared_ != nullptr) shared_->failed.store(true);
}

std::span<double> RankGroup::row(int rank) noexcept {
  auto* rows = reinterpret_cast<double*>(shared_ + 1);
  return {rows + static_cast<std::size_t>(rank) * kRowLength, kRowLength};
}

std::unique_ptr<RankGroup> make_rank_group(int rank, int size,
                                           const std::vector<std::string>& arguments) {
  if (rank == 0) {
    start_other_ranks(arguments, size);
  } else {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == 1) ::_exit(1);  // rank 0 ended before prctl took effect
  }
  const pid_t first = rank == 0 ? ::getpid() : ::getppid();
  return std::make_unique<RankGroup>(rank, size, "syncopate-bench-" + std::to_string(first),
                                     Deadline::after(kRendezvousTimeout));
}

void serve_commands(RankGroup& group, std::string_view description,
                    const std::function<nlohmann::json(const std::string& command)>& run) {
  constexpr unsigned kLongestSeconds = 240;  // less than PeerOptions::answer_timeout
  const auto print = [&](const nlohmann::json& line) {
    if (group.rank() == 0) std::cout << line.dump() << std::endl;
  };
  print({{"event", "ready"}, {"description", description}, {"pids", group.pids()}});
  try {
    while (const std::optional<std::string> command = group.next_command()) {
      if (*command == "quit") return;
      ::alarm(kLongestSeconds);
      nlohmann::json answer = run(*command);
      ::alarm(0);
      answer["event"] = "steps";
      print(answer);
    }
  } catch (...) {
    group.fail();
    throw;
  }
}

std::vector<double> slowest_of_ranks(RankGroup& group, std::size_t count,
                                     const Deadline& deadline) {
  group.barrier(deadline);
  std::vector<double> slowest;
  for (std::size_t i = 0; group.rank() == 0 && i < count; ++i) {
    double seconds = 0.0;
    for (int rank = 0; rank < group.size(); ++rank) {
      seconds = std::max(seconds, group.row(rank)[i]);
    }
    slowest.push_back(seconds);
  }
  group.barrier(deadline);  // rows change only when rank 0 has read them
  return slowest;
}

}  // namespace syncopate::bench
