// Runs the trainings of one test in a folder of their own, with the same flags under every
// launcher, and reads their results.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {

// ServedBy describes a job of `syncopate launch` with parameter servers.
struct ServedBy {
  int workers = 1;
  int servers = 1;
};
Arguments parameter_servers(const ServedBy& roles, const Arguments& more = {});
Arguments one_device();
Arguments mirrored(int replicas);
Arguments multi_worker(int workers);
// Returns the flags of a few quick training steps, each of which changes all parameter values; the
// values do not depend on the processes that compute the steps.
Arguments few_steps(int steps);

// Calls `hash_of`, which trains and returns the hash of the weights, with the words of each
// synchronous strategy with two replicas, and expects the same hash from all of them.
void expect_same_bits_under_synchronous_strategies(
    const std::function<std::string(const Arguments& where, const Arguments& what)>& hash_of,
    const Arguments& what);

class TrainingRuns {
 public:
  // Trains with the given flags. The functions below read the metrics of this run. Fails the test
  // unless the run exits with 0.
  ProgramResult train(const Arguments& where, const Arguments& what);
  nlohmann::json summary() const;
  std::vector<nlohmann::json> evaluations() const;
  std::vector<nlohmann::json> lines(const std::string& event) const;
  // Calls train(), then summary().
  nlohmann::json summary_of(const Arguments& where, const Arguments& what);

  std::filesystem::path operator/(const std::string& name) const { return dir_ / name; }

 private:
  TemporaryFolder dir_;
  int runs_ = 0;
};

}  // namespace syncopate::test
