#include "strategies/collective/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <poll.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <string>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"

namespace syncopate {
namespace {

constexpr std::size_t kPageBytes = std::size_t{2} << 20;  // huge pages, where the system gives them
constexpr std::size_t kNonceBytes = 64;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Where things stand in the segment: nonce and header, then one block per rank.
struct Layout {
  std::size_t header_bytes;
  std::size_t block_bytes;
  int num_ranks;

  std::size_t block(int rank) const {
    return header_bytes + static_cast<std::size_t>(rank) * block_bytes;
  }
  std::size_t total() const { return block(num_ranks); }
};

class MappedBuffer final : public Buffer {
 public:
  MappedBuffer(std::byte* mapping, std::size_t mapped_bytes, std::size_t offset_bytes)
      : mapping_(mapping), mapped_bytes_(mapped_bytes), offset_bytes_(offset_bytes) {}
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;
  ~MappedBuffer() override { munmap(mapping_, mapped_bytes_); }

  std::byte* data() noexcept override { return mapping_ + offset_bytes_; }
  std::size_t size_bytes() const noexcept override { return mapped_bytes_ - offset_bytes_; }
  Device device() const noexcept override { return {}; }

 private:
  std::byte* mapping_;
  std::size_t mapped_bytes_;
  std::size_t offset_bytes_;
};

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

void wait_readable(int descriptor, const Deadline& deadline, const char* what) {
  pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, deadline.remaining_milliseconds()) <= 0) {
    throw PeerError(std::string("shared memory: waited too long for ") + what);
  }
}

void send_descriptor(int socket, int descriptor) {
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1) {
    throw PeerError(describe_errno("hand over", "shared memory", errno));
  }
}

FileDescriptor receive_descriptor(int socket, const Deadline& deadline) {
  wait_readable(socket, deadline, "rank 0's task to hand over the segment");
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const cmsghdr* header = nullptr;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1) header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    throw PeerError("shared memory: rank 0's task closed the connection");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return FileDescriptor(descriptor);
}

FileDescriptor make_memory(const Layout& layout) {
  FileDescriptor memory(memfd_create("syncopate", MFD_CLOEXEC));
  if (!memory || ftruncate(memory.get(), static_cast<off_t>(layout.total())) != 0) {
    throw OutOfMemoryError(describe_errno("make", "shared memory", errno));
  }
  return memory;
}

// Pages that are missing when they are first written end the process with SIGBUS: asked for now,
// they are a line that can be read. Each task asks for its own, so that they lie near its CPUs; and
// through its mapping, which wants huge pages, where the descriptor would get small ones (kernels
// before 5.14 know only that).
void reserve(const FileDescriptor& memory, std::byte* mapping, std::size_t begin,
             std::size_t size) {
  if (madvise(mapping + begin, size, MADV_POPULATE_WRITE) == 0) return;
  if (errno == EINVAL &&
      fallocate(memory.get(), 0, static_cast<off_t>(begin), static_cast<off_t>(size)) == 0) {
    return;
  }
  throw OutOfMemoryError("shared memory: " + std::to_string(size >> 20) +
                         " MiB for gradients are not to be had (" + std::strerror(errno) +
                         "); start fewer replicas on this machine or give the job more memory");
}

std::shared_ptr<Buffer> map(int memory, const Layout& layout) {
  void* mapping = mmap(nullptr, layout.total(), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapping == MAP_FAILED) {
    throw OutOfMemoryError(describe_errno("map", "shared memory", errno));
  }
  madvise(mapping, layout.total(), MADV_HUGEPAGE);
  return std::make_shared<MappedBuffer>(static_cast<std::byte*>(mapping), layout.total(),
                                        kNonceBytes);
}

bool all_say(const std::vector<std::string>& answers, std::string_view word) {
  return std::ranges::all_of(answers, [&](const std::string& answer) { return answer == word; });
}

// Rank 0's task: lays the segment out and hands it to every other one.
FileDescriptor hand_out(Membership& membership, const Layout& layout, const Deadline& deadline) {
  const std::string name = random_name();
  const AbstractAddress address(name);
  const FileDescriptor listener = unix_socket();
  const auto others = static_cast<int>(membership.members().size()) - 1;
  if (bind(listener.get(), address.get(), address.length) != 0 ||
      listen(listener.get(), others) != 0) {
    throw FileError(describe_errno("listen on", "a Unix-domain socket", errno));
  }
  membership.exchange(name);
  if (!all_say(membership.exchange("reached"), "reached")) return {};
  FileDescriptor memory = make_memory(layout);
  for (int i = 0; i < others; ++i) {
    wait_readable(listener.get(), deadline, "the other tasks to come for the segment");
    const FileDescriptor caller(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (caller) send_descriptor(caller.get(), memory.get());
  }
  return memory;
}

FileDescriptor come_for_it(Membership& membership, const Deadline& deadline) {
  const AbstractAddress address(membership.exchange("").front());
  const FileDescriptor socket = unix_socket();
  const bool reached = connect(socket.get(), address.get(), address.length) == 0;
  if (!all_say(membership.exchange(reached ? "reached" : "out of reach"), "reached")) return {};
  return receive_descriptor(socket.get(), deadline);
}

}  // namespace

std::unique_ptr<SharedSegment> share_segment(Membership& membership, std::size_t header_bytes,
                                             std::int64_t block_elements,
                                             const Deadline& deadline) {
  const std::vector<Member>& members = membership.members();
  const Member& me = members[static_cast<std::size_t>(membership.index())];
  const Layout layout{
      .header_bytes = rounded(kNonceBytes + header_bytes),
      .block_bytes = rounded(static_cast<std::size_t>(block_elements) * sizeof(float)),
      .num_ranks = members.back().first_replica + members.back().num_replicas};
  const FileDescriptor memory =
      me.index == 0 ? hand_out(membership, layout, deadline) : come_for_it(membership, deadline);
  if (!memory) return nullptr;
  const std::size_t own = static_cast<std::size_t>(me.num_replicas) * layout.block_bytes;
  auto segment = std::make_unique<SharedSegment>();
  segment->memory = map(memory.get(), layout);
  std::byte* front = segment->memory->data() - kNonceBytes;
  if (me.index == 0) reserve(memory, front, 0, layout.header_bytes);
  reserve(memory, front, layout.block(me.first_replica), own);
  // The nonce read back: this is the segment of this job, and not a copy of it.
  const std::string nonce = membership.nonce().substr(0, kNonceBytes);
  if (me.index == 0) std::memcpy(front, nonce.data(), nonce.size());
  membership.exchange("mapped");
  if (std::memcmp(front, nonce.data(), nonce.size()) != 0) {
    throw PeerError(
        "shared memory: what rank 0's task handed over does not carry this job's nonce");
  }
  for (int r = 0; r < layout.num_ranks; ++r) {
    segment->blocks.emplace_back(segment->memory, layout.block(r) - kNonceBytes,
                                 Shape{block_elements}, DType::kF32);
  }
  return segment;
}

}  // namespace syncopate
