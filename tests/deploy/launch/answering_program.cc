// This program stands in for the server that hosts the rendezvous: `answering_program WORD` accepts
// one connection at the inherited socket and answers with WORD, so that a test can tell the
// server's first process from a restarted one.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "models/base/environment.h"
#include "models/base/file_descriptor.h"

int main(int argc, char** argv) {
  using namespace syncopate;
  const auto number = Environment::of_process().get("SYNCOPATE_RENDEZVOUS_FD");
  if (argc != 2 || !number) return 2;
  const std::string word = argv[1];
  const FileDescriptor listening(std::atoi(number->c_str()));
  const FileDescriptor call(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!call) return 1;
  return write(call.get(), word.data(), word.size()) == static_cast<ssize_t>(word.size()) ? 0 : 1;
}
