// Tests a rendezvous that was derived from node names and job numbers: unknown host names, and
// ports that are in use.
#include "strategies/cluster/prepare_rendezvous.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

// Returns a task of a Slurm job with two tasks; rank 0 is on n1.
ClusterSpec task(int rank, std::uint16_t port = 4000) {
  ClusterSpec spec{.source = "Slurm", .index = rank, .world_size = 2};
  spec.node = rank == 0 ? "n1" : "n2";
  spec.worker_places = {{"n1", 0}, {"n2", 0}};
  spec.rendezvous.endpoint = Endpoint{"n1", port};
  spec.rendezvous.is_derived = true;
  spec.rendezvous.fallback_host = "10.0.0.9";
  return spec;
}

NetworkNames network(bool knows_names, bool is_ours = false, const char* host_name = "n2") {
  return {[=](const std::string&) { return knows_names; },
          [=](const std::string&) { return is_ours; }, host_name};
}

std::string refusal(ClusterSpec spec, const NetworkNames& names) {
  return message_of<UsageError>([&] { prepare_rendezvous(spec, names); });
}

TEST(DerivedRendezvous, KeepsAHostNameThatIsKnown) {
  ClusterSpec spec = task(1);
  prepare_rendezvous(spec, network(true));
  EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"n1", 4000}));
}

TEST(DerivedRendezvous, UsesTheHostOfSrunIfItIsCertainlyTheNodeOfRankZero) {
  ClusterSpec spec = task(1);
  spec.rendezvous.is_fallback_certain = true;
  prepare_rendezvous(spec, network(false));
  EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"10.0.0.9", 4000}));
}

TEST(DerivedRendezvous, UsesTheHostOfSrunIfAllNodesAreThisMachine) {
  ClusterSpec spec = task(1);
  prepare_rendezvous(spec, network(false, true, "laptop"));
  EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"10.0.0.9", 4000}));
}

TEST(DerivedRendezvous, IsRefusedWhenNoAddressIsCertain) {
  const std::string line = refusal(task(1), network(false));
  EXPECT_TRUE(contains(line, "the host 'n1', where Slurm runs the first task, is unknown",
                       "--rendezvous HOST"));
  EXPECT_NE(refusal(task(1), network(false, false, "laptop")), "") << "srun ran elsewhere";
  EXPECT_NE(refusal(task(1), network(false, true, "n2.example.org")), "") << "srun ran here, on n2";
  ClusterSpec loopback = task(1);
  loopback.rendezvous.is_fallback_certain = true;
  loopback.rendezvous.fallback_host = "127.0.0.1";
  EXPECT_NE(refusal(loopback, network(false)), "") << "of another machine";
}

TEST(DerivedRendezvous, IsOpenedByRankZeroUnderAnyHostName) {
  const std::uint16_t port = Listener(Endpoint{"", 0}).port();
  ClusterSpec spec = task(0, port);
  prepare_rendezvous(spec, network(true));
  ASSERT_GE(spec.rendezvous.descriptor, 0);
  const Listener listener{FileDescriptor(spec.rendezvous.descriptor)};
  EXPECT_EQ(listener.port(), port);
}

TEST(DerivedRendezvous, NamesAPortInUseAndTheFlagThatChangesIt) {
  const Listener taken(Endpoint{"", 0});
  const std::string line = refusal(task(0, taken.port()), network(true));
  EXPECT_TRUE(contains(line,
                       "port " + std::to_string(taken.port()) + ", follows from Slurm's variables",
                       "give all tasks --rendezvous n1:PORT"));
}

TEST(DerivedRendezvous, IsRefusedByATaskOnAnotherNodeThanInItsVariables) {
  ClusterSpec spec = task(0);
  spec.node = "n2";
  const std::string line = refusal(spec, network(true));
  EXPECT_TRUE(contains(line,
                       "rank 0 runs on node n2, local rank 0, but by Slurm's variables it is on "
                       "node n1, local rank 0"));
}

TEST(ChosenRendezvous, IsNotChanged) {
  ClusterSpec spec = task(0);
  spec.rendezvous.is_derived = false;
  prepare_rendezvous(spec, network(false));
  EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"n1", 4000}));
  EXPECT_EQ(spec.rendezvous.descriptor, -1);
}

TEST(OwnHost, IsTheRendezvousHostForTheListeningTaskAndElseTheOwnAddress) {
  ClusterSpec server{.source = "Slurm", .role = Role::kServer, .num_servers = 2};
  server.rendezvous.endpoint = Endpoint{"n1", 4000};
  EXPECT_EQ(own_host_towards(server), "n1");
  server.index = 1;
  server.rendezvous.endpoint = Endpoint{"127.0.0.1", 4000};
  EXPECT_EQ(own_host_towards(server), "127.0.0.1");
}

}  // namespace
}  // namespace syncopate
