// One task of a job that checks the contract of a Collective. processes_test.cc starts it, directly
// or under mpirun. Exits with 0, or with 1 after a line that says what was wrong.
//
//   rank_program mpi
//   rank_program ring|tcp|shm INDEX WORLD_SIZE LOCAL_RANKS HOST:PORT LISTENING_DESCRIPTOR
//
// With descriptor -1, rank 0 listens at HOST:PORT itself.
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "models/base/errors.h"
#include "strategies/cluster/membership.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/mpi_session.h"
#include "tests/strategies/collective/contract.h"

namespace syncopate {
namespace {

constexpr std::int64_t kBlock = 100'003;

CollectiveOptions options_for(std::string name, int num_local_ranks) {
  CollectiveOptions options;
  options.name = std::move(name);
  options.num_local_ranks = num_local_ranks;
  options.block_elements = kBlock;
  options.timeout = std::chrono::seconds(60);
  return options;
}

// Runs every rank on a thread of its own. Returns the first description of an error, or "".
std::string check_ranks(const CollectiveOptions& options, const SumContract& contract) {
  const auto ranks = make_collectives(options);
  std::vector<std::string> errors(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        errors[r] = check_contract(*ranks[r], contract);
      } catch (const std::exception& error) {
        errors[r] = error.what();
      }
      if (!errors[r].empty()) ranks[r]->abort("a rank complained: " + errors[r]);
    });
  }
  threads.clear();
  for (const std::string& error : errors) {
    if (!error.empty()) return error;
  }
  return "";
}

std::string check_mpi() {
  MpiSession session;
  const std::string wrong =
      check_ranks(options_for("mpi", 1), SumContract{.one_order = session.size() == 1});
  if (wrong.empty()) {
    session.close();
  } else {
    std::cerr << "rank " << session.rank() << ": " << wrong << std::endl;
    session.abort(1);
  }
  return wrong;
}

std::string check_ring(const std::vector<std::string>& arguments) {
  ClusterSpec spec;
  spec.source = "test";
  spec.index = std::stoi(arguments.at(1));
  spec.world_size = std::stoi(arguments.at(2));
  spec.rendezvous.endpoint = parse_endpoint(arguments.at(4), "HOST:PORT");
  if (spec.index == 0) spec.rendezvous.descriptor = std::stoi(arguments.at(5));
  spec.nonce = "processes_test";
  CollectiveOptions options = options_for("ring", std::stoi(arguments.at(3)));
  MembershipOptions membership_options;
  membership_options.num_replicas = options.num_local_ranks;
  membership_options.rendezvous_timeout = std::chrono::seconds(30);
  const auto membership = join_cluster(spec, membership_options);
  options.membership = membership.get();
  if (arguments.at(0) == "tcp") options.transport = Transport::kTcp;
  if (arguments.at(0) == "shm") options.transport = Transport::kShm;
  const std::string wrong = check_ranks(options, {});
  if (wrong.empty()) {
    membership->leave();
  } else {
    membership->fail(wrong);
  }
  return wrong;
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    const std::string wrong =
        arguments.at(0) == "mpi" ? syncopate::check_mpi() : syncopate::check_ring(arguments);
    if (wrong.empty()) return 0;
    std::cerr << wrong << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 1;
}
