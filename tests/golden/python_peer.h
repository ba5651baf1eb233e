// Runs the Python scripts of this folder, which compute what tests compare with.
#pragma once

#include <string>

namespace syncopate {

struct PythonPeer {
  int exit_code = -1;
  bool is_absent = false;  // there is no Python, or it lacks a package that the script needs
  std::string output;      // standard output and error
};

// Runs a script of this folder by the interpreter that the variable SYNCOPATE_PEER_PYTHON names,
// python3 by default. arguments: as a shell reads them. log: a file for the output.
PythonPeer run_python_peer(const std::string& script, const std::string& arguments,
                           const std::string& log);

}  // namespace syncopate
