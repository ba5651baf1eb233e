// This program is syncopate-bench with only its hidden subcommand:
//
//   ps_peer_program ps-peer-rank --transport NAME [--rank R]
#include <iostream>
#include <string>
#include <vector>

#include "bench/ps/peers/ps_peers.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    syncopate::bench::PsPeerRankOptions options;
    options.transport = arguments.at(2);
    if (arguments.size() > 3) options.rank = std::stoi(arguments.at(4));
    syncopate::bench::run_ps_peer_rank(options);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "ps_peer_program: " << error.what() << '\n';
  }
  return 1;
}
