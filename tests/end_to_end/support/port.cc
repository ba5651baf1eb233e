#include "tests/end_to_end/support/port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace syncopate::test {

Port::Port(bool held) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  address_.sin_family = AF_INET;
  address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address_;
  EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address_), size), 0);
  EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  if (held) {
    EXPECT_EQ(listen(socket_, 1), 0);
  }
  endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address_.sin_port));
  if (!held) release();
}

Port::~Port() { release(); }

bool Port::answers() const {
  const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected =
      connect(caller, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) == 0;
  close(caller);
  return connected;
}

void Port::release() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

}  // namespace syncopate::test
