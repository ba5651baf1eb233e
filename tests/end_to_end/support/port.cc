#include "tests/end_to_end/support/port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace syncopate::test {

namespace {

// These ports are below those that the kernel gives to programs that do not choose one (32768 to
// 60999 by default), so no other connection takes a port between its choice and its use.
constexpr int kFirst = 20000;
constexpr int kCount = 12000;

// Returns the next port of this process. A port that was let go for a program to take is not drawn
// again, as a port drawn at random would be now and then.
std::uint16_t next_port() {
  static std::atomic<unsigned> next{std::random_device()()};
  return static_cast<std::uint16_t>(kFirst + next++ % kCount);
}

// Claims the port among all tests of this machine, until this process ends: another test must not
// choose a port that the programs of this one are about to open. The claim is a socket with an
// abstract name, which the kernel removes.
bool claim(std::uint16_t port) {
  FileDescriptor claimed(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "syncopate-test-port-" + std::to_string(port);
  text.copy(name.sun_path + 1, text.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (bind(claimed.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0) return false;
  static_cast<void>(claimed.release());  // open until the process ends
  return true;
}

}  // namespace

Port::Port(bool held) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  address_.sin_family = AF_INET;
  address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int result = -1;
  for (int tries = 0; tries < 100 && result != 0; ++tries) {
    const std::uint16_t port = next_port();
    if (!claim(port)) continue;
    address_.sin_port = htons(port);
    result = bind(socket_, reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
  }
  EXPECT_EQ(result, 0) << "no free port";
  if (held) {
    EXPECT_EQ(listen(socket_, 1), 0);
  }
  endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address_.sin_port));
  if (!held) release();
}

Port::~Port() { release(); }

FileDescriptor Port::call() const {
  FileDescriptor caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(caller.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0) {
    caller.reset();
  }
  return caller;
}

void Port::release() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

}  // namespace syncopate::test
