// A TCP port of this machine that nobody else has.
#pragma once

#include <netinet/in.h>

#include <string>

namespace syncopate::test {

class Port {
 public:
  // Held: somebody (we) listens there. Else it was free a moment ago.
  explicit Port(bool held);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port();

  const std::string& endpoint() const { return endpoint_; }  // "127.0.0.1:40123"
  // Somebody listens there.
  bool answers() const;

 private:
  void release();

  int socket_;
  sockaddr_in address_{};
  std::string endpoint_;
};

}  // namespace syncopate::test
