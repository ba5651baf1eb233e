// Runs a job twice, alone and among strangers, and compares the runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/end_to_end/strangers/strangers.h"
#include "tests/end_to_end/support/training_runs.h"

namespace syncopate::test {

// Returns the command with the limit on open files that Linux gives by default.
Arguments with_usual_file_limit(const Arguments& command);
// Returns the flags of a training, equal for all jobs of these tests.
Arguments training_of(int steps);
// Trains without strangers, and returns the hash of the weights.
std::string weights_hash_without_strangers(const Arguments& where, int steps);

struct DisturbedJobOptions {
  int steps = 100;
  int milliseconds_per_step = 30;  // so that there is time for strangers
  int idle_connections = 1000;     // to each port
};

class DisturbedJob {
 public:
  // Runs `where`, the launcher and the strategy, among strangers. Fails the test if that job does
  // not end well, if a stranger was told what it should not know, if a kind of disturbance did not
  // take place, or if a process took much memory.
  DisturbedJob(const Arguments& where, const DisturbedJobOptions& options);
  // Does the same with a job of parameter servers and these flags. The workers start once each kind
  // of disturbance has reached each server.
  DisturbedJob(const ServedBy& roles, const Arguments& flags, const DisturbedJobOptions& options);

  const std::string& weights_hash() const { return hash_; }
  std::int64_t samples() const { return samples_; }
  std::size_t ports() const { return ports_; }
  // Trains the same alone.
  std::string undisturbed_weights_hash() const;
  // Fails the test unless each of the servers has counted messages and connections of strangers.
  void expect_strangers_were_counted(int servers) const;

 private:
  using Programs = std::vector<std::unique_ptr<RunningProgram>>;

  Arguments disturbed_training(const std::filesystem::path& metrics) const;
  // Waits for the programs, whose metrics are in this file, and checks what has happened.
  void finish(const Programs& programs, Strangers& strangers, const std::filesystem::path& metrics);
  void expect_attempts(std::initializer_list<const char*> kinds) const;

  const Arguments where_;
  const DisturbedJobOptions options_;
  std::string hash_;
  std::int64_t samples_ = 0;
  std::size_t ports_ = 0;
  std::map<std::string, std::int64_t> attempts_;  // by kind
  std::string err_;
};

}  // namespace syncopate::test
