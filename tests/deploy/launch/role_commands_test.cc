// Tests which environment variables the roles of a launch receive, as local processes and under
// mpirun.
#include "deploy/launch/role_commands.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "models/base/errors.h"
#include "tests/deploy/launch/launch_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::test {
namespace {

Launched run_local(const LaunchCase& job, const std::string& script, int workers, int servers) {
  return job.run_plan([&](int) {
    return make_local_roles({.arguments = {"/bin/sh", "-c", script},
                             .workers = workers,
                             .servers = servers,
                             .environment = job.environment()});
  });
}

TEST(LocalRoles, ReadTheirRoleFromTheirEnvironment) {
  const Launched result = run_local(
      LaunchCase(),
      "echo $SYNCOPATE_ROLE $SYNCOPATE_INDEX of $SYNCOPATE_WORKERS + $SYNCOPATE_SERVERS", 2, 1);
  EXPECT_EQ(count_lines(result.out), 3);
  for (const char* line : {"[worker 0] worker 0 of 2 + 1\n", "[worker 1] worker 1 of 2 + 1\n",
                           "[server 0] server 0 of 2 + 1\n"}) {
    EXPECT_TRUE(contains(result.out, line));
  }
}

TEST(LocalRoles, MeetAtASocketThatOnlyWorkerZeroInherits) {
  // The script tests in /proc whether a file descriptor is open.
  const Launched result = run_local(
      LaunchCase(),
      "echo fd ${SYNCOPATE_RENDEZVOUS_FD:-none}; ls -l /proc/$$/fd | grep -c socket:", 2, 0);
  EXPECT_TRUE(contains(result.out, "[worker 0] 1\n", "[worker 1] fd none\n", "[worker 1] 0\n"));
}

TEST(LocalRoles, MeetAtServerZeroWhereThereAreServers) {
  const Launched result = run_local(
      LaunchCase(),
      "echo fd ${SYNCOPATE_RENDEZVOUS_FD:-none}; ls -l /proc/$$/fd | grep -c socket:", 1, 2);
  EXPECT_TRUE(contains(result.out, "[server 0] 1\n"));
  for (const std::string other : {"[server 1] ", "[worker 0] "}) {
    EXPECT_TRUE(contains(result.out, other + "fd none\n", other + "0\n"));
  }
}

TEST(LocalRoles, MayHaveServersOfAnotherProgram) {
  for (const RoleCommand& role : make_local_roles({.arguments = {"/bin/true", "worker"},
                                 .server_arguments = {"/bin/echo", "server"},
                                 .workers = 1,
                                 .servers = 1})) {
    EXPECT_EQ(role.arguments.back(), name(role.role));
  }
}

TEST(LocalRoles, LeaveServersToTheScheduler) {
  for (const RoleCommand& role :
       make_local_roles({.arguments = {"/bin/true"}, .workers = 1, .servers = 1})) {
    const bool is_server = role.role == Role::kServer;
    EXPECT_EQ(role.cpus.empty(), is_server) << role.name;
    EXPECT_EQ(role.environment.contains("SYNCOPATE_BOUND"), !is_server) << role.name;
  }
}

TEST(LocalRoles, KnowWhetherARoleMayBeRestarted) {
  for (const bool restarts : {false, true}) {
    const auto roles = make_local_roles({.arguments = {"/bin/true"}, .restarts = restarts});
    EXPECT_EQ(roles.front().environment.at("SYNCOPATE_RESTARTS"), restarts ? "1" : "0");
  }
}

TEST(LocalRoles, ShareANonceThatTheNextIncarnationDoesNotHave) {
  const auto nonces = [](const std::vector<RoleCommand>& roles) {
    return std::pair(roles.at(0).environment.at("SYNCOPATE_NONCE"),
                     roles.at(1).environment.at("SYNCOPATE_NONCE"));
  };
  const auto first = nonces(make_local_roles({.arguments = {"/bin/true"}, .workers = 2}));
  const auto second = nonces(make_local_roles({.arguments = {"/bin/true"}, .workers = 2}));
  EXPECT_EQ(first.first.size(), 32U);
  EXPECT_EQ(first.first, first.second);
  EXPECT_NE(first.first, second.first);
}

TEST(LocalRoles, DoNotInheritTheVariablesOfAnOuterLaunch) {
  const auto roles = make_local_roles({.arguments = {"/bin/true"},
                                       .workers = 2,
                                       .environment = {{"SYNCOPATE_RENDEZVOUS_FD", "9"},
                                                       {"SYNCOPATE_INDEX", "9"},
                                                       {"SYNCOPATE_CACHE_DIR", "/c"}}});
  EXPECT_FALSE(roles.at(1).environment.contains("SYNCOPATE_RENDEZVOUS_FD"));
  EXPECT_EQ(roles.at(1).environment.at("SYNCOPATE_INDEX"), "1");
  EXPECT_EQ(roles.at(1).environment.at("SYNCOPATE_CACHE_DIR"), "/c");
}

TEST(Mpirun, AbsentIsAnErrorThatNamesThePackage) {
  EXPECT_TRUE(contains(
      message_of<UnavailableError>([&] {
        make_mpirun({.arguments = {"/bin/true"}, .environment = {{"PATH", "/nonexistent"}}});
      }),
      "openmpi-bin"));
}

// Runs two workers with this script under mpirun; returns no value if mpirun is absent.
std::optional<Launched> run_with_mpirun(const LaunchCase& job, const std::string& script) {
  MpirunJob workers{.arguments = {"/bin/sh", "-c", script},
                    .workers = 2,
                    .environment = job.environment(),
                    .exported = {"ADDED"}};
  workers.environment["HOME"] = job.folder().string();
  workers.environment["ADDED"] = "yes";
  workers.environment["LAUNCHER"] = std::to_string(getpid());
  const auto plan = [&](int) {
    std::vector<RoleCommand> commands;
    commands.push_back(make_mpirun(workers));
    return commands;
  };
  try {
    plan(0);
  } catch (const UnavailableError&) {
    return std::nullopt;
  }
  return job.run_plan(plan);
}

TEST(Mpirun, StartsWorkersThatKnowTheirRankAndRendezvous) {
  const auto result = run_with_mpirun(
      LaunchCase(),
      "echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE at ${SYNCOPATE_RENDEZVOUS%:*} with "
      "${#SYNCOPATE_NONCE} $ADDED");
  if (!result) GTEST_SKIP() << "there is no mpirun: install openmpi-bin";
  EXPECT_EQ(result->exit_code, 0) << result->err;
  for (const char* line : {"0 of 2 at 127.0.0.1 with 32 yes", "1 of 2 at 127.0.0.1 with 32 yes"}) {
    EXPECT_TRUE(contains(result->out, line)) << result->out << result->err;
  }
}

TEST(Mpirun, PassesOnARequestToStop) {
  const auto result =
      run_with_mpirun(LaunchCase(),
                      "trap 'exit 75' USR1; case $OMPI_COMM_WORLD_RANK in 0) : >$FOLDER/pipe;; "
                      "*) : <$FOLDER/pipe; kill -TERM $LAUNCHER;; esac; " +
                          wait_for_a_signal());
  if (!result) GTEST_SKIP() << "there is no mpirun: install openmpi-bin";
  EXPECT_EQ(result->exit_code, 75) << result->err;
}

TEST(LocalRoles, StartLaterIfThatIsRequested) {
  const auto roles = make_local_roles({.arguments = {"/bin/true"},
                                       .workers = 2,
                                       .servers = 1,
                                       .joins = {{.worker = 3, .at_seconds = 2.5}, {.worker = 0}}});
  ASSERT_EQ(roles.size(), 4U);
  EXPECT_EQ(roles[0].name, "server 0");
  EXPECT_EQ(roles[1].name, "worker 0");
  EXPECT_EQ(roles[1].start_after.count(), 1) << "after the others";
  EXPECT_EQ(roles[2].name, "worker 1");
  EXPECT_EQ(roles[2].start_after.count(), 0);
  EXPECT_EQ(roles[3].name, "worker 3");
  EXPECT_EQ(roles[3].start_after.count(), 2500);
  for (const RoleCommand& role : roles) {
    EXPECT_EQ(role.environment.at("SYNCOPATE_WORKERS"), "4");
    EXPECT_EQ(role.environment.at("SYNCOPATE_LATE"), "0,2,3") << "2 never comes";
  }
}

}  // namespace
}  // namespace syncopate::test
