#include "tests/end_to_end/strangers/disturbed_job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/end_to_end/strangers/strangers.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/scratch_dir.h"

namespace syncopate::test {
namespace {

// The most memory of one process. Alone, a process of these jobs takes 30 to 90 MB.
constexpr std::int64_t kMostBytes = std::int64_t{500} << 20;

}  // namespace

Arguments with_usual_file_limit(const Arguments& command) {
  return Arguments{"/bin/bash", "-c", "ulimit -n 1024; exec \"$@\"", "-"} + command;
}

Arguments training_of(int steps) {
  return {"--model",
          "mlp",
          "--data",
          "synthetic:1x28x28:10:960",
          "--steps",
          std::to_string(steps),
          "--batch-size-per-replica",
          "24",
          "--transport",
          "tcp",
          "--threads",
          "1",
          "--seed",
          "7",
          "--no-progress",
          "--rendezvous-timeout",
          "60"};
}

DisturbedJob::DisturbedJob(const Arguments& where, const DisturbedJobOptions& options)
    : where_(where), options_(options) {
  const ScratchDir scratch;
  const auto metrics = scratch / "m.jsonl";
  RunningProgram job(with_usual_file_limit(syncopate_command(
      where + training_of(options.steps) +
      Arguments{"--service-time", "constant:" + std::to_string(options.milliseconds_per_step),
                "--metrics", metrics})));
  Strangers strangers(job.pid(), {.idle_connections = options.idle_connections});
  const ProgramResult result = job.wait();
  strangers.stop();
  err_ = result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
  if (result.exit_code == 0) {
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
  const ScratchDir scratch;
  const auto metrics = scratch / "m.jsonl";
  const ProgramResult result =
      run_syncopate(where + training_of(steps) + Arguments{"--metrics", metrics});
  EXPECT_EQ(result.exit_code, 0) << result.err;
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
