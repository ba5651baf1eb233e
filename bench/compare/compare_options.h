// The options of `syncopate-bench compare`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/cluster.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/variant.h"

namespace syncopate::bench {

enum class Clock : std::uint8_t {
  kReal,     // processes on this machine, started by syncopate launch
  kVirtual,  // simulated time; equal numbers on one instruction set and version of oneDNN
};

enum class Budget : std::uint8_t {
  kSamples,  // all variants train the same number of samples: --epochs
  kUpdates,  // all variants apply the same number of updates: --updates
  kSeconds,  // all variants train for the same time: --seconds
};

// How long a training step takes on a cluster of --clusters.
struct StepTime {
  double milliseconds = 1.0;
  bool is_measured = false;  // on this machine, by --step-time measure
};

struct CompareOptions {
  std::string preset;  // the name of the preset that set these options; "" for none
  std::vector<Variant> variants;
  std::vector<std::string> left_out;  // default variants left out as impossible, with reasons
  std::vector<std::string> notes;     // remarks for the user before the first run
  int seeds = 5;                      // runs of each variant
  int first_seed = 1;                 // they have seeds first_seed .. first_seed + seeds - 1
  Clock clock = Clock::kReal;
  Budget budget = Budget::kSamples;
  std::int64_t epochs = 2;
  std::int64_t updates = 0;
  double seconds = 0.0;
  std::int64_t batch_size_per_replica = 32;
  std::string model = "mnist-cnn";
  std::string data = "digits";
  SharedTrainFlags shared = parse_shared_train_flags({});  // the flags of train for every run
  std::optional<double> target_accuracy{};  // empty: derived from the runs (report/comparison.h)
  int evaluations = 20;           // evaluations per run; with kSeconds, per `epochs` epochs
  Cluster cluster;                // what the variants run on
  std::vector<Cluster> clusters;  // of --clusters: the variants run on each of them instead
  std::vector<std::string> cluster_words;  // of --clusters; `clusters` is made from them
  StepTime step_time;  // of the clusters; if it is measured, the time is not known at first
  // Folder of the report. Empty: the first of comparison, comparison-2, comparison-3, ... (with
  // clusters: map, map-2, ...) that is free or has this comparison, interrupted.
  std::filesystem::path report;
  std::filesystem::path program;  // path of the program syncopate
  std::filesystem::path cache_dir;
  int jobs = 1;          // number of virtual runs at once
  bool replace = false;  // whether to remove runs of another comparison
  bool show_progress = true;
  bool explains = false;  // whether to print all claims, warnings and conditions
};

}  // namespace syncopate::bench
