// The table of a scaling grid: what was asked of the machine, what came of it, and how that
// compares with the smallest combination. Terminal, page and JSON are made of these numbers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/plots/document.h"
#include "bench/harness/measure.h"
#include "bench/scaling/scaling_rounds.h"

namespace syncopate::bench {

// What one pass is: the training images of MNIST.
inline constexpr double kSamplesPerPass = 60'000.0;

struct ScalingRow {
  std::string strategy;
  int tasks = 1;                // processes
  int replicas = 1;             // of all tasks together
  int threads = 1;              // of each replica
  std::int64_t batch_size = 0;  // of all replicas together
  Spread samples_per_second;
  std::vector<double> samples_per_second_per_round;  // all rounds
  double utilisation = 0.0;  // CPU time of the tasks over wall time times cpus(), mean of rounds
  Spread speed_up;           // samples/s over those of the first row, round by round
  bool is_oversubscribed = false;  // more threads than the machine has CPUs

  int cpus() const noexcept { return replicas * threads; }  // asked for: one per thread
  int cpus_per_task() const noexcept { return cpus() / tasks; }
};

struct ScalingTable {
  std::string model;
  std::string optimizer;
  int cpus = 1;  // that this process may use
  bool is_quiet = true;
  std::string conditions;        // bench/harness/rounds.h
  std::vector<ScalingRow> rows;  // never empty; the first is the base
};

ScalingTable make_scaling_table(const ScalingResult& result, int cpus);

// speed_up per CPU asked for, those of the base being one: 1.0 is ideal.
double scaling_efficiency(double speed_up, const ScalingRow& row, const ScalingRow& base);
// Of kSamplesPerPass.
double seconds_per_pass(double samples_per_second);

// "2 replicas x 1 thread".
std::string combination_text(const ScalingRow& row);
// "mirrored, 2 replicas x 1 thread: 1.8 times ...": the row with most samples per second.
std::string scaling_verdict(const ScalingTable& table);
// What the columns mean, and how large batches were.
std::string scaling_note(const ScalingTable& table);
// As terminal and page show it; what is oversubscribed has a note.
Table scaling_cells(const ScalingTable& table);
nlohmann::json scaling_json(const ScalingTable& table);

}  // namespace syncopate::bench
