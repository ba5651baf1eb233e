#include "strategies/collective/segment_hand_over.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/connection.h"
#include "models/base/errors.h"
#include "strategies/cluster/callers.h"
#include "strategies/cluster/hello.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint16_t kSegmentHello = 0x5347;
constexpr int kBacklog = 1024;
// How often whoever waits looks whether a task has died.
constexpr milliseconds kLook(100);
constexpr std::string_view kReached = "reached";

// An address of the abstract namespace: it needs no file and ends with its process.
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

std::string random_name() {
  std::random_device source;
  std::string name = "syncopate-";
  for (int i = 0; i < 4; ++i) name += std::to_string(source()) + "-";
  return name;
}

// An abstract address has no permissions: the kernel says who is at the other end.
bool is_of_our_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

std::string hello_of(int index, const Membership& membership) {
  return std::to_string(index) + " " + membership.nonce();
}

// A message of one byte and one descriptor. The buffers live as long as it does.
struct DescriptorMessage {
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};

  DescriptorMessage() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;
};

void send_descriptor(int socket, int descriptor) {
  DescriptorMessage one;
  cmsghdr* header = CMSG_FIRSTHDR(&one.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (sendmsg(socket, &one.message, MSG_NOSIGNAL) != 1) {
    throw PeerError(describe_errno("hand over", "shared memory", errno));
  }
}

void throw_if_failed(const Membership& membership) {
  if (const auto verdict = membership.failure()) throw PeerError(*verdict);
}

FileDescriptor receive_descriptor(int socket, const Membership& membership,
                                  const Deadline& deadline) {
  while (!wait_ready(socket, POLLIN,
                     Deadline::after(std::min<nanoseconds>(kLook, deadline.remaining())))) {
    throw_if_failed(membership);
    if (!deadline.passed()) continue;
    throw PeerError("shared memory: rank 0's task did not hand it over within " +
                    in_seconds(deadline.patience()) + "; is it stopped, or busy?");
  }
  DescriptorMessage one;
  if (recvmsg(socket, &one.message, MSG_CMSG_CLOEXEC) != 1) {
    throw PeerError("shared memory: rank 0's task closed the connection before it handed it over");
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&one.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    throw FileError(
        "shared memory: its descriptor did not arrive; raise the limit on open files "
        "(ulimit -n)");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return FileDescriptor(descriptor);
}

// Whether all reached rank 0's task. Ends the job before anybody maps what is another size to him.
bool agree(Membership& membership, bool reached, const std::string& layout) {
  const std::vector<std::string> answers =
      membership.exchange(std::string(reached ? kReached : "out of reach") + "\n" + layout);
  bool all_reached = true;
  std::vector<std::string> layouts;
  for (const std::string& answer : answers) {
    const std::size_t line_end = std::min(answer.find('\n'), answer.size());
    all_reached = all_reached && answer.substr(0, line_end) == kReached;
    layouts.push_back(answer.substr(std::min(line_end + 1, answer.size())));
  }
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    if (layouts[i] == layouts[0]) continue;
    const Member& member = membership.members()[i];
    throw UsageError(
        "the tasks' networks differ in size: " + describe(member.index, member.host, member.pid) +
        " has " + layouts[i] + ", rank 0 has " + layouts[0] +
        "; start all tasks with the same program, model and flags");
  }
  return all_reached;
}

// A silent stranger holds up nobody, and is given nothing.
void serve(Callers& callers, const Membership& membership, const FileDescriptor& descriptor,
           const Deadline& deadline) {
  std::vector<int> missing(membership.members().size() - 1);
  std::iota(missing.begin(), missing.end(), 1);
  while (!missing.empty()) {
    throw_if_failed(membership);
    if (deadline.passed()) {
      const Member& late = membership.members()[static_cast<std::size_t>(missing[0])];
      throw PeerError("shared memory: " + describe(late.index, late.host, late.pid) +
                      " did not come for it within " + in_seconds(deadline.patience()) +
                      "; is it stopped, or busy?");
    }
    std::vector<pollfd> sockets;
    callers.add_to(sockets);
    poll(sockets.data(), sockets.size(),
         std::min(callers.poll_milliseconds(deadline), static_cast<int>(kLook.count())));
    for (const Callers::Heard& caller : callers.hear()) {
      const auto task = std::ranges::find_if(missing, [&](int index) {
        return caller.frame.type == kSegmentHello &&
               caller.frame.payload == hello_of(index, membership);
      });
      if (task == missing.end() || !is_of_our_user(caller.connection.descriptor())) {
        warn_turned_away(caller.connection.peer(), "it asked for the shared memory of this job");
        continue;
      }
      send_descriptor(caller.connection.descriptor(), descriptor.get());
      missing.erase(task);
    }
  }
}

FileDescriptor hand_out(Membership& membership, const std::string& layout,
                        const std::function<FileDescriptor()>& make, nanoseconds patience) {
  const std::string name = random_name();
  const AbstractAddress address(name);
  FileDescriptor socket = unix_socket();
  if (bind(socket.get(), address.get(), address.length) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    throw FileError(describe_errno("listen on", "a Unix-domain socket", errno));
  }
  Callers callers(Listener(std::move(socket)),
                  static_cast<std::uint32_t>(
                      hello_of(static_cast<int>(membership.members().size()), membership).size()));
  membership.exchange(name);
  if (!agree(membership, true, layout)) return {};
  FileDescriptor descriptor = make();
  serve(callers, membership, descriptor, Deadline::after(patience));
  return descriptor;
}

FileDescriptor come_for_it(Membership& membership, const std::string& layout,
                           nanoseconds patience) {
  const AbstractAddress address(membership.exchange("").front());
  FileDescriptor socket = unix_socket();
  const bool reached =
      connect(socket.get(), address.get(), address.length) == 0 && is_of_our_user(socket.get());
  if (!agree(membership, reached, layout)) return {};
  const Deadline deadline = Deadline::after(patience);
  try {
    Connection rank_zero(std::move(socket), "shared memory: rank 0's task");
    rank_zero.send({kSegmentHello, hello_of(membership.index(), membership)}, deadline);
    return receive_descriptor(rank_zero.descriptor(), membership, deadline);
  } catch (const PeerError& error) {
    throw PeerError(verdict_or(&membership, error.what()));
  }
}

}  // namespace

FileDescriptor hand_to_all(Membership& membership, const std::string& layout,
                           const std::function<FileDescriptor()>& make, nanoseconds patience) {
  if (membership.index() != 0) return come_for_it(membership, layout, patience);
  try {
    return hand_out(membership, layout, make, patience);
  } catch (const PeerError& error) {
    throw PeerError(verdict_or(&membership, error.what()));
  }
}

}  // namespace syncopate
