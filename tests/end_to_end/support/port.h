// Finds a TCP port of this machine that no other program uses.
#pragma once

#include <netinet/in.h>

#include <string>

namespace syncopate::test {

class Port {
 public:
  // With `held` true, this Port listens until it is destroyed. Otherwise it only picks a free port.
  explicit Port(bool held);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port();

  const std::string& endpoint() const { return endpoint_; }  // an address such as "127.0.0.1:40123"
  // True if a program listens at the port.
  bool answers() const;

 private:
  void release();

  int socket_;
  sockaddr_in address_{};
  std::string endpoint_;
};

}  // namespace syncopate::test
