#include "tests/end_to_end/strangers/disturbed_job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/support/as_words.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// The most memory of one process. Alone, a process of these jobs takes 30 to 90 MB.
constexpr std::int64_t kMostBytes = std::int64_t{500} << 20;

}  // namespace

Arguments with_usual_file_limit(const Arguments& command) {
  return Arguments{"/bin/bash", "-c", "ulimit -n 1024; exec \"$@\"", "-"} + command;
}

Arguments training_of(int steps) {
  return as_words("--model mlp --data synthetic:1x28x28:10:960 --steps", std::to_string(steps),
                  "--batch-size-per-replica 24 --transport tcp --threads 1 --seed 7 --no-progress "
                  "--rendezvous-timeout 180");
}

DisturbedJob::DisturbedJob(const Arguments& where, const DisturbedJobOptions& options)
    : where_(where), options_(options) {
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  Programs programs;
  programs.push_back(std::make_unique<RunningProgram>(
      with_usual_file_limit(syncopate_command(where + disturbed_training(metrics)))));
  Strangers strangers({programs.front()->pid()}, {.idle_connections = options.idle_connections});
  finish(programs, strangers, metrics);
}

DisturbedJob::DisturbedJob(const ServedBy& roles, const Arguments& flags,
                           const DisturbedJobOptions& options)
    : where_(parameter_servers(roles, flags)), options_(options) {
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  const Port rendezvous(false);
  Programs programs;
  const auto start = [&](const std::string& role, int index) {
    const Arguments place{"/usr/bin/env",
                          "SYNCOPATE_ROLE=" + role,
                          "SYNCOPATE_INDEX=" + std::to_string(index),
                          "SYNCOPATE_WORKERS=" + std::to_string(roles.workers),
                          "SYNCOPATE_SERVERS=" + std::to_string(roles.servers),
                          "SYNCOPATE_NONCE=a nonce of this test",
                          "SYNCOPATE_RENDEZVOUS=" + rendezvous.endpoint()};
    const Arguments train{"train", "--strategy", "parameter-server"};
    programs.push_back(std::make_unique<RunningProgram>(with_usual_file_limit(
        place + syncopate_command(train + flags + disturbed_training(metrics)))));
  };
  std::vector<pid_t> servers;
  for (int index = 0; index < roles.servers; ++index) {
    start("server", index);
    servers.push_back(programs.back()->pid());
  }
  // Each server has a port for data, and server 0 one for control.
  Strangers strangers(std::move(servers), {.idle_connections = options.idle_connections,
                                           .servers = static_cast<std::size_t>(roles.servers) + 1});
  EXPECT_TRUE(strangers.await_first_round());
  for (int index = 0; index < roles.workers; ++index) start("worker", index);
  finish(programs, strangers, metrics);
}

Arguments DisturbedJob::disturbed_training(const std::filesystem::path& metrics) const {
  return training_of(options_.steps) +
         as_words("--service-time", "constant:" + std::to_string(options_.milliseconds_per_step),
                  "--metrics", metrics);
}

void DisturbedJob::finish(const Programs& programs, Strangers& strangers,
                          const std::filesystem::path& metrics) {
  bool is_complete = true;
  for (const auto& program : programs) {
    const ProgramResult result = program->wait();
    err_ += result.err;
    EXPECT_EQ(result.exit_code, 0) << result.err;
    is_complete &= result.exit_code == 0;
  }
  strangers.stop();
  if (is_complete) {
    const nlohmann::json summary = summary_of(metrics);
    hash_ = summary.at("weights_hash").dump();
    samples_ = summary.at("samples");
  }
  ports_ = strangers.ports().size();
  for (const std::string& leak : strangers.leaks()) ADD_FAILURE() << "a stranger got: " << leak;
  attempts_ = strangers.attempts();
  expect_attempts({"random bytes", "half greeting", "huge length", "forged nonce",
                   "idle connections", "slow bytes"});
  EXPECT_LT(strangers.peak_memory_bytes(), kMostBytes);
  ::testing::Test::RecordProperty("peak_memory_bytes",
                                  std::to_string(strangers.peak_memory_bytes()));
  ::testing::Test::RecordProperty("longest_message_bytes",
                                  std::to_string(strangers.longest_message_bytes()));
}

void DisturbedJob::expect_attempts(std::initializer_list<const char*> kinds) const {
  for (const char* kind : kinds) EXPECT_TRUE(attempts_.contains(kind)) << kind << " did not happen";
}

std::string weights_hash_without_strangers(const Arguments& where, int steps) {
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  const ProgramResult result =
      successful(run_syncopate(where + training_of(steps) + Arguments{"--metrics", metrics}));
  return result.exit_code == 0 ? summary_of(metrics).at("weights_hash").dump() : "no result";
}

std::string DisturbedJob::undisturbed_weights_hash() const {
  return weights_hash_without_strangers(where_, options_.steps);
}

void DisturbedJob::expect_strangers_were_counted(int servers) const {
  expect_attempts({"endless message", "forged name", "forged token", "repeated message"});
  const std::regex line(
      "([0-9]+) messages without a valid header, ([0-9]+) other messages, and ([0-9]+) "
      "connections without a greeting");
  int counted = 0;
  for (std::sregex_iterator found(err_.begin(), err_.end(), line), end; found != end; ++found) {
    ++counted;
    EXPECT_GT(std::stoll((*found)[1]), 0) << found->str();
    EXPECT_GT(std::stoll((*found)[2]), 0) << found->str();
    // The server has closed the idle connections that are too many.
    EXPECT_GT(std::stoll((*found)[3]), options_.idle_connections / 2) << found->str();
  }
  EXPECT_EQ(counted, servers) << err_;
}

}  // namespace syncopate::test
