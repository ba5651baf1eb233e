// Computes the table of a scaling grid: the CPUs, the measured speed, and the comparison of each
// row with the smallest combination. Terminal, page and JSON show these numbers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/plots/document.h"
#include "bench/scaling/scaling_sides.h"

namespace syncopate::bench {

// The number of samples in one pass over random data; equal to the number of MNIST's training
// images.
inline constexpr double kSamplesPerPass = 60'000.0;

struct ScalingRow {
  std::string strategy;
  int tasks = 1;                // number of processes
  int replicas = 1;             // number of replicas in all tasks
  int threads = 1;              // number of threads per replica
  std::int64_t batch_size = 0;  // number of samples of all replicas
  Spread samples_per_second;
  std::vector<double> samples_per_second_per_round;  // one number per round
  double utilisation = 0.0;        // CPU time of the tasks / (wall time * cpus()), mean over rounds
  Spread speed_up;                 // samples per second / samples per second of the first row
  bool is_oversubscribed = false;  // whether there are more threads than CPUs

  int cpus() const noexcept { return replicas * threads; }  // each thread takes one CPU
  int cpus_per_task() const noexcept { return cpus() / tasks; }
};

struct ScalingTable {
  std::string model;
  std::string optimizer;
  std::string data;                           // the value of --data; empty: random samples
  double samples_per_pass = kSamplesPerPass;  // number of samples in one pass over the data
  int cpus = 1;                               // number of CPUs that this process may use
  bool is_quiet = true;
  std::string conditions;          // the text of describe_conditions() (bench/harness/rounds.h)
  std::vector<ScalingRow> rows{};  // never empty; all rows are compared with the first row
};

ScalingTable make_scaling_table(const ScalingResult& result, int cpus);

// Returns the efficiency of a row: speed_up / (row.cpus() / base.cpus()), where `base` is the row
// of the smallest combination. 1.0 is ideal.
double scaling_efficiency(double speed_up, const ScalingRow& row, const ScalingRow& base);
// Returns the seconds that a row needs for one pass over the data.
double seconds_per_pass(const ScalingTable& table, const ScalingRow& row);

// Returns the combination of replicas and threads of a row as text, such as "2 replicas x 1
// thread".
std::string combination_text(const ScalingRow& row);
// Returns a sentence about the row with the most samples per second, such as "mirrored, 2 replicas
// x 1 thread: 1.8 times ...".
std::string scaling_verdict(const ScalingTable& table);
// Returns a note below the table that explains the columns and states the batch sizes.
std::string scaling_note(const ScalingTable& table);
// Returns the table as text cells for terminal and page, with a note on each oversubscribed row.
Table scaling_cells(const ScalingTable& table);
nlohmann::json scaling_json(const ScalingTable& table);

}  // namespace syncopate::bench
