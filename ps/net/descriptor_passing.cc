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
#include <random>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// All tasks of a job on this machine connect at once.
constexpr int kUnixBacklog = 1024;

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t length = 0;

  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    const std::size_t most = sizeof(address.sun_path) - 1;
    const std::size_t size = std::min(name.size(), most);
    std::copy_n(name.data(), size, address.sun_path + 1);  // the first byte stays 0
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

FileDescriptor unix_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw FileError(describe_errno("create", "a Unix-domain socket", errno));
  return socket;
}

// A message of one byte with room for one descriptor. It owns the buffers that `message` points to.
struct DescriptorMessage {
  char byte = 0;
  iovec bytes{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};

  DescriptorMessage() {
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    // CMSG_SPACE would include padding: a second descriptor would fit there and never be closed.
    message.msg_controllen = CMSG_LEN(sizeof(int));
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;
};

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
  throw FileError(fmt::format(
      "{} passed a file descriptor that this process could not take; raise the limit on "
      "open files (ulimit -n)",
      peer));
}

}  // namespace syncopate
