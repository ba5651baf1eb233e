// This program is syncopate-bench with only its hidden subcommand:
//
//   ps_peer_program ps-peer-rank [--rank R]
#include <iostream>
#include <string>
#include <vector>

#include "bench/ps/peers/zeromq_peer.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    syncopate::bench::run_ps_peer_rank(arguments.size() > 1 ? std::stoi(arguments.at(2)) : 0);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "ps_peer_program: " << error.what() << '\n';
  }
  return 1;
}
