// Finds a TCP port of this machine that no other program uses.
#pragma once

#include <netinet/in.h>

#include <string>

#include "models/base/file_descriptor.h"

namespace syncopate::test {

class Port {
 public:
  // With `held` true, this Port listens until it is destroyed. Otherwise it only picks a free port.
  explicit Port(bool held);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port();

  const std::string& endpoint() const { return endpoint_; }  // an address such as "127.0.0.1:40123"
  // Returns a connection to the program that listens at the port; empty if there is none.
  FileDescriptor call() const;
  bool answers() const { return static_cast<bool>(call()); }

 private:
  void release();

  int socket_;
  sockaddr_in address_{};
  std::string endpoint_;
};

}  // namespace syncopate::test
