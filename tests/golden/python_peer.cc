#include "tests/golden/python_peer.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace syncopate {

PythonPeer run_python_peer(const std::string& script, const std::string& arguments,
                           const std::string& log) {
  constexpr int kAbsent = 77;  // what the scripts exit with
  constexpr int kNoPython = 127;
  const char* const python = std::getenv("SYNCOPATE_PEER_PYTHON");
  const std::string command = std::string(python != nullptr ? python : "python3") +
                              " " SYNCOPATE_GOLDEN_DIR "/" + script + " " + arguments + " >" + log +
                              " 2>&1";
  const int status = std::system(command.c_str());
  PythonPeer peer{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  peer.is_absent = peer.exit_code == kAbsent || peer.exit_code == kNoPython;
  std::ifstream stream(log);
  peer.output.assign(std::istreambuf_iterator<char>(stream), {});
  return peer;
}

}  // namespace syncopate
