#include "ps/net/descriptor_passing.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

// The length of a listening socket's queue: all tasks of a job on this machine connect at once.
constexpr int kUnixBacklog = 1024;

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t length = 0;

  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    const std::size_t most = sizeof(address.sun_path) - 1;
    const std::size_t size = std::min(name.size(), most);
    std::copy_n(name.data(), size, address.sun_path + 1);  // a leading zero byte: an abstract name
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

FileDescriptor unix_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw FileError(describe_errno("create", "a Unix-domain socket", errno));
  return socket;
}

// A one-byte message with room for one descriptor. It owns the buffers that `message` points to.
struct DescriptorMessage {
  char byte = 0;
  iovec bytes{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};

  DescriptorMessage() {
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    // CMSG_SPACE would include padding: a second descriptor would fit into it and never be closed.
    message.msg_controllen = CMSG_LEN(sizeof(int));
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;
};

void warn_refused_caller(std::string_view why) {
  log(LogLevel::kWarning,
      fmt::format("refused a process of this machine that requested this task's shared memory: {}",
                  why));
}

// Answers a caller's request for the file descriptor. Returns false while the request is
// incomplete.
bool answer_caller(Connection& caller, int descriptor, const DescriptorServer::Accepts& accepts) {
  try {
    const std::optional<Frame> request = caller.try_receive();
    if (!request) return false;
    if (accepts(*request)) {
      send_descriptor(caller.descriptor(), descriptor);
    } else {
      refuse_descriptor(caller.descriptor());
      warn_refused_caller("it belongs to another job");
    }
  } catch (const PeerError& error) {
    refuse_descriptor(caller.descriptor());
    warn_refused_caller(error.what());
  }
  return true;
}

}  // namespace

std::string random_socket_name() {
  std::random_device source;
  std::string name = "syncopate-";
  for (int i = 0; i < 4; ++i) name += fmt::format("{}-", source());
  return name;
}

FileDescriptor listen_at_name(const std::string& name) {
  const AbstractAddress address(name);
  FileDescriptor socket = unix_socket();
  if (bind(socket.get(), address.get(), address.length) != 0 ||
      listen(socket.get(), kUnixBacklog) != 0) {
    throw FileError(describe_errno("listen on", "a Unix-domain socket", errno));
  }
  return socket;
}

FileDescriptor call_name(const std::string& name) {
  const AbstractAddress address(name);
  FileDescriptor socket = unix_socket();
  const bool reached = connect(socket.get(), address.get(), address.length) == 0;
  return reached && is_of_our_user(socket.get()) ? std::move(socket) : FileDescriptor();
}

bool is_of_our_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

void send_descriptor(int socket, int descriptor) {
  DescriptorMessage one;
  cmsghdr* header = CMSG_FIRSTHDR(&one.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (sendmsg(socket, &one.message, MSG_NOSIGNAL) != 1) {
    throw PeerError(describe_errno("pass", "a file descriptor", errno));
  }
}

void refuse_descriptor(int socket) noexcept {
  const char byte = 0;
  (void)send(socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

FileDescriptor receive_descriptor(int socket, std::string_view peer) {
  DescriptorMessage one;
  ssize_t received = 0;
  do {
    received = recvmsg(socket, &one.message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received != 1) {
    throw PeerError(
        fmt::format("{} closed the connection before it passed the file descriptor", peer));
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&one.message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return FileDescriptor(descriptor);
  }
  if ((one.message.msg_flags & MSG_CTRUNC) == 0) return {};
  throw FileError(describe_errno("take a file descriptor from", peer, EMFILE));
}

DescriptorServer::DescriptorServer(FileDescriptor listening, std::uint32_t longest_request,
                                   std::chrono::nanoseconds timeout)
    : listener_(Listener(std::move(listening))),
      longest_request_(longest_request),
      timeout_(timeout) {}

void DescriptorServer::add_to(std::vector<pollfd>& sockets) const {
  sockets.push_back({listener_.descriptor(callers_.size()), POLLIN, 0});
  for (const Caller& caller : callers_) {
    sockets.push_back({caller.connection.descriptor(), POLLIN, 0});
  }
}

int DescriptorServer::poll_milliseconds() const {
  const bool is_full = listener_.is_full(callers_.size());
  if (callers_.empty()) return is_full ? CallerListener::kFullMilliseconds : -1;
  const int left = callers_.front().deadline.remaining_milliseconds();
  return is_full ? std::min(left, CallerListener::kFullMilliseconds) : left;
}

void DescriptorServer::accept() {
  while (std::optional<Connection> caller = listener_.accept(callers_.size())) {
    // Callers of other users are refused here, so that they do not count among the callers: there
    // may be any number of them.
    if (!is_of_our_user(caller->descriptor())) {
      warn_refused_caller("it belongs to another user");
      continue;
    }
    caller->limit_payload(longest_request_);
    callers_.push_back({*std::move(caller), Deadline::after(timeout_)});
  }
}

void DescriptorServer::answer(int descriptor, const Accepts& accepts) {
  accept();
  std::erase_if(callers_, [&](Caller& caller) {
    return answer_caller(caller.connection, descriptor, accepts) || caller.deadline.passed();
  });
}

}  // namespace syncopate
